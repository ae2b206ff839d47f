"""Logs that a person reworded: sentences such as "Average NetRun latency: 22610 us ~= 22.61 ms", without sections.

They are read leniently only. A sentence counts only as a whole; "De-init time" is not an "Init time".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from htpsim.formats.qnn_viewer.log import Measurement, Section, ViewerLog
from htpsim.formats.source import Source, shown
from htpsim.formats.values import Value

_SENTENCE: Final = re.compile(
    r"\s*(?:[-*>]\s+)?(?P<label>[A-Za-z][^:]{2,70}):\s+(?P<number>\d{1,18}(?:\.\d{1,9})?)"
    r"(?:\s*(?P<unit>us|ms|inf/sec|count))?(?:\s*(?:~=|=|≈|\().*)?"
)

_TIMES: Final = {
    "netrun latency": "NetRun",
    "netrun time": "NetRun",
    "qnn execute time": "QNN (execute) time",
    "rpc execute time": "RPC (execute) time",
    "accelerator execute time": "Accelerator (execute) time",
    "accelerator execute excluding wait": "Accelerator (execute excluding wait) time",
    "accelerator execute excluding wait time": "Accelerator (execute excluding wait) time",
}
_STATISTICS: Final = {"average": "average", "avg": "average", "mean": "average", "min": "minimum", "max": "maximum"}
_OTHERS: Final = {
    "netrun ips": ("overall", "NetRun IPS", "inf/sec"),
    "hvx threads used": ("average", "Number of HVX threads used", "count"),
    "number of hvx threads used": ("average", "Number of HVX threads used", "count"),
    "init/load binary time": ("init", "NetRun", "us"),
    "init time": ("init", "NetRun", "us"),
    "load binary time": ("init", "NetRun", "us"),
    "finalize time": ("finalize", "NetRun", "us"),
    "de-init time": ("deinit", "NetRun", "us"),
    "deinit time": ("deinit", "NetRun", "us"),
}
_TITLES: Final = {
    "init": "Init",
    "finalize": "Finalize",
    "deinit": "De-Init",
    "overall": "Execute (Overall)",
    "average": "Execute (Average)",
    "minimum": "Execute (Min)",
    "maximum": "Execute (Max)",
}
_FEWEST: Final = 2
_ENDS: Final = tuple(f"{word}{mark}" for word in ("latency", "time", "ips", "used", "wait") for mark in (":", " :"))
"""How every label ends; a text without any of these is not looked at line by line."""


@dataclass(slots=True)
class _Found:
    line: int
    measurements: list[Measurement] = field(default_factory=list)


def meaning(label: str) -> tuple[str, str, str] | None:
    """Return the section, the event and the unit that a label stands for.

    >>> meaning("Min NetRun latency"), meaning("De-init time")
    (('minimum', 'NetRun', 'us'), ('deinit', 'NetRun', 'us'))
    """
    words = " ".join(label.lower().split())
    if words in _OTHERS:
        return _OTHERS[words]
    statistic, _, rest = words.partition(" ")
    if statistic in _STATISTICS and rest in _TIMES:
        return _STATISTICS[statistic], _TIMES[rest], "us"
    return None


def reworded_lines(source: Source) -> tuple[int, ...]:
    """Return the numbers of the lines that look reworded; none when there are too few to be sure."""
    lowered = source.text.lower()
    if not any(end in lowered for end in _ENDS):
        return ()
    numbers = [
        number
        for number, line in enumerate(source.lines, start=1)
        if (found := _SENTENCE.fullmatch(line)) and meaning(found["label"])
    ]
    return tuple(numbers) if len(numbers) >= _FEWEST else ()


def read_reworded(source: Source) -> tuple[ViewerLog, tuple[str, ...]]:
    """Take the figures by their words; two sentences about the same figure must agree.

    Raises
    ------
    FormatError
        When a sentence has no unit where it needs one, or contradicts an earlier one.
    """
    numbers = reworded_lines(source)
    sections: dict[str, _Found] = {}
    for number in numbers:
        sentence = _SENTENCE.fullmatch(source.lines[number - 1])
        known = meaning(sentence["label"]) if sentence else None
        if sentence is None or known is None:
            continue
        name, event, unit = known
        if sentence["unit"] is None and unit == "us":
            raise source.error(number, shown(source.lines[number - 1]), "a time with its unit, us or ms")
        digits = sentence["number"]
        value = Value(float(digits) if "." in digits else int(digits), sentence["unit"] or unit, number)
        section = sections.setdefault(name, _Found(number))
        earlier = next((item for item in section.measurements if item.event == event), None)
        if earlier is None:
            section.measurements.append(Measurement(event, value))
        elif (earlier.value.value, earlier.value.unit) != (value.value, value.unit):
            at = earlier.value.line
            raise source.error(number, f"another value for {event}", f"the one of line {at}")
    held = (Section(_TITLES[name], found.line, tuple(found.measurements)) for name, found in sections.items())
    log = ViewerLog(first_line=numbers[0], last_line=numbers[-1], truncated=False, reworded=True, sections=tuple(held))
    return log, ("reworded by hand, not a raw log: figures were taken by the words around them",)
