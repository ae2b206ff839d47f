"""Three ledgers that are never mixed: host DRAM, device DRAM, and the address space of protection domains.

The same weights count in all three, each for its own reason: a file copy lies in host DRAM, the loaded context takes
device DRAM, and mapping it takes address space of a PD. Adding the three up would count bytes twice, so no total over
them exists. Within a ledger bytes lie at a place ("dram", "host", or one PD) under the name of what holds them. Every
change is one event, so that the sum of the events is always what is held.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from htpsim.errors import InvariantError

LedgerName = Literal["device", "host", "pd"]
LEDGERS: Final = ("device", "host", "pd")

Event = tuple[int, str, str, str, int]
"""(time_ns, ledger, place, item, delta_bytes)"""


class Taking(NamedTuple):
    """Bytes that something holds, or would hold, at a place of a ledger."""

    ledger: LedgerName
    place: str
    item: str
    count_bytes: int


class Ledgers:
    """What is held where and by whom, with its history and its peaks.

    Examples
    --------
    >>> ledgers = Ledgers()
    >>> ledgers.take(0, Taking("host", "host", "vit.bin", 5))
    >>> ledgers.give(9, Taking("host", "host", "vit.bin", 5))
    >>> ledgers.held("host"), ledgers.peak("host"), ledgers.events[-1]
    (0, 5, (9, 'host', 'host', 'vit.bin', -5))
    """

    __slots__ = ("_items", "_peaks", "_totals", "events")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._items: dict[tuple[str, str], dict[str, int]] = {}
        self._totals: dict[str, int] = dict.fromkeys(LEDGERS, 0)
        self._peaks: dict[str, int] = dict.fromkeys(LEDGERS, 0)

    def take(self, now_ns: int, taking: Taking) -> None:
        """Enter bytes taken; nothing is entered for no bytes."""
        self._change(now_ns, taking, taking.count_bytes)

    def give(self, now_ns: int, taking: Taking) -> None:
        """Enter bytes given back.

        Raises
        ------
        InvariantError
            When the item does not hold as many.
        """
        self._change(now_ns, taking, -taking.count_bytes)

    def held(self, ledger: LedgerName, place: str | None = None) -> int:
        """Return the bytes held now, at one place or in the whole ledger."""
        if place is None:
            return self._totals[ledger]
        return sum(self._items.get((ledger, place), {}).values())

    def peak(self, ledger: LedgerName) -> int:
        """Return the most bytes that the ledger ever held."""
        return self._peaks[ledger]

    def items(self, ledger: LedgerName, place: str) -> dict[str, int]:
        """Return what holds bytes at a place, in the order in which it came."""
        return dict(self._items.get((ledger, place), {}))

    def places(self, ledger: LedgerName) -> list[str]:
        """Return the places at which something is held, in order."""
        return sorted(place for name, place in self._items if name == ledger)

    def validate(self) -> None:
        """Check that the events sum to what is held, item by item, and that time never went back.

        Raises
        ------
        InvariantError
            When they do not.
        """
        sums: dict[tuple[str, str], dict[str, int]] = {}
        for _, ledger, place, item, delta_bytes in self.events:
            items = sums.setdefault((ledger, place), {})
            items[item] = items.get(item, 0) + delta_bytes
        sums = {at: {item: count for item, count in items.items() if count} for at, items in sums.items()}
        if {at: items for at, items in sums.items() if items} != self._items:
            raise InvariantError(f"memory events sum to {sums}, held is {self._items}")
        for ledger, total in self._totals.items():
            held = sum(sum(items.values()) for at, items in self._items.items() if at[0] == ledger)
            if not 0 <= held == total <= self._peaks[ledger]:
                raise InvariantError(f"{ledger} ledger: held {held}, total {total}, peak {self._peaks[ledger]}")
        if any(count < 0 for items in self._items.values() for count in items.values()):
            raise InvariantError(f"memory held is negative: {self._items}")

    def _change(self, now_ns: int, taking: Taking, delta_bytes: int) -> None:
        if self.events and now_ns < self.events[-1][0]:
            raise InvariantError(f"memory: change at {now_ns} ns after one at {self.events[-1][0]} ns")
        if not delta_bytes:
            return
        ledger, place, item, _ = taking
        items = self._items.get((ledger, place), {})
        held = items.get(item, 0) + delta_bytes
        if held < 0:
            raise InvariantError(f"{ledger} ledger, {place}: {item} gives {-delta_bytes} B of {items.get(item, 0)} B")
        self._items[ledger, place] = items
        items[item] = held
        if not held:
            del items[item]
        if not items:
            del self._items[ledger, place]
        self._totals[ledger] += delta_bytes
        self._peaks[ledger] = max(self._peaks[ledger], self._totals[ledger])
        self.events.append((now_ns, ledger, place, item, delta_bytes))
