"""Every shipped scenario: it asks something, resolves in every way it offers, and each of these runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from htpsim.results.columns import Execute
from htpsim.results.run import RunResult
from htpsim.scenario import ScenarioFile, load, shipped
from htpsim.sim import simulate
from tests.scenarios.support import ONE_BY_ONE, SCENARIOS

SHORT = ["run.duration=2s", "run.warmup=0", "run.replications=1"]
NAMES = sorted(path.stem for path in SCENARIOS.glob("*.toml"))
WANTED = {
    *ONE_BY_ONE, "four_vlms", "vit_migration", "topology", "two_processes", "vit_legacy_high_priority",
    "vit_unregistered_thread", "embedding_raw_apis", "ort_priority_starvation", "specula_streams", "two_nsp_bandwidth",
    "qnn_cpu_vs_onnxruntime", "surprise_one_call_at_a_time", "surprise_as_many_slots", "surprise_long_vit",
    "surprise_past_the_guard", "surprise_inversion",
}  # fmt: skip


def ways(file: ScenarioFile) -> list[tuple[str | None, str | None, tuple[str, ...]]]:
    """Return every variant in every case as it is, and every variant under every option of an assumption."""
    variants: list[str | None] = [*file.variants] or [None]
    cases: list[str | None] = [*file.cases] or [None]
    options = [f"{name}.{option}" for name, assumption in file.assumptions.items() for option in assumption.options]
    plain = [(variant, case, ()) for variant in variants for case in cases]
    return plain + [(variant, cases[0], (option,)) for variant in variants for option in options]


def test_what_is_wanted_is_shipped() -> None:
    assert set(NAMES) == WANTED
    assert {name for name in shipped() if "/" not in name} == WANTED


@pytest.mark.parametrize("name", NAMES)
def test_it_asks_a_question_and_names_what_it_varies(name: str) -> None:
    file = load(SCENARIOS / f"{name}.toml")

    assert file.title != name
    assert file.question.endswith("?")
    for offered in (file.variants, file.cases):
        assert all(choice.title != choice_name for choice_name, choice in offered.items())
    assert all(variant.text for variant in file.variants.values())
    for assumption_name, assumption in file.assumptions.items():
        assert assumption.title != assumption_name
        assert all(option.title != option_name for option_name, option in assumption.options.items())


@pytest.mark.parametrize("name", NAMES)
def test_its_first_line_names_the_schema(name: str) -> None:
    first, second, *_ = (SCENARIOS / f"{name}.toml").read_text(encoding="utf-8").splitlines()

    assert first == "#:schema ./scenario.schema.json"
    assert second.startswith("# ")


@pytest.mark.parametrize("name", NAMES)
def test_it_resolves_in_every_way_it_offers_and_no_overlay_is_without_effect(name: str) -> None:
    file = load(SCENARIOS / f"{name}.toml")

    resolved = {way: replace(file.resolve(*way).scenario, name="", title="") for way in ways(file)}

    first = next(iter(file.cases), None)
    variants = [scenario for (variant, case, options), scenario in resolved.items() if case == first and not options]
    assert len(set(variants)) == len(variants)
    for option in {options for _, _, options in resolved if options}:
        assert any(resolved[v, first, option] != resolved[v, first, ()] for v in file.variants), option


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_it_runs_in_every_way_it_offers(name: str) -> None:
    file = load(SCENARIOS / f"{name}.toml", set_values=SHORT)
    for way in ways(file) if name not in ONE_BY_ONE else [(None, None, ())]:
        scenario = file.resolve(*way).scenario
        log = simulate(scenario, check=True)

        assert log.executes, scenario.name
        counts = RunResult(log).summary().overall.counts
        assert counts.arrived == sum((counts.done, counts.running, counts.queued, counts.dropped, counts.refused))
        assert all(len(row) == len(Execute._fields) for row in log.executes)


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_lines_are_no_longer_than_a_screen_save_for_sources(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()

    assert [line for line in lines if len(line) > 120 and "source = " not in line] == []
