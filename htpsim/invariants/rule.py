"""What a rule is: a name, a sentence, when it applies, and a function that finds where it does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from htpsim.invariants.report import Violation
from htpsim.invariants.spans import History

Finding = tuple[int, int | str, str, int]
"""(time_ns, subject, message, amount)"""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. It is a function of the trace alone."""

    name: str
    text: str
    """What must hold, in a sentence."""
    missing: Callable[[History], str]
    """Why the rule does not apply to a trace; "" when it does."""
    find: Callable[[History], Iterable[Finding]]

    def violations(self, history: History) -> list[Violation]:
        """Return where the rule does not hold, by time."""
        found = [Violation(self.name, *finding) for finding in self.find(history)]
        return sorted(found, key=lambda violation: violation.time_ns)


def nothing_missing(history: History) -> str:
    """Apply to every trace."""
    return ""


def no_guard(history: History) -> str:
    """Apply where calls pass a guard."""
    return "" if history.guarded else "no call passes a guard"


def no_slots(history: History) -> str:
    """Apply where the number of slots is known."""
    slots = history.trace.guard.slots
    return no_guard(history) or ("" if slots is not None else "the trace does not say how many slots the guard has")


def no_device_events(history: History) -> str:
    """Apply where the device was seen."""
    return "" if history.has_device_events else "the trace has no device events (start, run, finish ...)"


def no_device(history: History) -> str:
    """Apply where the device was seen and its constants are known."""
    reason = no_device_events(history)
    return reason or ("" if history.trace.device else "the trace does not state the device's constants")
