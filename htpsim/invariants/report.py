"""What checking a trace comes to: violations, what was checked, and what could not be and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from htpsim.errors import InvariantError

SHOWN_MAX: Final = 20
"""Violations of one rule that a report keeps; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One place where a rule did not hold."""

    rule: str
    time_ns: int
    subject: int | str
    """Number of the graphExecute, or name of what broke the rule."""
    message: str
    amount: int = 0
    """By how much, in the unit that the message names."""

    def __str__(self) -> str:
        return f"{self.rule} at {self.time_ns:,} ns: {self.message}"


@dataclass(slots=True)
class Report:
    """The outcome of checking one trace."""

    violations: list[Violation] = field(default_factory=list)
    """By rule in the order of the rules, within a rule by time; at most SHOWN_MAX of each."""
    counts: Counter[str] = field(default_factory=Counter)
    """Violations of each rule that has any, those not kept included."""
    checked: tuple[str, ...] = ()
    """Rules that applied."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Rules that did not apply, with the reason."""
    executes: int = 0
    story: str = ""
    """What happened to the graphExecute of the first violation, and how to see it again."""

    @property
    def ok(self) -> bool:
        """Whether every rule that applied holds."""
        return not self.violations

    def of(self, rule: str) -> list[Violation]:
        """Return the violations of one rule."""
        return [violation for violation in self.violations if violation.rule == rule]

    def require(self) -> None:
        """Raise unless every rule that applied holds.

        Raises
        ------
        InvariantError
            With the violations and the story of the first; exit code 3.

        Examples
        --------
        >>> Report().require()
        >>> Report(violations=[Violation("guard-exclusion", 7, 0, "2 holders, 1 slot", 1)]).require()
        Traceback (most recent call last):
        htpsim.errors.InvariantError: 1 violation
        guard-exclusion at 7 ns: 2 holders, 1 slot
        """
        if self.ok:
            return
        total = sum(self.counts.values()) or len(self.violations)
        lines = [f"{total} violation{'s' if total > 1 else ''}", *map(str, self.violations[:SHOWN_MAX])]
        raise InvariantError("\n".join([*lines, self.story] if self.story else lines))
