"""The slices that a Genie profile with tracing lists beside its components."""

from __future__ import annotations

from dataclasses import dataclass, field

from htpsim.formats.jsonevents import Event


@dataclass(slots=True)
class Slices:
    """Counts slices, and those that cross: viewers that nest slices by time draw such ones wrongly."""

    count: int = 0
    threads: dict[tuple[int, int], list[tuple[float, float]]] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Count one event.

        Raises
        ------
        FormatError
            When a time is no number, or negative.
        """
        self.count += 1
        if event.text("ph") == "X":
            place = (event.whole("pid") or 0, event.whole("tid") or 0)
            start, duration = event.number("ts"), event.number("dur")
            if start is None:
                event.refuse("ts", "a number")
            self.threads.setdefault(place, []).append((start, start + (duration or 0)))

    def crossing(self) -> int:
        """Return how many slices begin within another one of their thread and end behind it."""
        crossed = 0
        for slices in self.threads.values():
            open_ends: list[float] = []
            for start, end in sorted(slices, key=lambda item: (item[0], -item[1])):
                while open_ends and open_ends[-1] <= start:
                    open_ends.pop()
                crossed += bool(open_ends) and open_ends[-1] < end
                open_ends.append(min(end, open_ends[-1]) if open_ends else end)
        return crossed
