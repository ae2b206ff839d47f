"""Tables fit 80 columns, say what they mean, and withhold what the runs cannot carry."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from htpsim.report import (
    assumption_table,
    capability_matrix,
    console,
    decision_table,
    inspect_table,
    load_failures,
    run_tables,
    to_text,
)
from htpsim.report.cells import Footnotes, cell, number
from htpsim.report.text import assumptions
from htpsim.results import Metric, RunLog, Summary, summarise
from htpsim.results.columns import PATH_BYPASS, PATH_GENIE, STAGE_PREFILL, STAGE_VIT, Execute
from htpsim.results.replications import across, estimate
from htpsim.spec import PRIORITIES, Device, Guard, Instance, Scenario
from tests.results.strategies import logs
from tests.results.synthetic import LLM, VIT, Machine, execute, hand_log, vlm_scenario


@pytest.fixture(scope="module")
def variants() -> dict[str, list[Summary]]:
    """Three replications of the four ways, short."""
    ways: dict[str, dict[str, object]] = {
        "legacy": {"vit_path": "qnn"},
        "legacy + one copy": {"vit_path": "qnn", "registry": True},
        "Genie": {},
        "Genie + registry": {"registry": True},
    }
    return {
        name: [
            summarise(Machine(vlm_scenario(seconds=20, seed=seed, weights=(4, 2, 1, 1), **way)).run())
            for seed in (1, 2, 3)
        ]
        for name, way in ways.items()
    }


def width(text: str) -> int:
    return max(cell_len(line) for line in text.splitlines())


def row(text: str, label: str) -> list[str]:
    """Return the cells of the first row that begins with a label."""
    line = next(line for line in text.splitlines() if line.startswith(label))
    return line[len(label) :].split()


@settings(max_examples=15)
@given(logs())
def test_a_run_fits_80_columns(log: RunLog) -> None:
    assert width(to_text(run_tables(summarise(log)))) <= 80


def test_a_run_with_long_names_and_many_clients_fits_80_columns() -> None:
    scenario = vlm_scenario(seconds=5, instances=6)
    named = tuple(replace(i, name=f"front camera assistant {k}") for k, i in enumerate(scenario.instances))

    text = to_text(run_tables(summarise(Machine(replace(scenario, instances=named)).run())))

    assert width(text) <= 80
    assert text.count("front camera") > 6


def test_a_run_says_what_happened() -> None:
    text = to_text(run_tables(summarise(hand_log())))

    assert "\nUtilisation core 0 86.7 %\n" in text
    assert ["b", "4", "1", "1", "1", "1", "0", "-"] in [line.split() for line in text.splitlines()]
    assert ["a", "2", "1", "1", "0", "0", "0", "1/2", "1/3"] in [line.split() for line in text.splitlines()]
    assert "1 sample, p95 needs 40" in text
    assert "tokens/s: tokens emitted in the window / length of the window" in text
    assert "! b: 2 requests were without a first token" in text
    assert "policy sfq, 1 slot a process; 66.7 % of grants had a choice" in text


def test_figures_of_the_tables_are_those_of_the_summary(variants: dict[str, list[Summary]]) -> None:
    summary = variants["Genie"][0]
    cells = row(to_text(run_tables(summary)), "vlm2")
    client = summary.clients["vlm2"]

    assert cells[2] == f"{client.itl.p50.value / 1e6:.1f}"
    assert cells[6] == f"{client.tokens_per_s.value:.2f}"


def test_the_decision_table_has_a_row_a_metric_and_a_column_a_variant(variants: dict[str, list[Summary]]) -> None:
    text = to_text(decision_table(variants))

    assert width(text) <= 80
    assert text.splitlines()[1].split() == ["legacy", "legacy", "+", "one", "copy", "Genie", "Genie", "+", "registry"]
    assert row(text, "ViT copies") == ["4", "2", "4", "2"]
    assert row(text, "LLM copies") == ["2", "2", "2", "2"]
    assert row(text, "slots") == ["2/process"] * 4
    assert "mean over 3 replications, ± half of its 95 % confidence interval (t)" in " ".join(text.split())


def test_the_interval_is_students(variants: dict[str, list[Summary]]) -> None:
    from scipy import stats

    values = [s.overall.tokens_per_s.value for s in variants["Genie"]]
    low, high = stats.t.interval(0.95, 2, loc=sum(values) / 3, scale=stats.sem(values))
    found = across(variants["Genie"], "overall.tokens_per_s")

    assert found.mean == pytest.approx(sum(values) / 3)
    assert found.half_width == pytest.approx((high - low) / 2)
    assert row(to_text(decision_table(variants)), "tokens/s")[2] == f"{found.mean:.1f}±{found.half_width:.1f}"


def test_a_single_replication_has_no_interval(variants: dict[str, list[Summary]]) -> None:
    text = to_text(decision_table({name: runs[:1] for name, runs in variants.items()}))

    assert "±" not in text
    assert "mean over 1 replication;" in text


def test_a_metric_missing_in_one_replication_is_missing(variants: dict[str, list[Summary]]) -> None:
    there, none = Metric(1.0, 50, "ns"), Metric(None, 12, "ns", "12 samples, p95 needs 40")

    assert estimate([there, there, none]).mean is None
    assert estimate([there, there, none]).why == "12 samples, p95 needs 40 (in 1 of 3 runs)"
    assert estimate([none]).why == "12 samples, p95 needs 40"
    assert math.isclose(estimate([there, there]).half_width, 0)
    text = to_text(decision_table(variants))
    assert row(text, "TTFT p95 [ms]")[0] == "n/a¹"
    assert "¹ " in text


@settings(max_examples=10)
@given(st.lists(st.text("abcde fgh", min_size=1, max_size=24).filter(str.strip), min_size=1, max_size=14, unique=True))
def test_any_number_of_variants_fits_80_columns_and_none_is_lost(names: list[str]) -> None:
    runs = [summarise(hand_log())]
    text = to_text(decision_table(dict.fromkeys(names, runs)))

    assert width(text) <= 80
    counted = sum(len(line[len("LLM copies") :].split()) for line in text.splitlines() if line.startswith("LLM copies"))
    assert counted == len(names)


def test_a_block_holds_six_variants_at_most() -> None:
    runs = [summarise(hand_log())]
    text = to_text(decision_table({f"v{i}": runs for i in range(8)}, width=200), width=200)

    assert [len(line.split()) - 2 for line in text.splitlines() if line.startswith("LLM copies")] == [6, 2]


def test_the_capability_matrix_is_read_off_the_runs(variants: dict[str, list[Summary]]) -> None:
    text = to_text(capability_matrix(variants))

    assert width(text) <= 80
    assert row(text, "LLM  ") == ["2", "for", "4", "100.0", "%", "1", "2", "4", "NORMAL", "legacy"]
    assert row(text, "ViT legacy  ") == ["4", "for", "4", "0", "%", "-", "NORMAL", "legacy"]
    assert row(text, "ViT Genie  ")[:5] == ["4", "for", "4", "100.0", "%"]
    assert row(text, "ViT Genie + registry")[:5] == ["2", "for", "4", "100.0", "%"]


def test_another_priority_is_another_row() -> None:
    log = hand_log()
    high = [Execute(*row)._replace(level=PRIORITIES.index("HIGH")) for row in log.executes]
    log.executes = [x for x in high if x.stage != STAGE_VIT] + [r for r in log.executes if r[3] == STAGE_VIT]
    text = to_text(capability_matrix({"now": [summarise(hand_log())], "high": [summarise(log)]}))

    assert row(text, "LLM  ")[-2:] == ["NORMAL", "now"]
    assert row(text, "LLM at HIGH")[-2:] == ["HIGH", "high"]
    assert text.index("LLM  ") < text.index("LLM at HIGH") < text.index("ViT legacy")


def test_the_matrix_tells_of_calls_that_went_past_the_guard() -> None:
    log = hand_log()
    rows = [Execute(*row) for row in log.executes]
    log.executes = [tuple(x._replace(path=PATH_BYPASS) if x.stage == STAGE_VIT else x) for x in rows]
    summary = summarise(log)

    assert "ViT Genie past the guard" in to_text(capability_matrix({"x": [summary]}))
    assert "2 calls on path genie carried no handle and went past the guard" in summary.notes


def test_starvation_reaches_the_decision_table() -> None:
    log = hand_log()
    log.executes[-1] = execute(client=1, request=1, stage=STAGE_PREFILL, path=PATH_GENIE, called_ns=110, solo_ns=1)
    text = to_text(decision_table({"x": [summarise(log)]}))

    assert row(text, "starved") == ["1"]
    assert row(text, "ITL p50 [ms]")[0].startswith("n/a")
    assert "b starved" in text


def test_assumptions_name_value_and_meaning() -> None:
    scenario = vlm_scenario(instances=3)
    rows = {name: (value, text) for name, value, text in assumptions(scenario)}

    assert rows["guard.slots_per"][0] == "process"
    assert "decides the answer" in rows["guard.slots_per"][1]
    assert rows["device.evict_ns"][0] == "200 us"
    assert rows["instances.*.arrivals.think"][0].startswith("exponential, mean ")
    assert rows["instances.*.llm.decode.*.dram_bytes"][0] == "0 B"
    assert not [name for name in rows if name.endswith(("cores", "seed")) and "built_for" not in name]
    text = to_text(assumption_table(scenario))
    assert width(text) <= 80
    assert "guard.slots_per" in text


def test_assumptions_that_differ_between_owners_are_listed_apart() -> None:
    a = Instance(name="a", vit=VIT, llm=LLM, stale_handle_of="b")
    b = Instance(name="b", vit=VIT, llm=LLM)
    rows = {name: value for name, value, _ in assumptions(Scenario(instances=(a, b)))}

    assert rows["instances.a.stale_handle_of"] == "b"
    assert rows["instances.b.stale_handle_of"] == "none"
    assert "instances.*.llm.placement" in rows


def test_failures_are_listed_with_their_reason() -> None:
    log = hand_log()
    assert load_failures(summarise(log)) is None
    log.failed = {"b": "device DRAM: asked 5 GiB, held 8 GiB, free 4 GiB"}

    failures = load_failures(summarise(log))

    assert failures is not None
    assert "b         device DRAM: asked 5 GiB" in to_text(failures)


@dataclass
class Fact:
    section: str
    name: str
    value: object
    unit: str = ""
    line: int | None = None
    note: str = ""


@dataclass
class Report:
    format: str
    path: str
    facts: tuple[Fact, ...]
    notes: tuple[str, ...] = ()


def test_inspect_shows_line_and_unit_and_never_a_zero_for_what_is_missing() -> None:
    facts = (
        Fact("execute", "NetRun", 1_803_480, "us", 43),
        Fact("execute", "Min", None, note="not in the log"),
        Fact("context", "weight_sharing_enabled", False, line=3),
    )
    text = to_text(inspect_table(Report("qnn-viewer", "a.txt", facts, ("doubles nothing",))))

    assert row(text, "  NetRun") == ["1,803,480", "us", "43"]
    assert row(text, "  Min (not in the log)") == ["not", "stated", "-"]
    assert row(text, "  weight_sharing_enabled") == ["false", "3"]
    assert [line for line in text.splitlines() if line in ("execute", "context")] == ["execute", "context"]
    assert "! doubles nothing" in text


def test_inspect_shows_values_also_under_a_section_whose_name_is_longer_than_a_line() -> None:
    facts = (Fact("a " * 60, "inference time", 42, "us", 1),)

    assert row(to_text(inspect_table(Report("aihub-perf", "a.yaml", facts))), "  inference time") == ["42", "us", "1"]


def test_no_color_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert console().no_color
    assert console().width <= 80
    assert "\x1b" not in to_text(run_tables(summarise(hand_log())))


def test_equal_reasons_share_a_footnote() -> None:
    notes = Footnotes()
    none = Metric(None, 1, "ns", "why")

    assert [cell(none, notes), cell(none, notes), cell(Metric(None, 1, "ns", "else"), notes)] == [
        "n/a¹",
        "n/a¹",
        "n/a²",
    ]
    assert [str(line) for line in notes.lines()] == ["¹ why", "² else"]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "ns", "0"), (1_362_000_000, "ns", "1,362"), (5_300_000, "ns", "5.3"), (43_000, "ns", "0.043"),
        (1, "ns", "<0.001"), (12_345, "count", "12,345"), (2.5, "count", "2.5"), (26.53, "tokens_per_s", "26.5"),
        (6.623, "tokens_per_s", "6.62"), (0.5, "share", "50.0"), (2**30, "bytes", "1.00"),
    ],
)  # fmt: skip
def test_numbers_have_about_four_figures_and_never_read_as_zero(value: float, unit: str, text: str) -> None:
    assert number(value, unit) == text


def test_slots_and_policy_are_told_a_variant() -> None:
    log = hand_log()
    log.scenario = replace(log.scenario, guard=Guard(slots_per="core", policy="quota"), device=Device(cores=2))
    text = to_text(decision_table({"x": [summarise(log)]}))

    assert row(text, "slots") == ["1/core"]
    assert row(text, "policy") == ["quota"]
    assert "rest on the quota's own choices" in text
