"""Text of snpe-diagview: one block a run of snpe-net-run, with times of creation, of execution, and by layer.

A block begins with "Log File Created"; several may stand in one file, and prose or Markdown around them is passed
over. Where the processor is no DSP, its times are printed as ``0`` without a unit, which means that there are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from htpsim.errors import FormatError
from htpsim.formats.form import Format, Match
from htpsim.formats.samples import choose, refuse_selectors
from htpsim.formats.skipped import Skipped
from htpsim.formats.source import Source, shown
from htpsim.formats.values import Fact, Report, ServiceQuery, ServiceTime, Value, row, time_ns

NAME: Final = "snpe-diagview"

PREFERRED: Final = ("Accelerator Time", "Snpe Accelerator Time", "Total Inference Time")
"""Which time is the service time, best first: the accelerator's own where it is printed."""

_OPENING: Final = "Log File Created:"
_VERSION: Final = "Software library version:"
_HEADS: Final = ("Time Scale:", "Epoch Timestamp:", "Steady Clock Timestamp:", _OPENING, _VERSION)
_TITLE: Final = re.compile(r"(?P<title>[A-Za-z][\w ()-]{0,60}(?:Statistics|Times)(?: \([\w ]{1,30}\))?):", re.ASCII)
_MEASURE: Final = re.compile(
    r"(?P<name>[A-Za-z][\w ()/-]{0,60}): (?P<digits>\d{1,18})(?: (?P<unit>us|cycles))?", re.ASCII
)
_SUBNET: Final = re.compile(
    r"Subnet (?P<index>\d{1,6}) \((?P<on>\w{1,20})\) : (?P<digits>\d{1,18}) (?P<unit>us|cycles)", re.ASCII
)
_LAYER: Final = re.compile(
    r"(?P<index>\d{1,6}): (?:(?P<name>\S.{0,400}?) : )?"
    r"(?P<digits>\d{1,18}) (?P<unit>us|cycles)(?: : (?P<on>\w{1,20}))?",
    re.ASCII,
)
_MARKUP: Final = re.compile(r"[-=_*`#~\s]*")
_HEADING: Final = re.compile(r"#{1,6} (?P<title>\S.{0,200})")
_COUNTS: Final = "Num times"
_LISTED_MAX: Final = 200
_BLOCKS_MAX: Final = 1000
_LINE_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Measure:
    """One time or count."""

    section: str
    name: str
    value: Value[int] | None
    """``None`` where it is printed as 0 without a unit."""

    line: int


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer, or one subnet of layers."""

    index: int
    name: str | None
    value: Value[int]
    processor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnpeBlock:
    """One run."""

    title: str
    """The heading above it, else ``block 1`` and so on."""

    line: int
    version: Value[str] | None
    measures: tuple[Measure, ...]
    subnets: tuple[Layer, ...]
    layers: tuple[Layer, ...]

    def measure(self, name: str) -> Value[int] | None:
        """Return a value by its name, ``None`` where it is absent or not measured."""
        return next((item.value for item in self.measures if item.name == name), None)

    @property
    def processors(self) -> tuple[str, ...]:
        """Where the subnets ran."""
        return tuple(dict.fromkeys(item.processor for item in self.subnets if item.processor))


@dataclass(frozen=True, slots=True)
class SnpeLog:
    """All blocks of a file."""

    blocks: tuple[SnpeBlock, ...]


def sniff(source: Source) -> Match:
    """Say whether such a block is in the text."""
    if "SNPE" not in source.text and "Dnn Runtime" not in source.text:
        return Match.NO
    titles = sum(_TITLE.fullmatch(line.strip()) is not None for line in source.lines)
    opened = _OPENING in source.text and _VERSION in source.text
    return Match.YES if opened and titles else Match.TRACES if titles > 1 else Match.NO


def read(source: Source, lenient: bool = False) -> Report:
    r"""Read a text.

    Parameters
    ----------
    source
        The text.
    lenient
        Skip lines of a block that cannot be read, with a note for each.

    Raises
    ------
    FormatError
        Names the line of a block that could not be read.

    Examples
    --------
    >>> from htpsim.formats.source import from_text
    >>> text = "Log File Created: x\nSNPE Execute Statistics (Averaged):\n-----\n  Total Inference Time: 69 us\n"
    >>> read(from_text("a.txt", text)).data.blocks[0].measure("Total Inference Time")
    Value(value=69, unit='us', line=4)
    """
    log, notes = _parse(source, lenient)
    return Report(NAME, source.name, log, tuple(_facts(log)), source.notes + notes + _warnings(log))


def service_time(source: Source, query: ServiceQuery) -> ServiceTime:
    """Find the time of a block, which is an average; the block is chosen by its title."""
    refuse_selectors(source.name, query)
    log, _ = _parse(source, lenient=False)
    where = f"{source.name}:{log.blocks[0].line}"
    title = choose(where, "graph", query.graph, [block.title for block in log.blocks])
    block = next(block for block in log.blocks if block.title == title)
    choose(f"{source.name}:{block.line}", "statistic", query.statistic, ["average"])
    timed: dict[str, Value[int]] = {}
    for item in block.measures:
        if item.value is not None and item.value.unit == "us":
            timed.setdefault(item.name, item.value)
    wanted = query.event or next((name for name in PREFERRED if name in timed), None)
    event = choose(f"{source.name}:{block.line}", "event", wanted, list(timed))
    value = timed[event]
    return ServiceTime(time_ns(value, source.name), f"{source.name}:{value.line} {event} of {title}", "average")


@dataclass(slots=True)
class _Draft:
    title: str
    line: int
    version: Value[str] | None = None
    section: str = ""
    measures: list[Measure] = field(default_factory=list)
    subnets: list[Layer] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)

    def made(self) -> SnpeBlock:
        return SnpeBlock(
            title=self.title,
            line=self.line,
            version=self.version,
            measures=tuple(self.measures),
            subnets=tuple(self.subnets),
            layers=tuple(self.layers),
        )


def _parse(source: Source, lenient: bool) -> tuple[SnpeLog, tuple[str, ...]]:
    blocks: list[_Draft] = []
    skipped = Skipped()
    heading = ""
    inside = False
    for number, line in enumerate(source.lines, start=1):
        text = line.strip()
        found = _HEADING.fullmatch(text) if len(text) < _LINE_MAX else None
        if found or text.startswith("```"):
            heading, inside = (found["title"] if found else heading), False
            continue
        if text.startswith(_OPENING) or (_TITLE.fullmatch(text) and not inside):
            inside = True
            if len(blocks) == _BLOCKS_MAX:
                raise source.error(number, f"block {_BLOCKS_MAX + 1}", f"at most {_BLOCKS_MAX} in a file")
            blocks.append(_Draft(_free(heading or f"block {len(blocks) + 1}", blocks), number))
        if not inside or _MARKUP.fullmatch(text):
            continue
        try:
            _take(source, blocks[-1], number, text)
        except FormatError as error:
            if not lenient:
                raise
            skipped.add(number, error)
    if not blocks:
        number = next((number for number, line in enumerate(source.lines, start=1) if line.strip()), 1)
        got = shown(source.lines[number - 1]) if source.text.strip() else "an empty file"
        raise source.error(number, got, f"a block of snpe-diagview, which begins with '{_OPENING}'")
    return SnpeLog(tuple(draft.made() for draft in blocks)), skipped.notes


def _free(title: str, blocks: list[_Draft]) -> str:
    """Return a title, with a number where another block has it already."""
    count = sum(draft.title.split(" #")[0] == title for draft in blocks)
    return f"{title} #{count + 1}" if count else title


def _take(source: Source, block: _Draft, number: int, text: str) -> None:
    if text.startswith(_VERSION):
        block.version = Value(text.removeprefix(_VERSION).strip(), "", number)
        return
    if text.startswith(_HEADS):
        return
    title = _TITLE.fullmatch(text)
    if title is not None:
        block.section = title["title"]
        return
    subnet, layer = _SUBNET.fullmatch(text), _LAYER.fullmatch(text)
    found = subnet or layer
    if found is not None:
        value = Value(int(found["digits"]), found["unit"], number)
        if subnet is not None:
            block.subnets.append(Layer(int(subnet["index"]), None, value, subnet["on"]))
        elif layer is not None:
            name = layer["name"].removesuffix(" (cycles)") if layer["name"] else None
            block.layers.append(Layer(int(layer["index"]), name, value, layer["on"]))
        return
    measure = _MEASURE.fullmatch(text)
    if measure is None:
        raise source.error(
            number, shown(text), "a time such as 'Init: 4009 us', a subnet, a layer or a section's title"
        )
    counted = measure["name"].startswith(_COUNTS)
    if measure["unit"] is None and int(measure["digits"]) and not counted:
        raise source.error(number, f"{shown(text)} without a unit", "a time in us, or 0 where there is none")
    unit = measure["unit"] or ("count" if counted else None)
    held = Value(int(measure["digits"]), unit, number) if unit else None
    block.measures.append(Measure(block.section, measure["name"], held, number))


def _facts(log: SnpeLog) -> Iterator[Fact]:
    for block in log.blocks:
        place = block.title
        yield row(place, "library version", block.version)
        yield Fact(place, "processors", ", ".join(block.processors) or None, note="of the subnets")
        for item in block.measures:
            if item.value is None:
                yield Fact(place, item.name, None, line=item.line, note="printed as 0 without a unit")
            else:
                yield row(place, item.name, item.value)
        for layer in block.subnets:
            yield row(place, f"subnet {layer.index}", layer.value, layer.processor or "")
        for layer in block.layers[:_LISTED_MAX]:
            yield row(place, f"layer {layer.name or layer.index}", layer.value, layer.processor or "")
        if len(block.layers) > _LISTED_MAX:
            yield Fact(place, "layers not listed", len(block.layers) - _LISTED_MAX, "count")


def _warnings(log: SnpeLog) -> tuple[str, ...]:
    notes = []
    for block in log.blocks[:50]:
        if not block.measures:
            notes.append(f"{block.title}: nothing was measured, which is not zero")
        if any(item.value is None for item in block.measures):
            notes.append(f"{block.title}: times printed as 0 without a unit were not measured, and are missing here")
        total, spent = sum(item.value.value for item in block.layers), block.subnets
        if len(spent) == 1 and block.layers and total != spent[0].value.value:
            notes.append(
                f"{block.title}: the layers sum to {total} {spent[0].value.unit}, "
                f"their subnet is stated as {spent[0].value.value}"
            )
    return tuple(notes)


FORMAT: Final = Format(
    NAME,
    "SNPE diagview text",
    "what snpe-diagview prints: creation, execution, subnets and layers of a run on CPU, GPU or DSP",
    sniff,
    read,
    service_time,
)
