"""What a verbose log says of the memory of each context: five terms, their sum, and where it went."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, Final

from htpsim.formats.genie_console.data import ContextMemory
from htpsim.formats.values import Value

_CONTEXTS_MAX: Final = 10_000
_ESTIMATE: Final = re.compile(
    r"Context (\d{1,9}) graph (\S{1,200}) estimated PD size ~[\d.]{1,20}MB, including nonSharedWeight (\d{1,18}) B "
    r"I/O (\d{1,18}) B runlist (\d{1,18}) B spillfill (\d{1,18}) B",
    re.ASCII,
)
_USAGE: Final = re.compile(
    r"Graph memory usage summary, context id (\d{1,9}), graph name:.{1,400}? vtcm (\d{1,18}) ", re.ASCII
)
_RESERVED: Final = re.compile(r"Setting context (\d{1,9}) reserved space to (\d{1,18})$", re.ASCII)
_CHOSEN: Final = re.compile(
    r"PD (\d{1,9}) chosen for context (\d{1,9}), estimated future space on pd ~[\d.]{1,20} MB "
    r"device priority is -?\d{1,9}, graph priority is (\d{1,9})",
    re.ASCII,
)


@dataclass(slots=True)
class MemoryReader:
    """Gathers contexts by their number."""

    contexts: dict[int, ContextMemory] = field(default_factory=dict)

    def take(self, number: int, text: str) -> None:
        """Read one line of level VERBOSE, if it is about memory."""
        if found := _ESTIMATE.match(text):
            weights, io, run_list, spill_fill = (_bytes(found[index], number) for index in (3, 4, 5, 6))
            if not self._is_larger(found, (weights, io, run_list, spill_fill)):
                return
            self._note(found[1], number, graph=found[2], weights=weights, io=io, run_list=run_list)
            self._note(found[1], number, spill_fill=spill_fill)
        elif found := _USAGE.match(text):
            self._note(found[1], number, vtcm=_bytes(found[2], number))
        elif found := _RESERVED.match(text):
            self._note(found[1], number, reserved=_bytes(found[2], number))
        elif found := _CHOSEN.match(text):
            place, priority = Value(int(found[1]), "", number), Value(int(found[3]), "", number)
            self._note(found[2], number, protection_domain=place, graph_priority=priority)

    def _is_larger(self, found: re.Match[str], terms: tuple[Value[int], ...]) -> bool:
        """Say whether this graph needs more than the one known of its context; space is reserved for the largest."""
        known = self.contexts.get(int(found[1]))
        if known is None or known.graph in (None, found[2]):
            return True
        held = (known.weights, known.io, known.run_list, known.spill_fill)
        return sum(term.value for term in terms) > sum(term.value for term in held if term is not None)

    def _note(self, context: str, line: int, **values: Any) -> None:
        known = self.contexts.get(int(context))
        if known is None:
            if len(self.contexts) >= _CONTEXTS_MAX:
                return
            known = ContextMemory(context=int(context), line=line)
        self.contexts[int(context)] = replace(known, **values)


def _bytes(digits: str, line: int) -> Value[int]:
    return Value(int(digits), "bytes", line)
