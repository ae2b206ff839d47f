"""Frames name what the log numbers, keep integers, and leave missing what was not reached."""

from __future__ import annotations

import subprocess
import sys

import pandas as pd
import pytest
from hypothesis import given, settings

from htpsim.results import RunLog, RunResult
from htpsim.results.columns import NEVER, Execute, Request
from tests.results.strategies import logs
from tests.results.synthetic import hand_log


@pytest.fixture(scope="module")
def result() -> RunResult:
    return RunResult(hand_log())


def test_one_flat_row_a_graph_execute(result: RunResult) -> None:
    x = result.executes

    assert len(x) == 11
    assert x["status"].tolist() == ["done"] * 9 + ["in flight"] * 2
    assert x.loc[8, ["client", "stage", "graph", "copy", "path", "priority"]].tolist() == [
        "a", "vit", "vit/graphs", "vit@0", "qnn", "NORMAL",
    ]  # fmt: skip
    assert x["account"].isna().tolist() == [path != "genie" for path in x["path"]]
    assert result.to_dataframe() is x


def test_what_was_not_reached_is_missing_not_minus_one(result: RunResult) -> None:
    last = result.executes.iloc[-1]

    assert last["granted_ns"] is pd.NA
    assert last["returned_ns"] is pd.NA
    assert last["called_ns"] == 900
    assert not (result.executes.select_dtypes("number").drop(columns="token") == NEVER).any(axis=None)
    assert result.requests["first_token_ns"].isna().sum() == 5
    assert result.tokens["gap_ns"].isna().tolist() == [True, False, False, False, True, False]


def test_every_time_and_size_is_an_integer(result: RunResult) -> None:
    for frame in (result.executes, result.requests, result.tokens, result.memory, result.loads, result.slices):
        for name in frame.columns:
            if name.endswith(("_ns", "_bytes")):
                assert pd.api.types.is_integer_dtype(frame[name]), name


def test_memory_accumulates_by_item_place_and_ledger(result: RunResult) -> None:
    device = result.memory[result.memory["ledger"] == "device"]

    assert device["ledger_bytes"].tolist() == [400, 700, 600]
    assert device["item_bytes"].tolist() == [400, 300, 300]
    assert result.memory["place_bytes"].tolist() == [50, 400, 700, 300, 0, 600]


def test_loads_and_copies(result: RunResult) -> None:
    assert result.loads["role"].tolist() == ["owner", "borrower", "owner"]
    assert result.copies["users"].tolist() == [1, 2, 1]
    assert result.slices["kind"].tolist() == ["run", "evict", "restore", "run"]


@settings(max_examples=20)
@given(logs())
def test_frames_say_what_the_rows_say(log: RunLog) -> None:
    result = RunResult(log)

    for frame, rows, kind in ((result.executes, log.executes, Execute), (result.requests, log.requests, Request)):
        for i, name in enumerate(kind._fields):
            if name.endswith("_ns"):
                assert frame[name].fillna(NEVER).tolist() == [row[i] for row in rows]
    assert result.executes["client"].tolist() == [log.clients[row[1]] for row in log.executes]


def test_a_frame_of_an_empty_log_has_its_columns() -> None:
    log = hand_log()
    log.executes, log.requests, log.slices, log.memory, log.loads, log.copies = [], [], [], [], [], []
    result = RunResult(log)

    assert list(result.executes.columns)[:4] == ["execute", "client", "request", "stage"]
    assert len(result.tokens) == len(result.memory) == len(result.loads) == len(result.copies) == 0


def test_results_start_without_pandas() -> None:
    program = "import sys, htpsim.results, htpsim.report; print(*{'pandas', 'matplotlib', 'scipy'} & set(sys.modules))"

    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert outcome.stdout.split() == []
