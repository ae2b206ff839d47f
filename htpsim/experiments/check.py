"""Check a trace file, or a run, against every rule that applies; ``htpsim check`` and ``run(check=True)``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from htpsim.errors import ScenarioError
from htpsim.experiments.trace import trace_of
from htpsim.experiments.trace_facts import promises_work
from htpsim.formats.trace import read_trace
from htpsim.invariants import RULES, Report, Trace, check_trace, story
from htpsim.results.log import RunLog
from htpsim.units import NS_PER_MS

SLACK_NS: Final = NS_PER_MS
"""What a recording's instants are taken to be blurred by: a thread's wake-up, a clock read a little late [ns]."""

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What checking a trace file came to."""

    files: tuple[str, ...]
    trace: Trace
    report: Report

    @property
    def ok(self) -> bool:
        """Whether every rule that applies holds."""
        return self.report.ok

    @property
    def exit_code(self) -> int:
        """What the command line returns: 0, or 1 when a rule does not hold."""
        return 0 if self.ok else 1

    def rows(self) -> list[Row]:
        """Return a row a rule: (rule, what must hold, outcome)."""
        rows: list[Row] = []
        for name, rule in RULES.items():
            if name in self.report.skipped:
                rows.append((name, rule.text, f"not checked: {self.report.skipped[name]}"))
            elif name in self.report.checked:
                count = self.report.counts[name]
                rows.append((name, rule.text, f"{count} violation{'s' * (count != 1)}" if count else "holds"))
        return rows

    def violation_rows(self) -> list[Row]:
        """Return a row a violation that was kept: (rule, time in ns, message)."""
        return [(v.rule, f"{v.time_ns:,}", v.message) for v in self.report.violations]

    @property
    def headline(self) -> str:
        """What came of it in a sentence."""
        checked, count = len(self.report.checked), sum(self.report.counts.values())
        what = f"{len(self.trace.calls):,} graphExecutes of {', '.join(self.files)}"
        outcome = f"{checked} rules hold" if self.ok else f"{count} violations of {len(self.report.counts)} rules"
        return f"{what}: {outcome}, {len(self.report.skipped)} rules do not apply"

    def story(self, execute: int | None = None) -> str:
        """Tell the story of a graphExecute, by default that of the first violation."""
        return self.report.story if execute is None else story(self.trace, execute)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, for ``--json``."""
        return {
            "files": list(self.files),
            "executes": len(self.trace.calls),
            "ok": self.ok,
            "checked": list(self.report.checked),
            "skipped": dict(self.report.skipped),
            "counts": dict(self.report.counts),
            "violations": [
                {"rule": v.rule, "time_ns": v.time_ns, "subject": v.subject, "message": v.message, "amount": v.amount}
                for v in self.report.violations
            ],
        }


def declared(
    trace: Trace,
    *,
    policy: str | None = None,
    slots: int | None = None,
    slots_per: Literal["process", "core"] | None = None,
) -> Trace:
    """Return a trace that also says what its recorder could not know of the guard.

    Raises
    ------
    ScenarioError
        For slots below 1.

    Examples
    --------
    >>> declared(Trace(), policy="fifo", slots=2).guard.work_conserving
    True
    """
    guard = trace.guard
    if slots is not None and slots < 1:
        raise ScenarioError(f"slots: got {slots}, expected at least 1")
    if slots is not None:
        guard = replace(guard, slots=slots)
    if slots_per is not None:
        guard = replace(guard, slots_per=slots_per)
    if policy is not None:
        guard = replace(guard, policy=policy, params=(), work_conserving=promises_work(policy, {}))
    return replace(trace, guard=guard)


def check_file(
    path: str | os.PathLike[str],
    *more: str | os.PathLike[str],
    rules: Iterable[str] | None = None,
    policy: str | None = None,
    slots: int | None = None,
    slots_per: Literal["process", "core"] | None = None,
    slack_ns: int | None = None,
    lenient: bool = False,
) -> CheckReport:
    """Check a trace file; several, one a process, are checked as one trace.

    Parameters
    ----------
    path, more
        The files, in either form.
    rules : iterable of str, optional
        Names of rules; all by default.
    policy, slots, slots_per
        What is known of the guard and does not stand in the file.
    slack_ns : int [ns], optional
        What a recording's instants are blurred by; by default SLACK_NS for a recording and 0 for a simulation.
    lenient : bool
        Leave out what does not fit the schema instead of refusing the file.

    Raises
    ------
    FormatError
        When a file cannot be read; names the line.
    HtpsimError
        For a rule that does not exist.
    """
    trace = declared(read_trace(path, *more, lenient=lenient), policy=policy, slots=slots, slots_per=slots_per)
    if slack_ns is None:
        slack_ns = 0 if trace.engine else SLACK_NS
    return CheckReport(
        tuple(os.fspath(each) for each in (path, *more)), trace, check_trace(trace, rules, slack_ns=slack_ns)
    )


def check_log(log: RunLog, replay: str = "") -> Report:
    """Check what an engine left behind; ``.require()`` raises with the story and `replay`, the command that repeats it.

    Examples
    --------
    >>> from htpsim.sim import simulate
    >>> from htpsim.spec import Scenario
    >>> check_log(simulate(Scenario())).require()
    """
    return check_trace(trace_of(log, replay))
