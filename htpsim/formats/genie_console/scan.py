"""One pass over the lines of a console log, which several writers share.

    Genie:   8545.8ms [  INFO ]  <I> QnnGraph_execute started. graph = 0x1    QNN, with the clock of QNN
    Genie:      0.4ms [  INFO ] Key: soc_model, Value: 88                      Genie, with another clock
    [INFO]  "Allocated total size = 323453440 across 10 buffers"               libGenie, without a clock
    Init Time: 6549034 us                                                      genie-t2t-run
     [W] Time to First Token: 0.12 s                                           a service

They write without waiting for each other, so one's line may stand in the middle of another's; a line of libGenie is
taken out, and the torn one mended. What a prompt or a model says is not read as log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, TypeVar

from htpsim.errors import FormatError
from htpsim.formats.genie_console.data import Allocation, LogError
from htpsim.formats.genie_console.executions import Pairing
from htpsim.formats.genie_console.kpis import KpiReader
from htpsim.formats.genie_console.memory import MemoryReader
from htpsim.formats.skipped import Skipped
from htpsim.formats.source import shown
from htpsim.formats.stream import Lines
from htpsim.formats.values import Value

T = TypeVar("T")

LINE_READ_MAX: Final = 64 * 2**10
"""A log's own lines are short; of a longer one, which holds a prompt, only the beginning and an [END] are looked at."""

_KEPT_MAX: Final = 10_000
_TORN_MAX: Final = 400
_STAMPED: Final = re.compile(r"(\d{1,12})\.(\d{1,6})ms ((?:\[[^\]]{0,60}\]){1,6})\s+(?:<([IWEVD])> )?(.*)", re.ASCII)
_NEXT: Final = re.compile(r"(?<!^)(?=Genie:\s{1,12}\d{1,12}\.\d{1,6}ms \[)", re.ASCII)
_PLAIN: Final = re.compile(r'\[ {0,4}(INFO|WARN|WARNING|ERROR) {0,4}\] {1,4}"([^"]*)"')
_TORN: Final = re.compile(r"\s*(?:G|Ge|Gen|Geni|Genie|Genie:.*)|\s*\d{1,12}(?:\.\d{1,6}(?:m|ms.*)?)?", re.ASCII)
_STARTED: Final = re.compile(r"QnnGraph_execute started\. graph = (0x[0-9a-f]{1,16})")
_FINISHED: Final = re.compile(r"Graph (\S{1,200}) execution finished with result (\d{1,10})", re.ASCII)
_LOADED: Final = re.compile(r"QnnContext_createFromBinary done successfully\. context = 0x([0-9a-f]{1,15})")
_FREED: Final = re.compile(r"QnnContext_free started\. context = 0x([0-9a-f]{1,15})")
_EXISTING: Final = re.compile(r"Number of existing contexts: (\d{1,9}), graphs: (\d{1,9})", re.ASCII)
_SETTING: Final = re.compile(r"Key: ([\w ]{1,60}), Value: (.{1,200})")
_INSERTED: Final = re.compile(r"Inserting graph (\S{1,200}) as idx (\d{1,4}) for AR-(\d{1,6}) CL-(\d{1,8})", re.ASCII)
_GRAPHS: Final = re.compile(r"qnn-api initialized with (\d{1,9}) graph\(s\)", re.ASCII)
_BUILD: Final = re.compile(r"(\w{1,40})\s+build version: (\S{1,80})")
_MODEL: Final = re.compile(r"Time: model_initialize \[([^\]]{1,80})\] (\d{1,12}\.\d{1,6})", re.ASCII)
_ARCH: Final = re.compile(r"DSP ARCH graph is set to (\d{1,4}) for graph", re.ASCII)
_HVX: Final = re.compile(r"Number of HVX threads to be used .{1,60}Max available \((\d{1,4})\) will be used", re.ASCII)
_ALLOCATED: Final = re.compile(r"Allocated total size = (\d{1,18}) across (\d{1,9}) buffers", re.ASCII)
_CREATE: Final = re.compile(r"Using create From Binary[\w ]{0,30}")
_CONTEXT_INDEX: Final = re.compile(r"context index = (\d{1,9})\b", re.ASCII)
_CODE: Final = re.compile(r"(?:: err |: )(\d{4,6})$", re.ASCII)
_VERSION: Final = re.compile(
    r"Using (?:lib)?Genie\S{0,20} version (\d[\w.]{0,40})|libGenie\S{0,20} = (\d[\w.]{0,40})", re.ASCII
)
_SERVICE: Final = re.compile(r"GenieAPIService: (\d[\w.]{0,40}), Genie Library: (\d[\w.]{0,40})", re.ASCII)
_TAG: Final = re.compile(r"\[[A-Z]\] ")
_FAILURE: Final = re.compile(r"Fail(?:ed|ure) to [a-z ]{3,60}\.?")
_LOAD_TOTAL: Final = re.compile(r"load successfully! use second: (\d{1,9}(?:\.\d{1,9})?)", re.ASCII)
_NODE: Final = re.compile(r"> (?:node|dialog) create (\S{1,100}) \S")
_TEXT_END: Final = ("--- Query Context End ---", "--- Token Summary Start ---", "[KPIS]:")


@dataclass(slots=True)
class Scanner:
    """Takes lines one after another; what it found stands in its fields."""

    file: Lines
    pairing: Pairing
    kpis: KpiReader = field(default_factory=KpiReader)
    memory: MemoryReader = field(default_factory=MemoryReader)
    version: Value[str] | None = None
    service: Value[str] | None = None
    builds: dict[str, Value[str]] = field(default_factory=dict)
    settings: list[tuple[str, Value[str]]] = field(default_factory=list)
    model_files: list[Value[str]] = field(default_factory=list)
    graphs_announced: Value[int] | None = None
    graphs_of: dict[tuple[int, int], None] = field(default_factory=dict)
    arch: Value[int] | None = None
    hvx_threads: Value[int] | None = None
    create_modes: list[Value[str]] = field(default_factory=list)
    contexts_created: int = 0
    context_loads: list[tuple[int, Value[float]]] = field(default_factory=list)
    most: tuple[Value[int], Value[int]] | None = None
    left: list[tuple[int, int, int, int]] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)
    model_loads: list[tuple[str, Value[float]]] = field(default_factory=list)
    load_total: Value[float] | None = None
    errors: list[LogError] = field(default_factory=list)
    failures: list[Value[str]] = field(default_factory=list)
    torn_lines: int = 0
    long_lines: list[int] = field(default_factory=list)
    known_lines: int = 0
    """How many lines were of a kind that only such a log has."""

    _rest: str = ""
    _in_text: bool = False
    _node: str | None = None
    _loading_ns: int | None = None
    _freeing: int | None = None

    def take(self, number: int, line: str) -> None:
        """Take one line.

        Raises
        ------
        FormatError
            Names the line of a figure that cannot be read, and of a clock that runs backwards.
        """
        if len(line) > LINE_READ_MAX:
            line = line[:LINE_READ_MAX] + ("[END]" if line.rstrip().endswith("[END]") else "")
            if len(self.long_lines) < _KEPT_MAX:
                self.long_lines.append(number)
        if self._rest:
            line, self._rest = self._rest + line, ""
        if '"' in line and (found := _PLAIN.search(line)):
            before = line[: found.start()]
            self._of_library(number, found[1], found[2])
            if before.strip() and _TORN.fullmatch(before) and not line[found.end() :].strip():
                self.torn_lines += 1
                # A line torn again and again is longer than any line of a log; its beginning is given up.
                self._rest = before if len(before) <= _TORN_MAX else ""
            return
        if "ms [" in line:
            pieces = _NEXT.split(line) if line.count("ms [") > 1 else [line]
            self.torn_lines += len(pieces) - 1
            for piece in pieces:
                if stamped := _STAMPED.search(piece):
                    self._stamped(number, stamped)
        else:
            self._of_console(number, line.strip())

    def _stamped(self, number: int, found: re.Match[str]) -> None:
        """Take a line with a clock, of QNN when it has a level in angle brackets, else of Genie."""
        level, text = found[4], found[5]
        if level is None:
            self._of_genie(number, text)
            return
        self.known_lines += 1
        if level == "V":
            self._verbose(number, text)
            return
        if level != "I":
            return
        now_ns = int(found[1]) * 1_000_000 + int(found[2].ljust(6, "0"))
        if text.startswith("QnnGraph_execute"):
            if started := _STARTED.match(text):
                self.pairing.started(now_ns, started[1], number)
        elif finished := _FINISHED.match(text):
            self.pairing.finished(now_ns, finished[1], finished[2], number)
        elif text.startswith("QnnContext_"):
            self._context(number, text, now_ns)
        elif existing := _EXISTING.match(text):
            self._count(number, int(existing[1]), int(existing[2]))
        elif text.startswith("QnnLog_create started"):
            self.pairing.restart()

    def _context(self, number: int, text: str, now_ns: int) -> None:
        if text.startswith("QnnContext_createFromBinary started"):
            self._loading_ns = now_ns
        elif loaded := _LOADED.match(text):
            self.contexts_created += 1
            if self._loading_ns is not None and 0 < self._loading_ns <= now_ns and len(self.context_loads) < _KEPT_MAX:
                spent = Value(round((now_ns - self._loading_ns) / 1e6, 6), "ms", number)
                self.context_loads.append((int(loaded[1], 16), spent))
            self._loading_ns = None
        elif freed := _FREED.match(text):
            self._freeing = int(freed[1], 16)

    def _count(self, number: int, contexts: int, graphs: int) -> None:
        if self.most is None or contexts > self.most[0].value:
            self.most = (Value(contexts, "count", number), Value(graphs, "count", number))
        if self._freeing is not None and len(self.left) < _KEPT_MAX:
            self.left.append((self._freeing, contexts, graphs, number))
        self._freeing = None

    def _verbose(self, number: int, text: str) -> None:
        if text[:7] in ("Context", "Setting", "Graph m", "PD 0 ch") or text.startswith("PD "):
            self.memory.take(number, text)
        elif text.startswith("DSP ARCH") and (found := _ARCH.match(text)):
            self.arch = Value(int(found[1]), "", number)
        elif text.startswith("Number of HVX") and (found := _HVX.match(text)):
            self.hvx_threads = Value(int(found[1]), "count", number)

    def _of_genie(self, number: int, text: str) -> None:
        if found := _SETTING.match(text):
            if len(self.settings) < _KEPT_MAX:
                self.settings.append((found[1], Value(found[2].strip(), "", number)))
        elif found := _INSERTED.match(text):
            tokens, context_length = int(found[3]), int(found[4])
            self.pairing.insert(found[1], int(found[2]), tokens, context_length)
            if len(self.graphs_of) < _KEPT_MAX:
                self.graphs_of[tokens, context_length] = None
        elif text.startswith("Model files"):
            names = re.findall(r'"([^"]{1,400})"', text)
            self.model_files = [Value(name, "", number) for name in names[:_KEPT_MAX]]
        elif found := _GRAPHS.match(text):
            self.graphs_announced = Value(int(found[1]), "count", number)
        elif found := _BUILD.match(text):
            if len(self.builds) < _KEPT_MAX:
                self.builds[found[1]] = Value(found[2], "", number)
        elif found := _MODEL.match(text):
            if len(self.model_loads) < _KEPT_MAX:
                self.model_loads.append((found[1].strip(), Value(float(found[2]), "ms", number)))
        else:
            return
        self.known_lines += 1

    def _of_library(self, number: int, level: str, text: str) -> None:
        """Take a line of libGenie: level in brackets, text in quotes."""
        self.known_lines += 1
        if found := _ALLOCATED.fullmatch(text):
            total, buffers = (Value(int(found[1]), "bytes", number), Value(int(found[2]), "count", number))
            self._keep(number, self.allocations, Allocation(total, buffers, self._node))
        elif _CREATE.fullmatch(text):
            self._keep(number, self.create_modes, Value(text.removeprefix("Using create "), "", number))
        elif level == "ERROR":
            code, index = _CODE.search(text), _CONTEXT_INDEX.search(text)
            stated = LogError(text, number, int(code[1]) if code else None, int(index[1]) if index else None)
            self._keep(number, self.errors, stated)

    def _keep(self, number: int, kept: list[T], item: T) -> None:
        if len(kept) >= _KEPT_MAX:
            raise self.file.error(number, f"{_KEPT_MAX + 1} of the same kind of line", f"at most {_KEPT_MAX}")
        kept.append(item)

    def _of_console(self, number: int, text: str) -> None:
        """Take a line without clock: of the program, of a service, of a script, of a prompt or of the model."""
        if not text:
            return
        tag = _TAG.match(text)
        text = text[tag.end() :] if tag else text
        if self._in_text:
            self._in_text = not (text in _TEXT_END or text.endswith("[END]"))
            if text == "[KPIS]:" or text.startswith("--- Token Summary Start"):
                self.kpis.open(number)
            elif text == "Failed to query.":
                self._keep(number, self.failures, Value(text, "", number))
        elif text.startswith(("[PROMPT]:", "[BEGIN]:", "[Prompt] [", "[Response] [")):
            self.known_lines += 1
            self._in_text = "[END]" not in text
        elif text == "[KPIS]:" or text.startswith("--- Token Summary Start"):
            self.known_lines += 1
            self.kpis.open(number)
        elif self.kpis.is_figure(text):
            self._figures(number, text)
        elif text.startswith("--- Token Summary End"):
            self.kpis.close()
        else:
            self._stated(number, text)

    def _figures(self, number: int, text: str) -> None:
        self.known_lines += 1
        expected = self.kpis.take(number, text)
        if expected:
            raise self.file.error(number, shown(text), expected)
        if len(self.kpis.queries) > _KEPT_MAX:
            raise self.file.error(number, f"more than {_KEPT_MAX} queries", f"at most {_KEPT_MAX}")

    def _stated(self, number: int, text: str) -> None:
        """Take a line that says one thing."""
        if text.startswith("Fail") and _FAILURE.fullmatch(text):
            self._keep(number, self.failures, Value(text, "", number))
        elif "enie" in text and (found := _VERSION.search(text)):
            self._note_version(number, found[1] or found[2])
        elif "enie" in text and (found := _SERVICE.match(text)):
            self.service = Value(found[1], "", number)
            self._note_version(number, found[2])
        elif found := _LOAD_TOTAL.match(text):
            self.load_total = Value(float(found[1]), "s", number)
        elif text.startswith(">") and (found := _NODE.match(text)):
            self._node = found[1]
        else:
            return
        self.known_lines += 1

    def _note_version(self, number: int, version: str) -> None:
        version = version.rstrip(".")
        self.version = Value(version, "", number)
        self.kpis.close()
        self.kpis.version = version
        self.pairing.restart()


def scan(file: Lines, scanner: Scanner, lenient: bool) -> tuple[str, ...]:
    """Read all lines; return notes on what was skipped.

    A line that cannot be read is refused, unless it is the last one and has no line end: that one is cut off.

    Raises
    ------
    FormatError
        Names the line.
    """
    skipped = Skipped()
    pending: tuple[int, FormatError] | None = None
    for number, line in enumerate(file.lines, start=1):
        if pending is not None:
            if not lenient:
                raise pending[1]
            skipped.add(*pending)
            pending = None
        if not line or line.isspace():
            continue
        try:
            scanner.take(number, line)
        except FormatError as error:
            pending = (number, error)
    scanner.kpis.close()
    return skipped.notes if pending is None else (*skipped.notes, f"line {pending[0]} is cut off and not read")
