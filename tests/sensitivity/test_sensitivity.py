"""Every assumption is tried, its effect is that of a run by hand, and a threshold is where the sign turns."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from htpsim.errors import ScenarioError
from htpsim.experiments.compare import compare
from htpsim.experiments.sensitivity import Effect, Sensitivity, Setting, sensitivity, settings_of
from htpsim.experiments.sign_grid import METRICS, Difference
from htpsim.report.cells import to_text
from htpsim.report.sensitivity import sensitivity_page
from htpsim.scenario import load
from htpsim.spec import parameters
from htpsim.units import parse_time
from tests.cli.support import PAIR, call

SHORT = ["run.duration=2s"]


def test_every_parameter_with_a_range_is_tried() -> None:
    scenario = load("vit_migration").resolve("genie").scenario
    keys = {setting.key for setting in settings_of(scenario)}
    for name, facts, value in parameters(scenario.guard, "guard"):
        others = [other for other in facts.vary if other != value]
        assert (name.removesuffix("_ns") in keys) == bool(others)
    assert {"device.topology", "registry.vit_copies", "models.vit.placement", "device.pd"} <= keys


def test_every_setting_is_one_that_a_file_takes_and_changes_something() -> None:
    file = load("vit_migration")
    plain = file.resolve("genie").scenario
    refused = []
    for setting in settings_of(plain):
        try:
            changed = file.resolve("genie", set_values=setting.assignment).scenario
        except ScenarioError as error:  # good by itself, but not on this chip
            refused.append(f"{setting.key}: {error}")
        else:
            assert changed != plain, setting
    assert all("cores" in text or text.partition(":")[0] in text.partition(":")[2] for text in refused), refused


def test_an_effect_is_what_two_comparisons_by_hand_show() -> None:
    found = sensitivity(PAIR, variants=["legacy", "guarded"], set_values=SHORT, only=["guard.slots"], workers=1)
    effect = next(e for e in found.effects if e.metric == "overall.ttft.mean" and e.setting.value == "2")
    for share, values in ((effect.configured.share, SHORT), (effect.changed.share, [*SHORT, "guard.slots=2"])):
        by_hand = compare(PAIR, variants=["legacy", "guarded"], cases=None, set_values=[*values, "run.replications=2"],
                          grid=False, workers=1)  # fmt: skip
        case = next(iter(by_hand.summaries))
        first, other = by_hand.summaries[case]["legacy"], by_hand.summaries[case]["guarded"]
        shares = [b.overall.ttft.mean.value / a.overall.ttft.mean.value - 1 for a, b in zip(first, other, strict=True)]
        assert share == pytest.approx(sum(shares) / 2)
    assert effect.move == effect.changed.share - effect.configured.share


def test_by_default_the_first_variant_is_compared_with_the_next_that_differs() -> None:
    """One copy of the weights changes no timestamp, so it would be no question."""
    found = sensitivity("vit_migration", only=["guard.slots"], set_values=[*SHORT, "run.warmup=0s"], workers=1)
    assert (found.first, found.variants) == ("legacy", ("genie",))


def test_one_scenario_is_compared_with_itself() -> None:
    found = sensitivity(PAIR, variants=["legacy"], set_values=SHORT, only=["guard.slots_per"], workers=1)
    assert found.first == ""
    assert {effect.configured.share for effect in found.effects} == {0.0}
    assert {effect.variant for effect in found.effects} == {"legacy"}


RIVALS = """
[run]
duration = "30s"
replications = 2

[models.llm]
role = "llm"
contexts = [{ name = "llm", weights = "1MB" }]
prefill = [{ name = "prefill", context = "llm", service = "1ms" }]
decode = [{ name = "decode", context = "llm", service = "1050us" }]

[[instances]]
name = "vlm"
llm = "llm"
llm_path = "qnn"
output_tokens = 20

[variants.plain]
title = "past the guard, 1050 us a step"

[variants.guarded]
title = "through the guard, 1000 us a step"
instances = { llm_path = "genie" }
models.llm = { decode = [{ name = "decode", context = "llm", service = "1ms" }] }
"""


def test_a_threshold_is_found_where_the_sign_turns(tmp_path: Path) -> None:
    """A step is 50 us faster through the guard, so an overhead of 50 us a call is where that turns round."""
    file = tmp_path / "rivals.toml"
    file.write_text(RIVALS)
    found = sensitivity(file, only=["guard.overhead"], workers=1)
    assert {(e.setting.value, e.metric) for e in found.flips()} >= {('"100us"', "overall.itl.p99")}
    assert ('"10us"', "overall.itl.p99") not in {(e.setting.value, e.metric) for e in found.flips()}
    at = next(at for at in found.thresholds if at.metric == "overall.itl.p99")
    keeps, turns = parse_time(at.keeps), parse_time(at.turns)
    assert 50_000 < turns < 65_000  # 50 us, and the 1 % below which a difference counts as none
    assert 0 < turns - keeps <= 4_000
    assert f"it turns between {at.keeps} and {at.turns}" in to_text(sensitivity_page(found)).replace("\n", " ")


def made(configured: float, changed: float) -> Sensitivity:
    setting = Setting("guard.slots", "1", "assumed", "holders at once")
    effect = Effect(setting, "genie", METRICS[0], Difference((configured,)), Difference((changed,)))
    return Sensitivity("T", "legacy", ("genie",), (effect,), {}, (), 10**9, 1)


def test_a_flip_is_told_and_drawn() -> None:
    flipped, kept = made(-0.1, 0.2), made(-0.1, -0.2)
    assert [effect.flips for effect in flipped.flips()] == [True]
    assert not kept.flips()
    page = to_text(sensitivity_page(flipped))
    assert "│███████████ !!" in page
    assert "tokens/s of genie: -10 % as configured, but +20 % if guard.slots = 1 (assumed)" in page
    assert "None of those tried." in to_text(sensitivity_page(kept))
    assert flipped.to_dataframe().loc[0, "move"] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("moved", "idle", "told"),
    [(0, 1, "1 setting does nothing"), (0, 2, "2 settings do nothing"), (1, 1, "1 more setting does nothing")],
)
def test_settings_that_do_nothing_are_counted(moved: int, idle: int, told: str) -> None:
    (strong,), (weak,) = made(-0.1, -0.2).effects, made(-0.1, -0.1).effects
    found = replace(made(0, 0), effects=(strong,) * moved + (weak,) * idle)

    assert told in to_text(sensitivity_page(found))


def test_all_bars_start_at_one_line() -> None:
    effects = [made(-0.1, changed).effects[0] for changed in (0.1, -0.3, -0.15)]
    page = to_text(sensitivity_page(replace(made(0, 0), effects=tuple(effects))))
    places = [line.index("│") for line in page.splitlines() if "│" in line]

    assert len(places) == 3
    assert len(set(places)) == 1


def test_the_command_draws_a_tornado(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sensitivity", PAIR, "--for", "1s", "--only", "guard.slots", "--only", "guard.scope", "--workers", "1"]
    done = call(capsys, *words)
    assert done.code == 0
    assert "tokens/s of guarded, difference from legacy [%]" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    said = json.loads(call(capsys, *words, "--json").out)
    assert {effect["key"] for effect in said["effects"]} == {"guard.slots", "guard.scope"}


def test_an_unknown_key_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "sensitivity", PAIR, "--only", "guard.slot")
    assert done.code == 2
    assert "did you mean 'guard.slots'" in done.err


def test_a_directory_holds_page_tables_and_a_tornado_an_answer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "moves"
    words = ["sensitivity", PAIR, "--for", "1s", "--only", "guard.slots", "--workers", "1", "--out", str(out)]
    done = call(capsys, *words)
    assert done.code == 0
    names = {path.name for path in out.iterdir()}
    assert {"effects.csv", "provenance.json", "report.txt", "sensitivity.json"} <= names
    assert "tornado-guarded-tokens-per-s.png" in names
    assert (out / "report.txt").read_text().strip() == done.out.strip()


@pytest.mark.parametrize("own", ["replications = 1", "seed = 8"])
def test_variants_whose_replications_do_not_pair_off_are_refused(tmp_path: Path, own: str) -> None:
    file = tmp_path / "own.toml"
    head = 'title = "through the guard"'
    file.write_text(
        Path(PAIR).read_text(encoding="utf-8").replace(head, f"{head}\nrun = {{ {own} }}"), encoding="utf-8"
    )
    with pytest.raises(ScenarioError, match=r"variants\.guarded\.run\.\w+: got ., expected . as in 'legacy'"):
        sensitivity(file, only=["guard.slots"], set_values=SHORT, workers=1)


def test_a_setting_under_which_somebody_does_not_start_has_no_effect_to_show(tmp_path: Path) -> None:
    """A smaller protection domain that an LLM no longer fits says nothing of its tokens."""
    file = tmp_path / "tight.toml"
    text = Path(PAIR).read_text(encoding="utf-8")
    file.write_text(text.replace('weights = "100MB"', 'weights = "3.3GB"'), encoding="utf-8")
    found = sensitivity(file, only=["device.pd"], set_values=SHORT, workers=1)
    assert any("did not start" in why for why in found.refused.values())
    assert {str(effect.setting) for effect in found.effects}.isdisjoint(found.refused)
