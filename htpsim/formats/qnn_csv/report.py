"""The table of a QNN profiling CSV, and what a reader of its figures should know."""

from __future__ import annotations

from statistics import median

from htpsim.formats.qnn_csv.log import NETRUN, CsvExecution, CsvLog, CsvMeasurement, Number
from htpsim.formats.values import Fact, row
from htpsim.units import TIME_UNITS

_LISTED_MAX = 40
_VALUES_MAX = 1000
_FIRST_SLOWER = 1.5
_WAITING = ("Accelerator (execute) time", "Accelerator (execute excluding wait) time")


def facts(log: CsvLog) -> tuple[Fact, ...]:
    """List phases value by value, executions by graph and event with mean, least and most."""
    rows = [row("file", name, value) for name, value in log.preamble]
    rows.append(Fact("file", "profiling level", log.level, note="derived from the rows, not stated"))
    rows += [Fact("file", f"column {name}", None, note="not in the file") for name in log.missing_columns]
    for phase in log.phases:
        rows += _all_values(phase.message, phase.measurements)
    rows += _all_values("EXECUTE", log.overall)
    for graph, executions in log.by_graph().items():
        rows += _of_graph(graph, executions)
    if not log.executions:
        rows.append(Fact("EXECUTE", NETRUN, None, note="no execution in the file"))
    return tuple(rows)


def _all_values(section: str, measurements: tuple[CsvMeasurement, ...]) -> list[Fact]:
    """List every value; one that repeats is numbered, never added up."""
    counts: dict[str, int] = {}
    for item in measurements:
        counts[item.event] = counts.get(item.event, 0) + 1
    seen: dict[str, int] = {}
    rows = []
    for item in measurements[:_VALUES_MAX]:
        seen[item.event] = seen.get(item.event, 0) + 1
        which = f"{seen[item.event]} of {counts[item.event]}" if counts[item.event] > 1 else ""
        rows.append(row(section, item.event, item.value, which))
    if len(measurements) > _VALUES_MAX:
        rows.append(Fact(section, "values not listed", len(measurements) - _VALUES_MAX, "count"))
    return rows


def _of_graph(graph: str, executions: list[CsvExecution]) -> list[Fact]:
    section = f"EXECUTE / {graph}" if graph else "EXECUTE"
    whole = [item for item in executions if item.complete]
    rows = [Fact(section, "executions", len(whole), "count", note="whole ones")]
    for name in dict.fromkeys(item.event for execution in whole for item in execution.measurements):
        values = [value for execution in whole for value in execution.events(name)]
        rows += _spread(section, name, values)
    cut = [item for item in executions if not item.complete]
    for execution in cut:
        rows += [row(section, item.event, item.value, "of a cut execution") for item in execution.measurements]
    for execution in (whole or cut)[:1]:
        listed = execution.operations[:_LISTED_MAX]
        rows += [row(section, f"op {item.event}", item.value) for item in listed]
        if len(execution.operations) > len(listed):
            rows.append(Fact(section, "ops not listed", len(execution.operations) - len(listed), "count"))
    return rows


def _spread(section: str, name: str, values: list[Number]) -> list[Fact]:
    if len(values) == 1 or len({item.value for item in values}) == 1:
        return [row(section, name, values[0], "" if len(values) == 1 else f"each of {len(values)}")]
    mean = round(sum(item.value for item in values) / len(values), 3)
    least = min(values, key=lambda item: item.value)
    most = max(values, key=lambda item: item.value)
    return [
        Fact(section, name, mean, values[0].unit, note=f"mean of {len(values)}"),
        row(section, name, least, "least"),
        row(section, name, most, "most"),
    ]


def warnings(log: CsvLog) -> tuple[str, ...]:
    """Say what is missing, cut, or easily misread."""
    notes = []
    if not log.executions and not log.phases:
        notes.append("the file has a header only: nothing was measured, which is not zero")
    if log.cut is not None:
        notes.append(f"line {log.cut.line} is cut off and not read")
    for item in log.executions:
        if not item.complete:
            notes.append(
                f"the execution of {item.graph} in line {item.line} is cut off: "
                "it is in no mean, and what it lacks is missing"
            )
    if log.level == "detailed":
        notes.append(
            "profiling was detailed, which itself slows execution (23 times in one public log): not for calibration"
        )
    for graph, executions in log.by_graph().items():
        whole = [item for item in executions if item.complete]
        notes += _first_run(graph, whole)
        notes += _waiting(graph, whole)
    return tuple(notes)


def _first_run(graph: str, whole: list[CsvExecution]) -> list[str]:
    times = [value.value for item in whole if (value := item.event(NETRUN)) is not None]
    middle = median(times[1:]) if len(times) > 2 else 0
    if not middle or times[0] <= _FIRST_SLOWER * middle:
        return []
    return [f"the first execution of {graph} took {times[0]} us, the median of the others is {middle} us"]


def _waiting(graph: str, executions: list[CsvExecution]) -> list[str]:
    """Point out where waiting, not running, makes the executions of a graph differ."""
    waits = []
    for item in executions:
        whole, busy = (item.event(name) for name in _WAITING)
        if whole is not None and busy is not None and whole.unit == busy.unit and whole.unit in TIME_UNITS:
            waits.append(whole.value - busy.value)
    if len(waits) < 2 or min(waits) < 0 or max(waits) < 2 * max(1, min(waits)):
        return []
    return [f"{graph} waits between {min(waits)} and {max(waits)} us on the accelerator before it runs"]
