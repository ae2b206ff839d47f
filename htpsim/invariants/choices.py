"""What the policies that share nothing would choose, written a second time from their descriptions.

A reference knows nothing of ``sched``: it keeps its own books in dictionaries of whole numbers. It is told what
happened and says whom it would grant next; then it is told who *was* granted, so that one departure does not make every
later choice look wrong. Accounts are positions among those of one process: the order by which ties are broken.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from htpsim.invariants.spans import Span
from htpsim.invariants.trace import NOWHERE, Account
from htpsim.rng import mix


class Line:
    """Who waits at one set of slots and who holds one, by account."""

    def __init__(self) -> None:
        self.queues: dict[int, deque[Span]] = {}
        self.held: Counter[int] = Counter()

    def heads(self) -> dict[int, Span]:
        """Return the oldest waiting call of each account that has one, by account."""
        return {account: queue[0] for account, queue in sorted(self.queues.items()) if queue}

    def waits(self, account: int) -> bool:
        """Tell whether an account has a call waiting."""
        return bool(self.queues.get(account))

    def active(self, account: int) -> bool:
        """Tell whether an account waits or holds a slot."""
        return self.waits(account) or self.held[account] > 0

    def join(self, account: int, span: Span) -> bool:
        """Add a call; tell whether it is the account's oldest."""
        queue = self.queues.setdefault(account, deque())
        queue.append(span)
        return len(queue) == 1

    def take(self, account: int, span: Span) -> bool:
        """Give a call its slot; tell whether another is now the account's oldest."""
        queue = self.queues[account]
        was_head = queue[0] is span
        queue.remove(span)
        self.held[account] += 1
        return was_head and bool(queue)


class Reference:
    """First come, first served; the other references replace what they do differently."""

    def __init__(self, line: Line, accounts: Sequence[Account], slots: int, params: Mapping[str, int]) -> None:
        self.line = line
        self.accounts = accounts
        self.slots = slots
        self.params = params
        self.weight_sum = sum(account.weight for account in accounts)

    def weight(self, account: int) -> int:
        """Return the weight of an account."""
        return self.accounts[account].weight

    def pass_time(self, now_ns: int) -> None:
        """Do what is due up to an instant."""

    def head(self, account: int, now_ns: int) -> None:
        """Note that an account has a new oldest waiting call."""

    def choose(self, now_ns: int) -> int:
        """Return the account to grant, or NOWHERE for nobody yet; change nothing."""
        heads = self.line.heads()
        return min(heads, key=lambda account: (heads[account].called_ns, account))

    def granted(self, account: int, now_ns: int) -> None:
        """Note a grant, before the call leaves the line."""

    def released(self, account: int, cost_ns: int, now_ns: int) -> None:
        """Note a release and its cost, after the slot is free."""


class PriorityReference(Reference):
    """The highest rank, then first come; with ageing, a rank is worth so much waiting."""

    def choose(self, now_ns: int) -> int:
        """Return the one of the highest rank."""
        heads = self.line.heads()
        ageing_ns = self.params.get("ageing_ns", 0)

        def order(account: int) -> tuple[int, ...]:
            rank, called_ns = self.accounts[account].rank, heads[account].called_ns
            if ageing_ns:
                return called_ns - rank * ageing_ns, -rank, account
            return -rank, called_ns, account

        return min(heads, key=order)


class EdfReference(Reference):
    """The nearest deadline, then first come; whoever has none comes last."""

    def choose(self, now_ns: int) -> int:
        """Return the one with the nearest deadline."""
        heads = self.line.heads()

        def order(account: int) -> tuple[bool, int, int, int]:
            deadline_ns = heads[account].call.deadline_ns
            return deadline_ns == NOWHERE, deadline_ns, heads[account].called_ns, account

        return min(heads, key=order)


class LotteryReference(Reference):
    """A draw among the tickets of those that wait; draws are numbered."""

    def __init__(self, line: Line, accounts: Sequence[Account], slots: int, params: Mapping[str, int]) -> None:
        super().__init__(line, accounts, slots, params)
        self.drawn = 0
        self.cost_ns: dict[int, int] = {}
        self.latest_ns = 0

    def tickets(self, account: int) -> int:
        """Return the tickets of an account: its weight, over its last cost where that is compensated."""
        cost_ns = self.cost_ns.get(account, self.latest_ns)
        if not self.params["compensate"] or not cost_ns:
            return self.weight(account)
        return max(1, (self.weight(account) << 40) // cost_ns)

    def choose(self, now_ns: int) -> int:
        """Return the one that holds the ticket drawn next."""
        tickets = {account: self.tickets(account) for account in self.line.heads()}
        ticket = (mix(mix(self.params["seed"]) ^ self.drawn) >> 1) % sum(tickets.values())
        for account, count in tickets.items():
            if ticket < count:
                return account
            ticket -= count
        raise AssertionError("a ticket is one of those that were counted")

    def granted(self, account: int, now_ns: int) -> None:
        """Count the draw."""
        self.drawn += 1

    def released(self, account: int, cost_ns: int, now_ns: int) -> None:
        """Keep the cost for the tickets of the next draws."""
        self.cost_ns[account] = self.latest_ns = max(1, cost_ns)


class QuotaReference(Reference):
    """A budget a period in proportion to weight, of device time or of calls; an overdraft is dealt with by choice."""

    def __init__(self, line: Line, accounts: Sequence[Account], slots: int, params: Mapping[str, int]) -> None:
        super().__init__(line, accounts, slots, params)
        self.left = [0] * len(accounts)
        self.next_ns = 0

    def pass_time(self, now_ns: int) -> None:
        """Begin the periods that are due."""
        period_ns = self.params["period_ns"]
        while self.next_ns <= now_ns:
            self.next_ns += period_ns
            before = list(self.left)
            whole = (self.params["calls"] if self.params["unit"] else period_ns) * self.slots
            for account, left in enumerate(self.left):
                quantum = max(1, self.weight(account) * whole // self.weight_sum)
                kept = min(left, self.params["carry_over_periods"] * quantum)
                self.left[account] = quantum + (kept if self.params["borrow"] or kept > 0 else 0)
            if self.left == before and self.next_ns <= now_ns:  # nothing changes any more until somebody is charged
                self.next_ns += (now_ns - self.next_ns) // period_ns * period_ns + period_ns

    def released(self, account: int, cost_ns: int, now_ns: int) -> None:
        """Draw the cost from the budget, and from those that lend."""
        self.left[account] -= 1 if self.params["unit"] else cost_ns
        if self.params["borrow"] != 2:
            return
        for lender, left in enumerate(self.left):
            lent = min(left, -self.left[account])
            if lender != account and lent > 0 and not self.line.active(lender):
                self.left[lender] -= lent
                self.left[account] += lent

    def choose(self, now_ns: int) -> int:
        """Return the first within budget, else the least overdrawn, else nobody."""
        heads = self.line.heads()
        within = [account for account in heads if self.left[account] > 0]
        if within:
            return min(within, key=lambda account: (heads[account].called_ns, account))
        lenders = (left for account, left in enumerate(self.left) if not self.line.active(account))
        if self.params["idle_over_budget"] and not (self.params["borrow"] == 2 and max(lenders, default=0) > 0):
            return NOWHERE
        return max(heads, key=lambda account: (self.left[account], -account))
