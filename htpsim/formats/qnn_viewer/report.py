"""The table of a qnn-profile-viewer log, and what a reader of its figures should know."""

from __future__ import annotations

from htpsim.formats.qnn_viewer.log import Number, ViewerLog
from htpsim.formats.values import Fact, row
from htpsim.units import TIME_UNITS

_NEAR = 0.01


def facts(log: ViewerLog) -> tuple[Fact, ...]:
    """List everything that was measured, in the order of the file, after what the log says of itself."""
    rows = [row("log", f"version of {tool}", version) for tool, version in log.versions]
    derived = "derived from the names of the events, not stated"
    rows += [Fact("log", "backend", log.backend, note=derived if log.backend else "the events do not tell")]
    rows += [Fact("log", "profiling level", log.level, note=derived if log.level else "the events do not tell")]
    rows += [Fact("log", "number of inferences", None, note="not in such a log")]
    for section in log.sections:
        rows += [row(section.title, item.event, item.value, _remark(item.event)) for item in section.measurements]
        for graph in section.graphs:
            place = f"{section.title} / {graph.name}"
            rows += [row(place, item.event, item.value, _remark(item.event)) for item in graph.measurements]
            rows += [row(place, f"op {item.event}", item.value) for item in graph.operations]
    for title, held in (("Execute (Min)", log.minimum), ("Execute (Max)", log.maximum)):
        if log.average is not None and held is None:
            rows.append(Fact(title, "NetRun", None, note="not in the log"))
    return tuple(rows)


def _remark(event: str) -> str:
    return "the tool has no name for this event" if event == "null" else ""


def warnings(log: ViewerLog) -> tuple[str, ...]:
    """Say what is missing, cut, or easily misread."""
    notes = ["the number of inferences is not in the log"]
    if log.inferences_asked:
        asked = log.inferences_asked
        notes[0] += f"; a command quoted in line {asked.line} asks for {asked.value}"
    if log.truncated:
        notes.append(
            f"the log ends in the middle, at line {log.last_line}: what it does not state is missing, not zero"
        )
    average = log.average.event("NetRun") if log.average else None
    ips = log.ips
    if ips is not None and ips.value > 0 and average is not None and average.unit in TIME_UNITS:
        per_inference = 1e6 / ips.value
        measured = _microseconds(average)
        if abs(per_inference - measured) > _NEAR * measured:
            notes.append(
                f"IPS is not 1/latency: 1/{ips.value} is {per_inference:.0f} us, the average NetRun is "
                f"{measured:.0f} us, because IPS includes input and output; take the time, not the IPS"
            )
    if log.level == "detailed":
        notes.append(
            "profiling was detailed, which itself slows execution (23 times in one public log): not for calibration"
        )
    return tuple(notes)


def _microseconds(value: Number) -> float:
    return value.value * TIME_UNITS[value.unit] / TIME_UNITS["us"]
