"""QNN and Genie profiles, and tables: our readers find in them the numbers of the run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings

from htpsim import formats
from htpsim.errors import HtpsimError
from htpsim.formats.source import from_text
from htpsim.formats.values import ServiceQuery, Value, time_ns
from htpsim.formats.writers import extra
from htpsim.formats.writers.genie_profile import genie_lines
from htpsim.formats.writers.qnn_csv import csv_lines
from htpsim.formats.writers.qnn_events import EVENTS, events_of, graph_profiles
from htpsim.formats.writers.qnn_viewer import viewer_lines
from htpsim.formats.writers.table import TABLES, table_frame, write_table
from htpsim.results.columns import Execute, Request
from htpsim.results.run import RunResult
from htpsim.scenario import load
from htpsim.sim import simulate
from htpsim.spec import Scenario
from htpsim.testing import random_scenario, scenarios

NUMBERS = {event.name: event.number for event in EVENTS}
EVICTED = 100
"""How many generated runs are looked at for one with evictions."""


def read(name: str, lines: Iterator[str]) -> Any:
    """Read back what was written, by its content alone."""
    source = from_text("written", "\n".join(lines) + "\n")
    assert formats.recognise_source(source).name == name
    report = formats.recognise_source(source).read(source, False)
    assert not any("cut off" in note or "ends in the middle" in note for note in report.notes)
    return report.data


def ns(value: Value[Any] | None) -> int:
    assert value is not None
    return time_ns(value, "written") if value.value else 0


@cache
def car(duration: str = "8s", warmup: str = "0s") -> RunResult:
    """A short run of the shipped scenario, with RPC, acquire and power-up times."""
    device = [
        "device.rpc_call=43us",
        "device.rpc_return=40us",
        "device.acquire=199us",
        "device.power_up=5.8ms",
        "guard.overhead=25us",
    ]
    settings = [*device, "device.idle_timeout=1ms", f"run.duration={duration}", f"run.warmup={warmup}"]
    return RunResult(simulate(load("vit_genie", set_values=settings).base))


@cache
def evicted() -> RunResult:
    """A generated run in which a graph that returned in the window had been evicted."""
    for seed in range(EVICTED):
        result = RunResult(simulate(random_scenario(seed)))
        if any(row.evictions for graph in graph_profiles(result) for row in graph.rows):
            return result
    pytest.fail(f"none of {EVICTED} runs has an eviction")


def in_window(result: RunResult, client: int | None = None) -> list[Execute]:
    log = result.log
    rows = [Execute(*row) for row in log.executes]
    return [
        row for row in rows if log.start_ns < row.returned_ns <= log.end_ns and (client is None or row.client == client)
    ]


@pytest.mark.slow
@settings(max_examples=10)
@given(scenario=scenarios())
def test_a_csv_has_every_execution(scenario: Scenario) -> None:
    check_csv(RunResult(simulate(scenario)))


@pytest.mark.slow
@settings(max_examples=10)
@given(scenario=scenarios())
def test_a_viewer_log_has_every_statistic(scenario: Scenario) -> None:
    check_viewer(RunResult(simulate(scenario)))


@pytest.mark.slow
@pytest.mark.parametrize("made", [car, evicted])
def test_runs_with_all_events_are_read_back(made: Any) -> None:
    check_csv(made())
    check_viewer(made())


def check_csv(result: RunResult) -> None:
    log = read("qnn-csv", csv_lines(result))
    device = result.log.scenario.device
    rows = [row for graph in graph_profiles(result) for row in graph.rows]

    assert sorted(rows) == sorted(in_window(result))
    assert len(log.executions) == len(rows)
    for graph in graph_profiles(result):
        executions = log.of(graph.name, complete=False)
        assert [one.index for one in executions] == [graph.index] * len(graph.rows)
        assert all(one.complete for one in executions)
        for one, row in zip(executions, graph.rows, strict=True):
            assert one.timestamp == row.returned_ns // 1000
            for event in events_of(device, graph.rows):
                value = one.event(event.name)
                assert value is not None
                assert (ns(value) if event.unit == "us" else value.value) == event.value(row, device)
                assert value.unit == event.unit
            assert len(one.measurements) == len(events_of(device, graph.rows))
    ready = log.phase("INIT")
    assert (ns(ready.event("NetRun")) if ready else 0) == result.log.ready_ns


def check_viewer(result: RunResult) -> None:
    log = read("qnn-viewer", viewer_lines(result))
    device = result.log.scenario.device
    profiles = list(graph_profiles(result))

    assert log.backend == ("HTP" if profiles else None)
    assert list(log.graphs) == [graph.name for graph in profiles]
    for graph in profiles:
        for event in events_of(device, graph.rows):
            values = [event.value(row, device) for row in graph.rows]
            scale = 1 if event.unit == "us" else 1000
            low, mean, high = (
                section.event(event.name, graph.name) for section in (log.minimum, log.average, log.maximum)
            )
            found = [ns(value) if event.unit == "us" else round(value.value * 1000) for value in (low, high)]
            assert found == [min(values) * scale, max(values) * scale]
            mean_ns = ns(mean) if event.unit == "us" else round(mean.value * 1000)
            assert abs(mean_ns - fmean(values) * scale) <= 0.51 + 1e-9 * mean_ns
    assert (ns(log.init.event("NetRun")) if log.init.measurements else 0) == result.log.ready_ns


def test_times_contain_each_other_as_on_a_device() -> None:
    device = car().log.scenario.device
    rows = in_window(car())
    value = {event.name: event.value for event in EVENTS}

    assert len(events_of(device, rows)) == len(EVENTS) - 3
    for row in rows:
        told = {name: of(row, device) for name, of in value.items()}
        assert told["NetRun"] == row.returned_ns - row.called_ns
        assert told["NetRun"] - told["QNN (execute) time"] == row.guard_wait_ns + row.guard_overhead_ns
        assert told["RPC (execute) time"] - told["QNN accelerator (execute) time"] == 83_000
        assert told["QNN accelerator (execute) time"] == (
            told["EXECUTE_QUEUE_WAIT"] + told["Accelerator (execute) time"]
        )
        inside = ("Accelerator (execute excluding wait) time", "Time for initial VTCM acquire")
        acquired = told["Time for HVX + HMX power on and acquire"]
        assert told["Accelerator (execute) time"] == acquired + sum(told[name] for name in inside)
        assert acquired in (0, 5_800_000)
    assert {value["Time for HVX + HMX power on and acquire"](row, device) for row in rows} == {0, 5_800_000}


def test_yields_are_told_of_graphs_that_yield() -> None:
    device = evicted().log.scenario.device
    names = {event.name for event in EVENTS if event.of_yields}
    graphs = list(graph_profiles(evicted()))
    told = {graph.name: {event.name for event in events_of(device, graph.rows)} & names for graph in graphs}

    assert told == {g.name: names if any(row.evictions for row in g.rows) else set() for g in graphs}
    waits = next(event for event in EVENTS if event.number == 3007)
    for row in in_window(evicted()):
        away_ns = row.finished_ns - row.started_ns - row.acquire_ns - row.run_ns - row.evict_ns - row.restore_ns
        assert waits.value(row, device) == away_ns


def test_the_csv_names_each_event_by_its_number() -> None:
    lines = [line.split(",") for line in csv_lines(car())]
    header = next(line for line in lines if "Message" in line)
    found = {fields[header.index("Event Identifier")]: fields[-1] for fields in lines if fields[1] == "EXECUTE"}

    assert header[-1] == "Event Number"
    assert {name for name in found if name not in NUMBERS} == {"Graph 0: vit", "Graph 1: prefill0"} | {
        name for name in found if name.startswith("Graph ")
    }
    assert {name: number for name, number in found.items() if name in NUMBERS} == {
        name: str(number) for name, number in NUMBERS.items() if name in found
    }


def test_the_page_lists_every_event() -> None:
    page = (Path(__file__).parents[2] / "docs" / "opening-traces.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([^`]+)` \| ?(\d*) ?\|", page, re.MULTILINE)

    assert {name: int(number) if number else None for name, number in listed} == NUMBERS


@pytest.mark.slow
def test_one_client_alone() -> None:
    log = car().log
    for number, name in enumerate(log.clients):
        data = read("qnn-csv", csv_lines(car(), name))
        assert len(data.executions) == len(in_window(car(), number)) > 0
        assert read("qnn-viewer", viewer_lines(car(), name)).average is not None
    with pytest.raises(HtpsimError, match="did you mean 'vlm"):
        list(viewer_lines(car(), "vlm"))


def test_a_simulated_table_calibrates_a_scenario() -> None:
    """The purpose: what is measured on a device and what is simulated are asked the same way."""
    source = from_text("sim.txt", "\n".join(viewer_lines(car())) + "\n")
    run_ns = [row.run_ns for row in in_window(car()) if car().log.graphs[row.graph] == "vit/vit"]

    found = formats.recognise_source(source).service_time(
        source, ServiceQuery(graph="vit", event="Accelerator (execute excluding wait) time")
    )

    assert found.value_ns == round(fmean(run_ns))


def expected_queries(result: RunResult) -> dict[str, list[dict[str, Any]]]:
    """What each dialog's queries must say, computed from the rows alone."""
    log = result.log
    prefill: dict[tuple[int, int], int] = {}
    for row in (Execute(*row) for row in log.executes):
        if row.stage == 1:
            key = row.client, row.request
            prefill[key] = min(prefill.get(key, row.called_ns), row.called_ns)
    found: dict[str, list[dict[str, Any]]] = {}
    for request in (Request(*row) for row in log.requests):
        key = request.client, request.request
        if request.state == 2 and log.start_ns < request.done_ns <= log.end_ns and key in prefill:
            found.setdefault(log.clients[request.client], []).append(
                {
                    "prompt": request.prompt_tokens,
                    "first_ns": request.first_token_ns - prefill[key],
                    "tokens": request.tokens,
                    "generation_ns": request.done_ns - request.first_token_ns,
                }
            )
    return found


@pytest.mark.slow
@settings(max_examples=10)
@given(scenario=scenarios())
def test_a_genie_profile_has_every_query(scenario: Scenario) -> None:
    check_genie(RunResult(simulate(scenario)))


def test_a_genie_profile_of_cars_has_every_query() -> None:
    all_of_them = check_genie(car("30s"))
    log = car("30s").log
    done_ns = sorted(row.done_ns - log.ready_ns for row in map(Request._make, log.requests) if row.state == 2)
    later = check_genie(car("8s", warmup=f"{done_ns[1]}ns"))

    assert 0 < later < all_of_them


def check_genie(result: RunResult) -> int:
    profile = read("genie-profile", genie_lines(result))
    wanted = expected_queries(result)
    log = result.log
    models = {i.name: i.llm.name for i in log.scenario.instances if i.llm and i.llm_path == "genie"}
    loads = {(log.clients[load.client], load.model): load for load in log.loads if load.role != "failed"}
    dialogs = {c.name: c for c in profile.components if c.type == "dialog"}

    assert dialogs.keys() == {name for name, model in models.items() if (name, model) in loads or name in dialogs}
    for name, dialog in dialogs.items():
        created = [event for event in dialog.events if event.is_create]
        assert len(created) == ((name, models[name]) in loads)
        for event in created:
            load = loads[name, models[name]]
            assert ns(event.figure("init-time")) == load.end_ns - load.start_ns
        found = [
            {
                "prompt": int(event.figure("num-prompt-tokens").value),
                "first_ns": ns(event.figure("time-to-first-token")),
                "tokens": int(event.figure("num-generated-tokens").value),
                "generation_ns": ns(event.figure("token-generation-time")),
            }
            for event in dialog.events
            if event.is_query
        ]
        assert found == wanted.get(name, [])
        for event, one in zip((e for e in dialog.events if e.is_query), found, strict=True):
            assert event.stop.value - event.start.value == event.duration.value
            rate = event.figure("token-generation-rate")
            if one["tokens"] > 1 and one["generation_ns"]:
                assert rate.value == pytest.approx((one["tokens"] - 1) * 1e9 / one["generation_ns"], rel=1e-12)
            else:
                assert rate is None
            prompt = event.figure("prompt-processing-rate")
            assert prompt.value == pytest.approx(one["prompt"] * 1e9 / one["first_ns"], rel=1e-12)
    check_embeddings(result, [c for c in profile.components if c.type == "embedding"])
    return sum(map(len, wanted.values()))


def check_embeddings(result: RunResult, found: list[Any]) -> None:
    """Each ViT that Genie ran, past the guard or through it, has its queries; one on path qnn has none."""
    log = result.log
    paths: dict[str, set[int]] = {}
    spans: dict[tuple[int, int], list[Execute]] = {}
    for row in (Execute(*row) for row in log.executes):
        if row.stage == 0:
            paths.setdefault(f"{log.clients[row.client]} vit", set()).add(row.path)
            spans.setdefault((row.client, row.request), []).append(row)
    names = [component.name for component in found]
    assert {name for name, of in paths.items() if of != {1}} <= set(names)
    assert not {name for name, of in paths.items() if of == {1}} & set(names)
    for component in found:
        client = log.clients.index(component.name.removesuffix(" vit"))
        done = [
            spans[request.client, request.request]
            for request in (Request(*row) for row in log.requests)
            if request.client == client and request.state == 2 and log.start_ns < request.done_ns <= log.end_ns
            if (client, request.request) in spans
        ]
        assert [(e.start.value, e.stop.value) for e in component.events if e.is_query] == [
            (min(row.called_ns for row in rows) // 1000, max(row.returned_ns for row in rows) // 1000) for rows in done
        ]


@pytest.mark.slow
def test_a_vit_on_genie_is_an_embedding_and_a_legacy_one_is_not_seen() -> None:
    genie = read("genie-profile", genie_lines(car("30s")))
    legacy = RunResult(simulate(load("vit_legacy", set_values=["run.duration=10s"]).base))

    embeddings = [c for c in genie.components if c.type == "embedding"]
    assert [c.name for c in embeddings] == [f"{name} vit" for name in car().log.clients]
    assert all(event.type.startswith("GenieEmbedding_") for c in embeddings for event in c.events)
    assert sum(event.is_query for c in embeddings for event in c.events) > 3
    assert {c.type for c in read("genie-profile", genie_lines(legacy)).components} == {"dialog"}


def test_the_rates_follow_the_newer_definition() -> None:
    source = from_text("g.json", "\n".join(genie_lines(car("30s"))))
    notes = formats.recognise_source(source).read(source, False).notes

    assert notes
    assert all("(n-1)/t" in note for note in notes)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("made", [car, evicted])
def test_tables_are_read_back_equal(made: Any, table: str, tmp_path: Path) -> None:
    frame = table_frame(made(), table)
    for suffix in ("csv", "parquet"):
        path = tmp_path / f"{table}.{suffix}"
        if suffix == "parquet":
            pytest.importorskip("pyarrow")
        write_table(made(), path, table)
        again = pd.read_csv(path, keep_default_na=False) if suffix == "csv" else pd.read_parquet(path)

        assert list(again.columns) == list(frame.columns)
        for name in frame.columns:
            assert plain(again[name]) == plain(frame[name]), name
    assert len(frame) > 0 or made is evicted or table == "slices"


def plain(column: pd.Series[Any]) -> list[Any]:
    """Return values that compare: numbers as integers, what is missing as None."""
    values = column.astype(object).tolist()
    whole = all(isinstance(v, int) or str(v).lstrip("-").isdigit() for v in values if not missing(v))
    return [None if missing(v) else int(v) if whole else str(v) for v in values]


def missing(value: object) -> bool:
    return value is pd.NA or value is None or value == "" or value != value  # noqa: PLR0124 - NaN


@pytest.mark.slow
@settings(max_examples=5)
@given(scenario=scenarios())
def test_any_table_of_records_is_read_back_equal(scenario: Scenario, tmp_path_factory: pytest.TempPathFactory) -> None:
    pytest.importorskip("pyarrow")
    result = RunResult(simulate(scenario))
    path = tmp_path_factory.mktemp("tables") / "executes.parquet"

    write_table(result, path)

    again = pd.read_parquet(path)
    assert {n: plain(again[n]) for n in again} == {n: plain(result.executes[n]) for n in result.executes}


def test_parquet_without_its_package_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(extra.importlib, "import_module", absent)

    with pytest.raises(HtpsimError, match=r"pip install htpsim\[parquet\]"):
        write_table(car(), tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HtpsimError, match="did you mean 'requests'"):
        write_table(car(), tmp_path / "x.csv", "request")


def refuse(word: str) -> None:
    raise AssertionError(word)


def test_figures_are_json_without_nan() -> None:
    json.loads("".join(genie_lines(evicted())), parse_constant=refuse)
