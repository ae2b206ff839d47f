"""What a lenient reader skipped, said line by line while it is few, and counted beyond."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

SAID_MAX: Final = 100


@dataclass(slots=True)
class Skipped:
    """Notes about lines that could not be read.

    >>> skipped = Skipped()
    >>> for line in range(1, 103):
    ...     skipped.add(line, "a.csv: got 'x', expected a row")
    >>> len(skipped.notes), skipped.notes[-1]
    (101, '102 lines are skipped in all')
    """

    count: int = 0
    said: list[str] = field(default_factory=list)

    def add(self, line: int, reason: object) -> None:
        """Note one line and why."""
        self.count += 1
        if len(self.said) < SAID_MAX:
            self.said.append(f"line {line} is skipped: {reason}")

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes, with the number of all lines where not each is said."""
        if self.count == len(self.said):
            return tuple(self.said)
        return (*self.said, f"{self.count} lines are skipped in all")
