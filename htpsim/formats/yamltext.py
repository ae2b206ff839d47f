"""YAML with line numbers, built from the parser's events, so that nothing in a file can construct anything.

Anchors, aliases, tags and merge keys are refused: published performance files have none, and a few lines of
aliases can expand to gigabytes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from htpsim.errors import FormatError
from htpsim.formats.source import Source, shown
from htpsim.formats.tree import DEPTH_MAX, NODES_MAX, Content, Node, below
from htpsim.formats.values import Scalar

if TYPE_CHECKING:
    import yaml

_TAG: Final = "tag:yaml.org,2002:"
_DIGITS_MAX: Final = 300
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)")
_NOT_A_NUMBER: Final = re.compile(r"[-+]?\.(?:inf|nan)", re.IGNORECASE)


@dataclass(slots=True)
class _Open:
    """A mapping or sequence that has not ended yet."""

    where: str
    line: int
    content: dict[str, Node] | list[Node]
    key: str | None = None
    """The key that waits for its value."""


def parse(source: Source, expected: str = "a YAML document") -> Node:
    """Parse a whole file that holds one document.

    Raises
    ------
    FormatError
        When the text is not YAML, or uses what is refused here; with the line.

    Examples
    --------
    >>> from htpsim.formats.source import from_text
    >>> parse(from_text("perf.yaml", "a:\\n  b: 2.5\\n")).number("a", "b", unit="ms")
    Value(value=2.5, unit='ms', line=2)
    """
    import yaml

    if not source.text.strip():
        raise source.error(1, "an empty file", expected)
    try:
        # The C parser where PyYAML has it: forty times as fast on the largest published file.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(source.text)
        try:
            return _build(source, loader, expected)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # The end of the text is marked in the line behind the last one.
        line = min(mark.line + 1, len(source.text.rstrip("\n").split("\n"))) if mark else 1
        raise source.error(line, f"no valid YAML ({error.problem})", expected) from error
    except yaml.YAMLError as error:
        raise source.error(1, f"no valid YAML ({shown(str(error))})", expected) from error


class _Builder:
    """Collects the nodes of one document while its events pass by."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.stack: list[_Open] = []
        self.root: Node | None = None
        self.nodes = 0

    def open(self, content: dict[str, Node] | list[Node], line: int) -> None:
        if len(self.stack) >= DEPTH_MAX:
            raise self.source.error(line, "a deeper level", f"at most {DEPTH_MAX} levels of nesting")
        if self.awaits_key():
            raise self.source.error(line, "a collection as a key", "a plain key")
        self.stack.append(_Open(self.place(), line, content))

    def close(self) -> None:
        done = self.stack.pop()
        self.attach(Node(done.content, done.line, done.where, self.source.name))

    def awaits_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].content, dict) and self.stack[-1].key is None

    def key(self, key: str, line: int) -> None:
        top = self.stack[-1]
        if isinstance(top.content, dict) and key in top.content:
            first = top.content[key].line
            got = f"a second key {shown(key)} (the first is in line {first})"
            raise self.source.error(line, got, "each key once")
        top.key = key

    def scalar(self, content: Content, line: int) -> None:
        self.attach(Node(content, line, self.place(), self.source.name))

    def place(self) -> str:
        """Name the place of the value that comes next."""
        if not self.stack:
            return ""
        top = self.stack[-1]
        return below(top.where, len(top.content) if isinstance(top.content, list) else top.key or "")

    def attach(self, node: Node) -> None:
        self.nodes += 1
        if self.nodes > NODES_MAX:
            raise self.source.error(node.line, "one more", f"at most {NODES_MAX} values")
        if not self.stack:
            self.root = node
            return
        top = self.stack[-1]
        if isinstance(top.content, list):
            top.content.append(node)
        elif top.key is not None:
            top.content[top.key] = node
            top.key = None


def _build(source: Source, loader: Any, expected: str) -> Node:
    import yaml

    builder = _Builder(source)
    while loader.check_event():
        event = loader.get_event()
        line = event.start_mark.line + 1
        if isinstance(event, yaml.NodeEvent):
            _refuse_extras(source, event, line)
        match event:
            case yaml.DocumentStartEvent() if builder.root is not None:
                raise source.error(line, "a second document", "one document a file")
            case yaml.MappingStartEvent():
                builder.open({}, line)
            case yaml.SequenceStartEvent():
                builder.open([], line)
            case yaml.CollectionEndEvent():
                builder.close()
            case yaml.ScalarEvent() if builder.awaits_key():
                builder.key(event.value, line)
            case yaml.ScalarEvent():
                builder.scalar(_scalar(source, loader, event, line), line)
    if builder.root is None:
        raise source.error(1, "no document", expected)
    return builder.root


def _refuse_extras(source: Source, event: yaml.NodeEvent, line: int) -> None:
    import yaml

    if isinstance(event, yaml.AliasEvent):
        raise source.error(line, f"the alias *{event.anchor}", "values written out, without anchors and aliases")
    if event.anchor is not None:
        raise source.error(line, f"the anchor &{event.anchor}", "values written out, without anchors and aliases")
    tag = getattr(event, "tag", None)
    if tag is not None and tag != "!":
        raise source.error(line, f"the tag {shown(tag)}", "plain values without tags")


def _scalar(source: Source, loader: Any, event: yaml.ScalarEvent, line: int) -> Content:
    """Resolve a scalar as YAML 1.1 does; what is no plain number, flag or null stays text (dates, hex, 1:30)."""
    import yaml

    text: str = event.value
    kind = str(loader.resolve(yaml.ScalarNode, text, event.implicit)).removeprefix(_TAG)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in ("true", "yes", "on")
    if len(text) > _DIGITS_MAX:
        return text
    result: Scalar = text
    if kind == "int" and _INTEGER.fullmatch(text):
        result = int(text.replace("_", ""))
    if kind == "float" and ":" not in text:
        result = math.nan if _NOT_A_NUMBER.fullmatch(text) else float(text.replace("_", ""))
        if not math.isfinite(result):
            raise FormatError(f"{source.name}:{line}: got {shown(text)}, expected a finite number")
    return result
