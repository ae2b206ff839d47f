"""What the policies that share by weight would choose, written a second time from their descriptions.

Virtual times are whole numbers of 2^-16 ns, rounded down at each charge, because that is what the policies declare.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from htpsim.invariants.choices import (
    EdfReference,
    Line,
    LotteryReference,
    PriorityReference,
    QuotaReference,
    Reference,
)
from htpsim.invariants.trace import Account

SCALE: Final = 1 << 16


class SfqReference(Reference):
    """Start-time fair queueing: the least start tag (Goyal, Vin, Cheng 1996, section 2)."""

    def __init__(self, line: Line, accounts: Sequence[Account], slots: int, params: Mapping[str, int]) -> None:
        super().__init__(line, accounts, slots, params)
        self.now = 0
        self.start: Counter[int] = Counter()
        self.finish: Counter[int] = Counter()

    def head(self, account: int, now_ns: int) -> None:
        """Give the head its start tag."""
        self.start[account] = max(self.now, self.finish[account])

    def choose(self, now_ns: int) -> int:
        """Return the one with the least start tag."""
        return min(self.line.heads(), key=lambda account: (self.start[account], account))

    def granted(self, account: int, now_ns: int) -> None:
        """Move virtual time to the start tag."""
        self.now = max(self.now, self.start[account])
        self.finish[account] = max(self.finish[account], self.start[account])

    def released(self, account: int, cost_ns: int, now_ns: int) -> None:
        """Move the finish tag on, and the start tag of a head that waits."""
        self.finish[account] += cost_ns * SCALE // self.weight(account)
        if self.line.waits(account):
            self.start[account] = max(self.start[account], self.finish[account])


class StrideReference(Reference):
    """The least pass; an account that was away comes back at its old distance from the common pass."""

    def __init__(self, line: Line, accounts: Sequence[Account], slots: int, params: Mapping[str, int]) -> None:
        super().__init__(line, accounts, slots, params)
        self.common = 0
        self.passes: Counter[int] = Counter()
        self.distance: Counter[int] = Counter()

    def head(self, account: int, now_ns: int) -> None:
        """Let one that was away come back."""
        if not self.line.held[account]:
            self.passes[account] = self.common + self.distance[account]

    def choose(self, now_ns: int) -> int:
        """Return the one with the least pass."""
        return min(self.line.heads(), key=lambda account: (self.passes[account], account))

    def released(self, account: int, cost_ns: int, now_ns: int) -> None:
        """Move its pass and the common one on."""
        active = [i for i in range(len(self.accounts)) if self.line.active(i) or i == account]
        self.passes[account] += cost_ns * SCALE // self.weight(account)
        self.common += cost_ns * SCALE // sum(map(self.weight, active))
        if not self.line.active(account):
            self.distance[account] = self.passes[account] - self.common


class DrrReference(Reference):
    """Turns in a ring: a turn adds to the deficit, and lasts until the deficit is used up."""

    def __init__(self, line: Line, accounts: Sequence[Account], slots: int, params: Mapping[str, int]) -> None:
        super().__init__(line, accounts, slots, params)
        self.deficit: Counter[int] = Counter()
        self.in_turn: set[int] = set()
        self.next = 0

    def quantum(self, account: int) -> int:
        """Return what a turn adds."""
        return self.weight(account) * self.params["quantum_ns"]

    def _turn(self) -> tuple[int, Counter[int]]:
        """Return who runs next, and what the turns passed over add to the deficits."""
        heads = list(self.line.heads())
        open_turns = [account for account in heads if account in self.in_turn]
        added: Counter[int] = Counter()
        if open_turns:
            return open_turns[0], added
        whole_rounds = max(0, min(-self.deficit[account] // self.quantum(account) for account in heads))
        added.update({account: whole_rounds * self.quantum(account) for account in heads})
        ring = sorted(heads, key=lambda account: (account < self.next, account))
        for account in ring * 2:
            added[account] += self.quantum(account)
            if self.deficit[account] + added[account] > 0:
                return account, added
        raise AssertionError("after the whole rounds one more round opens a turn")

    def choose(self, now_ns: int) -> int:
        """Return the one whose turn it is."""
        return self._turn()[0]

    def granted(self, account: int, now_ns: int) -> None:
        """Open the turn, with what the turns passed over add."""
        for other in range(len(self.accounts)):
            if not self.line.active(other):
                self.deficit[other] = min(self.deficit[other], 0)
                self.in_turn.discard(other)
        if account in self.in_turn:
            return
        chosen, added = self._turn()
        if chosen == account:
            self.deficit.update(added)
        else:
            self.deficit[account] += self.quantum(account)
        self.in_turn.add(account)
        self.next = account + 1

    def released(self, account: int, cost_ns: int, now_ns: int) -> None:
        """Take the cost off the deficit."""
        self.deficit[account] -= cost_ns
        if self.deficit[account] <= 0:
            self.in_turn.discard(account)


class EevdfReference(Reference):
    """Of those that got no more than their share, the nearest virtual deadline (Stoica, Abdel-Wahab 1995)."""

    def __init__(self, line: Line, accounts: Sequence[Account], slots: int, params: Mapping[str, int]) -> None:
        super().__init__(line, accounts, slots, params)
        self.floor = 0
        self.virtual: Counter[int] = Counter()
        self.longest: Counter[int] = Counter()
        self.left_ns: Counter[int] = Counter()

    def mean(self, leaving: int | None = None) -> int:
        """Return the mean virtual time of the active accounts by weight, rounded down."""
        active = [i for i in range(len(self.accounts)) if self.line.active(i) or i == leaving]
        if not active:
            return 0
        least = min(self.virtual[i] for i in active)
        total = sum(self.weight(i) * (self.virtual[i] - least) for i in active)
        return least + total // sum(map(self.weight, active))

    def head(self, account: int, now_ns: int) -> None:
        """Let one that was away come back without credit."""
        if not self.line.held[account] and self.left_ns[account] != now_ns:
            self.virtual[account] = max(self.virtual[account], self.floor)

    def choose(self, now_ns: int) -> int:
        """Return the eligible one with the nearest virtual deadline."""
        heads, mean = self.line.heads(), self.mean()
        eligible = [account for account in heads if self.virtual[account] <= mean]
        if not eligible:
            return min(heads, key=lambda account: (self.virtual[account], account))

        def deadline(account: int) -> tuple[int, int]:
            request_ns = max(self.params["slice_ns"], self.longest[account])
            return self.virtual[account] + request_ns * SCALE // self.weight(account), account

        return min(eligible, key=deadline)

    def released(self, account: int, cost_ns: int, now_ns: int) -> None:
        """Move its virtual time on."""
        self.virtual[account] += cost_ns * SCALE // self.weight(account)
        self.longest[account] = max(self.longest[account], cost_ns)
        self.left_ns[account] = now_ns
        self.floor = max(self.floor, self.mean(account))


REFERENCES: Final[Mapping[str, type[Reference]]] = {
    "drr": DrrReference,
    "edf": EdfReference,
    "eevdf": EevdfReference,
    "fifo": Reference,
    "lottery": LotteryReference,
    "priority": PriorityReference,
    "quota": QuotaReference,
    "sfq": SfqReference,
    "stride": StrideReference,
}
"""References by the name of the policy they restate."""
