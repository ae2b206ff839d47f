"""What `run` and `compare` print, return as JSON and write."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.cli.support import FIXTURES, INLINE, PAIR, PLAIN, call

pytestmark = pytest.mark.slow
SHORT = ("--for", "600ms", *INLINE)
ONE = ("--replications", "1")


def files(folder: Path) -> dict[str, bytes]:
    """Return the content of every file but the provenance, which tells the time."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != "provenance.json")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_run_says_which_variant_it_ran_and_which_others_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    bare = call(capsys, "run", PAIR, *SHORT, *ONE)
    chosen = call(capsys, "run", PAIR, *SHORT, *ONE, "--variant", "guarded", "--case", "weighted")

    assert bare.code == chosen.code == 0
    assert "the file as it stands, without any of its variants" in " ".join(bare.out.split())
    assert "--variant: legacy, guarded, shared." in " ".join(bare.out.split())
    assert "This was variant guarded, case weighted." in chosen.out
    assert "Other variants (--variant): legacy, shared." in " ".join(chosen.out.split())
    assert "pair.guarded.weighted" in chosen.out


def test_run_says_nothing_of_variants_where_there_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "run", PLAIN, *SHORT, *ONE)

    assert outcome.code == 0
    assert "variant" not in outcome.out


def test_run_as_json_is_only_json_and_holds_every_replication(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "run", PAIR, *SHORT, "--variant", "shared", "--json")
    told = json.loads(outcome.out)

    assert told["scenario"] == "pair.shared"
    assert told["variant"] == "shared"
    assert told["case"] is None
    assert [one["replication"] for one in told["replications"]] == [0, 1, 2]
    assert outcome.err == ""


def test_one_replication_is_the_same_alone_and_among_others(capsys: pytest.CaptureFixture[str]) -> None:
    together = json.loads(call(capsys, "run", PAIR, *SHORT, "--json").out)["replications"]
    alone = json.loads(call(capsys, "run", PAIR, *SHORT, "--json", "--replication", "2").out)["replications"]

    assert alone == [together[2]]
    assert together[1] != together[2]


def test_an_override_changes_the_run_and_the_seed_changes_the_draws(capsys: pytest.CaptureFixture[str]) -> None:
    def run(*more: str) -> list[dict[str, object]]:
        told = json.loads(call(capsys, "run", PAIR, *SHORT, *ONE, "--json", *more).out)["replications"]
        assert isinstance(told, list)
        return told

    assert run() == run("--seed", "7")
    assert run() != run("--seed", "8")
    assert run("--set", "guard.policy=fifo")[0]["guard"]["policy"] == "fifo"  # type: ignore[index]


def test_compare_ends_with_the_answer_in_short(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "compare", PAIR, *SHORT)
    titles = ["Variants", "Decision: equal weights", "Decision: weights 3:1", "Capabilities"]
    titles += ["Which assumption would change a sign?", "In short: difference from legacy [%], equal weights"]
    titles += ["In short: difference from legacy [%], weights 3:1"]
    at = [outcome.out.find(title) for title in titles]

    assert outcome.code == 0
    assert at == sorted(at)
    assert min(at) >= 0
    assert "two slots " in outcome.out
    assert "with --option, in the order above: slots.two" in " ".join(outcome.out.split())
    last = outcome.out[at[-1] :].splitlines()
    assert [line.split()[0] for line in last[3:5]] == ["guarded", "shared"]


def test_compare_of_one_variant_says_that_there_is_nothing_to_compare(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["compare", PLAIN, *SHORT, *ONE], ["compare", PAIR, *SHORT, *ONE, "--variant", "guarded"]):
        outcome = call(capsys, *arguments)

        assert outcome.code == 0
        assert "nothing to compare it with" in outcome.out
        assert "In short" not in outcome.out


def test_compare_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(call(capsys, "compare", PAIR, *SHORT, "--case", "equal", "--json").out)

    assert list(told["cases"]) == ["equal"]
    assert list(told["cases"]["equal"]) == ["legacy", "guarded", "shared"]
    assert told["first"] == "legacy"
    assert told["changes"]["equal"]["shared"]["memory.device.steady_bytes"]["share"] < 0
    assert told["changes"]["equal"]["guarded"]["memory.device.steady_bytes"]["identical"] is True
    assert {one["option"] for one in told["grid"]["differences"]} == {"as configured", "slots.two"}


def test_the_grid_is_left_out_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "compare", PAIR, *SHORT, *ONE, "--no-grid")

    assert "Which assumption" not in outcome.out


def test_an_option_that_holds_throughout_is_not_asked_about_again(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(call(capsys, "compare", PAIR, *SHORT, *ONE, "--option", "slots.two", "--json").out)

    assert told["options"] == ["slots.two"]
    assert told["grid"] is None
    assert told["cases"]["equal"]["guarded"][0]["guard"]["slots"] == 2


def test_the_first_variant_named_is_what_the_others_are_compared_with(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "compare", PAIR, *SHORT, *ONE, "--no-grid", "--variant", "shared", "--variant", "legacy")

    assert "In short: difference from shared" in outcome.out


@pytest.fixture
def no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the pictures, which take longer than all the rest."""
    for name in ("save_run_plots", "save_compare_plots"):
        monkeypatch.setattr(f"htpsim.report.directory.{name}", lambda *_: None)


def test_a_run_directory_holds_the_printed_page_and_pictures(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "deep" / "run"
    outcome = call(capsys, "run", PAIR, *SHORT, *ONE, "--out", str(target))
    page = (target / "report.txt").read_text(encoding="utf-8")

    assert outcome.code == 0
    assert f"Written to {target}" in outcome.err
    assert "Written" not in outcome.out
    assert page.startswith(outcome.out[: outcome.out.index("assumed parameters are in force") - 3])
    assert "Assumed, not known" in page
    assert any(name.endswith(".png") for name in files(target))
    assert [path.name for path in target.parent.iterdir()] == ["run"]


@pytest.mark.usefixtures("no_plots")
def test_a_run_directory_is_the_same_twice_on_any_number_of_processes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name, workers in (("one", "1"), ("two", "2")):
        outcome = call(capsys, "run", PAIR, "--for", "600ms", "--workers", workers, "--out", str(tmp_path / name))
        assert outcome.code == 0

    written = files(tmp_path / "one")
    assert written == files(tmp_path / "two")
    assert {"report.txt", "records.csv", "summary.json", "scenario.json", "replications.json"} < written.keys()


@pytest.mark.usefixtures("no_plots")
def test_the_order_of_variants_changes_no_byte_of_a_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name, order in (("one", ["legacy", "shared"]), ("two", ["shared", "legacy"])):
        variants = [word for variant in order for word in ("--variant", variant)]
        outcome = call(
            capsys, "compare", PAIR, *SHORT, *ONE, "--no-grid", "--case", "equal", *variants,
            "--out", str(tmp_path / name),
        )  # fmt: skip
        assert outcome.code == 0

    runs = files(tmp_path / "one" / "runs")
    assert runs == files(tmp_path / "two" / "runs")
    assert {name.split("/")[0] for name in runs} == {"equal.legacy", "equal.shared"}
    assert {"equal.legacy/records.csv", "equal.shared/summary.json"} < runs.keys()


@pytest.mark.usefixtures("no_plots")
def test_a_run_directory_is_replaced_but_never_anything_else(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "run"
    assert call(capsys, "run", PLAIN, *SHORT, *ONE, "--out", str(target)).code == 0
    assert call(capsys, "run", PLAIN, *SHORT, *ONE, "--seed", "9", "--out", str(target)).code == 0
    assert json.loads((target / "summary.json").read_text())["seed"] == 9

    (target / "notes.txt").write_text("mine")
    refused = call(capsys, "run", PLAIN, *SHORT, *ONE, "--out", str(target))

    assert refused.code == 2
    assert "notes.txt" in refused.err
    assert json.loads((target / "summary.json").read_text())["seed"] == 9


@pytest.mark.parametrize(
    ("policy", "told"), [("Stranger", "stranger"), ("Raises", "half a second was too much")], ids=["stranger", "raises"]
)
def test_a_broken_rule_prints_the_command_that_breaks_it_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, policy: str, told: str
) -> None:
    monkeypatch.syspath_prepend(str(FIXTURES))
    policy_set = f"guard.policy=bad_policies:{policy}"

    first = call(capsys, "compare", PAIR, "--for", "900ms", *INLINE, "--case", "weighted", "--set", policy_set)
    again = first.err.splitlines()[-1].partition("run it again with: ")[2]
    words = shlex.split(again)
    second = call(capsys, *words[1:], *INLINE)

    assert first.code == second.code == 3
    assert first.out == second.out == ""
    assert told in first.err
    assert "Traceback" not in first.err
    assert words[:2] == ["htpsim", "run"]
    assert words[words.index("--case") :][:2] == ["--case", "weighted"]
    assert words[words.index("--seed") :][:2] == ["--seed", "7"]
    assert first.err.splitlines()[0] == second.err.splitlines()[0]


def test_an_interrupt_is_told_apart_from_everything_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("htpsim.experiments.runner.simulate", interrupted)

    outcome = call(capsys, "run", PAIR, *SHORT, *ONE)

    assert outcome.code == 130
    assert outcome.err.strip() == "htpsim: interrupted"


def test_a_fault_of_the_engine_is_told_in_a_line_with_the_command_that_shows_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("core 7")

    monkeypatch.setattr("htpsim.experiments.runner.simulate", broken)

    outcome = call(capsys, "run", PAIR, *SHORT, "--variant", "shared")

    assert outcome.code == 3
    assert outcome.err.startswith("htpsim: the simulation failed: KeyError: 'core 7' (test_simulations.py, line ")
    assert "htpsim run" in outcome.err.splitlines()[1]
    assert "--variant shared" in outcome.err.splitlines()[1]


def test_a_check_holds_a_sound_run_to_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "run", PAIR, *SHORT, *ONE, "--check", "--variant", "shared")

    assert outcome.code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["run", PAIR, *SHORT, "--variant", "guarded"], id="run"),
        pytest.param(["compare", PAIR, *SHORT], id="compare"),
        pytest.param(["policies"], id="policies"),
        pytest.param(["inspect", str(FIXTURES / "genie_config.json")], id="inspect"),
        *(
            pytest.param([*command, "--help"], id=f"{' '.join(command) or 'main'} help")
            for command in (
                [],
                ["run"],
                ["compare"],
                ["scenarios"],
                ["inspect"],
                ["schema"],
                ["policies"],
                ["validate"],
            )
        ),
    ],
)
def test_no_line_is_wider_than_80_columns(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    outcome = call(capsys, *arguments)

    assert outcome.code == 0
    assert outcome.out.strip()
    assert [line for line in outcome.out.splitlines() if cell_len(line) > 80] == []
    assert [line for line in outcome.out.splitlines() if line != line.rstrip()] == []
