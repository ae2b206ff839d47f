"""What was written reads back bit for bit; what is no run directory is refused with file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htpsim.errors import FormatError, HtpsimError
from htpsim.results import RunLog, RunResult
from htpsim.results.columns import Execute, Request, Slice
from htpsim.results.read import read_log, summary_of_dict
from htpsim.results.write import write_run
from htpsim.scenario import load
from htpsim.sim import simulate
from tests.results.strategies import logs
from tests.results.synthetic import hand_log


def written(log: RunLog, folder: Path) -> RunLog:
    write_run(folder, RunResult(log), {})
    return read_log(folder, log.scenario, engine=log.engine)


def plain(log: RunLog) -> RunLog:
    """Return the log with plain rows, as an engine hands it over."""
    log.executes, log.requests, log.slices = (
        [tuple(r) for r in rows] for rows in (log.executes, log.requests, log.slices)
    )
    return log


@settings(max_examples=20)
@given(logs())
def test_a_log_reads_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, log: RunLog) -> None:
    assert written(log, tmp_path_factory.mktemp("run")) == plain(log)


@given(logs())
def test_a_summary_reads_back_from_its_json(log: RunLog) -> None:
    tree = RunResult(log).summary().to_dict()

    assert summary_of_dict(json.loads(json.dumps(tree))).to_dict() == tree


names = st.lists(
    st.text(min_size=1).filter(lambda t: t.isprintable() or "\n" in t), min_size=3, max_size=3, unique=True
)


@settings(max_examples=20)
@given(names)
def test_any_name_survives(tmp_path_factory: pytest.TempPathFactory, clients: list[str]) -> None:
    log = plain(hand_log())
    log.clients = clients

    assert written(log, tmp_path_factory.mktemp("run")) == log


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["legacy", "genie_registry", "legacy_llm_high"])
def test_an_engines_log_reads_back_and_gives_the_same_files(tmp_path: Path, variant: str) -> None:
    file = load("vit_migration", set_values=["run.duration=3s", "run.warmup=0s"])
    log = simulate(file.resolve(variant).scenario, 0)
    RunResult(log).write(tmp_path / "one")
    back = read_log(tmp_path / "one", log.scenario)
    RunResult(back).write(tmp_path / "two")

    assert back == log
    assert back.engine == log.engine
    for path in (tmp_path / "one").iterdir():
        if path.name != "provenance.json":
            assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("records.csv", lambda t: t.replace("\n0,", "\nx,", 1), "line 2: execute: got 'x', expected a whole number"),
        ("records.csv", lambda t: t.replace(",a,", ",aa,", 1), "client: got 'aa', expected one of"),
        ("records.csv", lambda t: t.replace("execute,", "call,", 1), "line 1: got 'call,"),
        ("records.csv", lambda t: t + "1,2\n", "got 2 fields, expected 31"),
        ("requests.csv", lambda t: t.replace(",done,", ",gone,", 1), "did you mean"),
        ("slices.csv", lambda t: t + '"', "expected CSV"),
        ("memory.csv", lambda t: t + "1,device,dram,x,\u00b2\n", "delta_bytes: got '\u00b2', expected a whole number"),
        ("log.json", lambda t: t[:-9], "expected the JSON of a run directory"),
        ("log.json", lambda t: "[]", "got [], expected dict"),
        ("log.json", lambda t: t.replace('"clients"', '"client"'), "got no 'clients'"),
        ("log.json", lambda t: t.replace('"end_ns": ', '"end_ns": 1.5, "e": ', 1), "end_ns: got 1.5, expected int"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_refused_with_file_and_line(tmp_path: Path, name: str, change, message: str) -> None:  # type: ignore[no-untyped-def]
    log = hand_log()
    write_run(tmp_path, RunResult(log), {})
    path = tmp_path / name
    before = path.read_text(encoding="utf-8")
    path.write_text(change(before), encoding="utf-8")
    assert path.read_text(encoding="utf-8") != before

    with pytest.raises(FormatError) as caught:
        read_log(tmp_path, log.scenario)

    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_a_name_that_stands_for_two_is_refused(tmp_path: Path) -> None:
    log = hand_log()
    log.graphs[1] = log.graphs[0]
    write_run(tmp_path, RunResult(log), {})

    with pytest.raises(FormatError, match=r"twice among the names in log\.json, expected each once"):
        read_log(tmp_path, log.scenario)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(HtpsimError, match=r"got no log\.json in it, expected a run directory"):
        read_log(tmp_path, hand_log().scenario)


def test_a_summary_of_another_version_is_refused() -> None:
    tree = RunResult(hand_log()).summary().to_dict()
    del tree["clients"]["a"]["ttft"]["p95"]

    with pytest.raises(FormatError, match=r"here: clients: a: ttft: got no 'p95'"):
        summary_of_dict(tree, "here")


def test_the_files_hold_every_column(tmp_path: Path) -> None:
    write_run(tmp_path, RunResult(hand_log()), {})

    for name, kind in (("records", Execute), ("requests", Request), ("slices", Slice)):
        header = (tmp_path / f"{name}.csv").read_text(encoding="utf-8").split("\n")[0]
        assert len(header.split(",")) == len(kind._fields)
