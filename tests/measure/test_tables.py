"""Measured runs in the shapes of QNN's tools: our own readers find every time in them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from htpsim import formats
from htpsim.experiments.measured.measurement import by_kind, operators
from htpsim.formats.samples import mean_ns
from htpsim.formats.source import from_text
from htpsim.formats.values import ServiceQuery, time_ns
from htpsim.formats.writers.measured import Executions, Operator, measured_csv_lines, measured_viewer_lines
from tests.measure.support import MS, measured, measurement, runs

TIMES = st.lists(st.integers(1_001, 10**12), min_size=1, max_size=6)
NAMES = st.text("ab1/:_.,;\"'() \n\té", min_size=1, max_size=12)
OPERATORS = st.lists(st.builds(Operator, NAMES, NAMES, st.integers(1, 10**9).map(lambda us: us * 1_000)), max_size=4)


def read(lines: Any, name: str) -> tuple[Any, Any]:
    source = from_text("made", "\n".join(lines) + "\n")
    form = formats.recognise_source(source)
    assert form.name == name
    report = form.read(source, False)
    assert not any("cut off" in note for note in report.notes)
    return report.data, (form, source)


@given(TIMES, st.integers(0, 10**12))
def test_the_viewer_reads_every_statistic(times: list[int], load_ns: int) -> None:
    made = Executions(graph="net", said="by hand", load_ns=load_ns, runs=runs(times))

    log, (form, source) = read(measured_viewer_lines(made), "qnn-viewer")

    counts = {time: times.count(time) for time in times}
    for section, expected in ((log.average, mean_ns(counts)), (log.minimum, min(times)), (log.maximum, max(times))):
        assert time_ns(section.event("NetRun", "net"), "made") == expected
    loaded = log.init.event("NetRun") if log.init else None
    assert (loaded and time_ns(loaded, "made")) == (load_ns or None)
    assert form.service_time(source, ServiceQuery(graph="net")).value_ns == mean_ns(counts)


def test_back_to_back_runs_are_as_many_a_second_as_their_mean_says() -> None:
    log, _ = read(measured_viewer_lines(measurement().executions(measured())), "qnn-viewer")

    assert log.ips.value == 200


@given(TIMES, OPERATORS)
def test_the_csv_reads_every_run_and_operator(times: list[int], timed: list[Operator]) -> None:
    made = Executions(graph="net", said="by hand", load_ns=5 * MS, runs=runs(times, tuple(timed)))

    log, (form, source) = read(measured_csv_lines(made), "qnn-csv")

    assert [time_ns(one.event("NetRun"), "made") for one in log.executions] == times
    assert time_ns(log.phase("INIT").event("NetRun"), "made") == 5 * MS
    for one in log.executions:
        assert [time_ns(item.value, "made") for item in one.operations] == [op.run_ns for op in timed]
        assert [item.event for item in one.operations] == [op.label(number) for number, op in enumerate(timed)]
    if timed:
        assert [time_ns(one.event("GRAPH_EXECUTE"), "made") for one in log.executions] == [t - 1_000 for t in times]
    expected = [time - 1_000 if timed else time for time in times]
    assert list(form.samples(source, ServiceQuery(graph="net"))) == expected


def test_both_say_that_they_are_not_of_qnn() -> None:
    found = measurement(measured(profiled=runs([9 * MS], (Operator("a", "Conv", MS),))))

    for lines in (
        measured_viewer_lines(found.executions(found.measured[0])),
        measured_csv_lines(found.executions(found.measured[0], profiled=True)),
    ):
        text = "\n".join(lines)
        assert "not with QNN" in text
        assert "ONNX Runtime 1.99" in text


def test_operators_add_up_by_kind() -> None:
    pair = (Operator("a", "Conv", 3 * MS), Operator("b", "Relu", MS))
    other = (Operator("a", "Conv", 5 * MS), Operator("b", "Relu", MS))
    timed = operators((*runs([9 * MS], pair), *runs([9 * MS], other)))

    assert [(one.name, one.run_ns) for one in timed] == [("a", 4 * MS), ("b", MS)]
    assert by_kind(timed) == [("Conv", 1, 4 * MS, 0.8), ("Relu", 1, MS, 0.2)]
    assert operators(()) == []
