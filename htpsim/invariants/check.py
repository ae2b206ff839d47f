"""Check a trace: every rule that applies, and for those that do not, why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from htpsim.errors import HtpsimError, unknown_name
from htpsim.invariants import adapters, answers, calls, cores, guard, laws, memory, order, requests, shares, work
from htpsim.invariants.report import SHOWN_MAX, Report, Violation
from htpsim.invariants.rule import Rule
from htpsim.invariants.spans import History
from htpsim.invariants.story import story
from htpsim.invariants.trace import Trace

_ALL: Final = (
    calls.CAUSALITY,
    calls.ONE_CALL,
    guard.EXCLUSION,
    guard.COVER,
    guard.FIFO,
    guard.WORK,
    order.ORDER,
    shares.BOUND,
    calls.PLACEMENT,
    cores.CONTEXT_FIFO,
    cores.EXCLUSION,
    cores.RUNNING_SET,
    cores.EVICTION,
    cores.DEVICE_WORK,
    cores.COSTS,
    work.WORK,
    answers.ANSWERS,
    adapters.ADAPTERS,
    laws.PARTS,
    laws.LITTLE,
    laws.UTILISATION,
    requests.REQUESTS,
    memory.BALANCE,
    memory.LIMIT,
    memory.IN_USE,
    memory.REFERENCES,
)

RULES: Final[Mapping[str, Rule]] = MappingProxyType({rule.name: rule for rule in _ALL})
"""Every rule by name, in the order in which they are checked."""


def check_trace(trace: Trace, rules: Iterable[str] | None = None, *, slack_ns: int = 0) -> Report:
    """Check a trace against the rules that apply to it.

    Parameters
    ----------
    trace : Trace
        Simulated or recorded.
    rules : iterable of str, optional
        Names from RULES; all by default.
    slack_ns : int [ns]
        How much a recording may blur instants: a slot or core counts as idle only beyond it, and calls closer than it
        may have been written down in either order. 0 for a simulation.

    Raises
    ------
    HtpsimError
        For a rule that does not exist, with the nearest that does.

    Examples
    --------
    >>> check_trace(Trace()).ok
    True
    """
    chosen = [_named(name) for name in (RULES if rules is None else rules)]
    history = History(trace, slack_ns)
    report = Report(executes=len(trace.calls))
    checked, skipped, counts = [], {}, Counter[str]()
    for rule in chosen:
        reason = rule.missing(history)
        if reason:
            skipped[rule.name] = reason
            continue
        checked.append(rule.name)
        found = rule.violations(history)
        if found:
            counts[rule.name] = len(found)
            report.violations += found[:SHOWN_MAX]
    report.checked, report.skipped, report.counts = tuple(checked), skipped, counts
    report.story = _first_story(trace, report.violations)
    return report


def _named(name: str) -> Rule:
    if name not in RULES:
        raise HtpsimError(unknown_name("rule", name, RULES))
    return RULES[name]


def _first_story(trace: Trace, violations: list[Violation]) -> str:
    """Tell the story of the first violation that is about a graphExecute of the trace."""
    for violation in violations:
        if isinstance(violation.subject, int) and violation.subject in trace.calls:
            return story(trace, violation.subject)
    return f"see it again with: {trace.replay}" if violations and trace.replay else ""
