"""Policies that share device time by weight: ``sfq``, ``stride``, ``drr`` and ``eevdf``.

None of them knows what a graphExecute will cost before it is released, so all of them charge afterwards. Tags are
device time over weight, in units of 2^-16 ns. An account is *backlogged* while a call of it waits or holds a slot
whenever a grant is made; every bound here is about accounts that stay so, which a dialog with one outstanding call and
gaps between its calls is not.
"""

from __future__ import annotations

from typing import Any, ClassVar

from htpsim.sched.basic import Fifo
from htpsim.sched.policy import HOUR_NS, LONGEST_NS, VIRTUAL_FAR, VIRTUAL_SCALE, Records


class Sfq(Fifo):
    """Start-time fair queueing; with D slots, SFQ(D). No credit is given for absence.

    On a call S = max(V, F); the least (S, account) is granted and V = max(V, S); at release F = max(F, S) + cost over
    weight.

    Source: Goyal, Vin, Cheng 1996 (SFQ); Jin, Chase, Kaur 2004 (SFQ(D)).
    Bound: two accounts' device time over weight differ, over any interval, by at most the sum of their longest
    graphExecutes over weight; with D slots by (D + 1) times that.
    Premise: both backlogged throughout. Tight at one slot.
    Cost: one pass over the accounts a grant.
    """

    name: ClassVar[str] = "sfq"
    lane_fields: ClassVar[tuple[str, ...]] = ("virtual_time",)
    account_fields: ClassVar[tuple[str, ...]] = ("start_tag", "finish_tag")

    @staticmethod
    def wake(lane: Any, accounts: Records, i: int, now_ns: int) -> None:
        """Give the head its start tag."""
        accounts[i].start_tag = max(lane.virtual_time, accounts[i].finish_tag)

    @staticmethod
    def pick(lane: Any, accounts: Records, now_ns: int) -> int:
        """Return the account with the least start tag and advance the lane's virtual time to it."""
        best = -1
        for i in range(lane.accounts):
            if accounts[i].waiting and (best < 0 or accounts[i].start_tag < accounts[best].start_tag):
                best = i
        if best >= 0:
            lane.virtual_time = max(lane.virtual_time, accounts[best].start_tag)
            accounts[best].finish_tag = max(accounts[best].finish_tag, accounts[best].start_tag)
        return best

    @staticmethod
    def charge(lane: Any, accounts: Records, i: int, cost_ns: int, now_ns: int) -> None:
        """Advance the account's finish tag; a head that already waits is tagged anew by it."""
        accounts[i].finish_tag += (min(cost_ns, LONGEST_NS) << VIRTUAL_SCALE) // accounts[i].weight
        if accounts[i].waiting:
            accounts[i].start_tag = max(accounts[i].start_tag, accounts[i].finish_tag)
        if lane.virtual_time >= VIRTUAL_FAR:
            begin_anew(lane, accounts)


class Stride(Fifo):
    """Stride scheduling: the least pass is granted, and a pass advances by cost over weight.

    An account that leaves keeps its distance from the global pass, which advances by cost over the active weights, and
    takes it up again when it returns: small debts and credits survive an absence, which SFQ forgets.

    Source: Waldspurger 1995 (MIT TR-667), with the pass charged by what a quantum really took.
    Bound: from a common start, two accounts' device time over weight differ by at most the longer of their longest
    graphExecutes over weight (one quantum, where all are equal); over any interval by at most the sum.
    Premise: one slot, both backlogged throughout. Tight.
    Cost: one pass over the accounts a grant and a release.
    """

    name: ClassVar[str] = "stride"
    lane_fields: ClassVar[tuple[str, ...]] = ("global_pass",)
    account_fields: ClassVar[tuple[str, ...]] = ("pass_tag", "remain")

    @staticmethod
    def wake(lane: Any, accounts: Records, i: int, now_ns: int) -> None:
        """Let an account that was away rejoin at its old distance from the global pass."""
        if accounts[i].held == 0:
            accounts[i].pass_tag = lane.global_pass + accounts[i].remain

    @staticmethod
    def pick(lane: Any, accounts: Records, now_ns: int) -> int:
        """Return the account with the least pass."""
        best = -1
        for i in range(lane.accounts):
            if accounts[i].waiting and (best < 0 or accounts[i].pass_tag < accounts[best].pass_tag):
                best = i
        return best

    @staticmethod
    def charge(lane: Any, accounts: Records, i: int, cost_ns: int, now_ns: int) -> None:
        """Advance the account's pass and the global pass; note the distance in case the account leaves."""
        accounts[i].pass_tag += (cost_ns << VIRTUAL_SCALE) // accounts[i].weight
        lane.global_pass += (cost_ns << VIRTUAL_SCALE) // active_weight(lane, accounts, i)
        if not accounts[i].waiting and accounts[i].held == 0:
            accounts[i].remain = accounts[i].pass_tag - lane.global_pass


class Drr(Fifo):
    """Deficit round robin, charged afterwards: in its turn an account runs until its deficit is used up.

    At the start of a turn the deficit grows by quantum x weight; each release takes its cost off, and may leave a debt
    that the next turns pay first. An account with nothing to run when a grant is made loses its credit and keeps its
    debt. With several slots, so many turns are open at once.

    Source: Shreedhar, Varghese 1995; charged afterwards (surplus round robin): Adiseshu, Parulkar, Varghese 1996.
    Bound: two accounts' device time over weight differ, over any interval, by at most ``quantum_ns`` plus the sum of
    their longest graphExecutes over weight (with equal weights: 2 Max + Q).
    Premise: one slot, both backlogged throughout; no quantum need cover a graphExecute, for a debt lasts as many turns
    as it needs.
    Cost: two passes over the accounts a grant; rounds in which nobody could run are skipped at once.
    """

    name: ClassVar[str] = "drr"
    params: ClassVar[dict[str, tuple[int, str]]] = {
        "quantum_ns": (1_000_000, "device time a turn adds, for each unit of weight"),
    }
    limits: ClassVar[dict[str, tuple[int, int]]] = {"quantum_ns": (1, HOUR_NS)}
    lane_fields: ClassVar[tuple[str, ...]] = ("next_turn",)
    account_fields: ClassVar[tuple[str, ...]] = ("deficit_ns", "in_turn")

    @staticmethod
    def pick(lane: Any, accounts: Records, now_ns: int) -> int:
        """Return an account whose turn is open, else open the next turn of one that can run."""
        running = rounds = -1
        for i in range(lane.accounts):
            if accounts[i].waiting and accounts[i].in_turn:
                running = i if running < 0 else running
            elif accounts[i].waiting:
                short = -accounts[i].deficit_ns // (accounts[i].weight * lane.quantum_ns)
                rounds = short if rounds < 0 else min(rounds, short)
            elif accounts[i].held == 0:
                accounts[i].deficit_ns = min(accounts[i].deficit_ns, 0)
                accounts[i].in_turn = 0
        return running if running >= 0 else open_turn(lane, accounts, rounds)

    @staticmethod
    def charge(lane: Any, accounts: Records, i: int, cost_ns: int, now_ns: int) -> None:
        """Take the cost off the deficit; the turn ends when it is used up."""
        accounts[i].deficit_ns -= cost_ns
        if accounts[i].deficit_ns <= 0:
            accounts[i].in_turn = 0


class Eevdf(Fifo):
    """Earliest eligible virtual deadline first: among those that got no more than their share, the nearest deadline.

    An account's virtual time v is its device time over weight; V is the mean of the active ones' by weight. It is
    eligible while v <= V, and its deadline is v + request / weight, where its request is the longest graphExecute seen
    of it, at least ``slice_ns``. So short calls have near deadlines and are served early without getting more. An
    account that returns starts at V: a debt stays, credit lapses.

    Source: Stoica, Abdel-Wahab 1995 (TR-95-22); the mean as in Linux's fair scheduler.
    Bound: -longest graphExecute <= lag <= the longest request, where lag = weight x (V - v) is what an account is owed.
    Premise: one slot, all backlogged throughout, slice_ns at least the longest graphExecute. Tight at both ends.
    Cost: two passes over the accounts a grant, one a release.
    """

    name: ClassVar[str] = "eevdf"
    params: ClassVar[dict[str, tuple[int, str]]] = {
        "slice_ns": (1_000_000, "least device time an account asks for at once; larger: fewer turns, later deadlines"),
    }
    limits: ClassVar[dict[str, tuple[int, int]]] = {"slice_ns": (1, HOUR_NS)}
    lane_fields: ClassVar[tuple[str, ...]] = ("virtual_time",)
    account_fields: ClassVar[tuple[str, ...]] = ("run_tag", "longest_ns", "left_ns")

    @staticmethod
    def wake(lane: Any, accounts: Records, i: int, now_ns: int) -> None:
        """Let an account that was away rejoin without credit; one that calls at the instant it left was not away."""
        if accounts[i].held == 0 and accounts[i].left_ns != now_ns:
            accounts[i].run_tag = max(accounts[i].run_tag, lane.virtual_time)

    @staticmethod
    def pick(lane: Any, accounts: Records, now_ns: int) -> int:
        """Return the eligible account with the nearest deadline; if none is eligible, the nearest to it."""
        mean = mean_run_tag(lane, accounts, -1)
        best, best_deadline = -1, 0
        nearest = -1
        for i in range(lane.accounts):
            if not accounts[i].waiting:
                continue
            if nearest < 0 or accounts[i].run_tag < accounts[nearest].run_tag:
                nearest = i
            request_ns = max(lane.slice_ns, accounts[i].longest_ns)
            deadline = accounts[i].run_tag + (request_ns << VIRTUAL_SCALE) // accounts[i].weight
            if accounts[i].run_tag <= mean and (best < 0 or deadline < best_deadline):
                best, best_deadline = i, deadline
        return best if best >= 0 else nearest

    @staticmethod
    def charge(lane: Any, accounts: Records, i: int, cost_ns: int, now_ns: int) -> None:
        """Advance the account's virtual time and the lane's."""
        accounts[i].run_tag += (cost_ns << VIRTUAL_SCALE) // accounts[i].weight
        accounts[i].longest_ns = max(accounts[i].longest_ns, cost_ns)
        accounts[i].left_ns = now_ns
        lane.virtual_time = max(lane.virtual_time, mean_run_tag(lane, accounts, i))


def begin_anew(lane: Any, accounts: Records) -> None:
    """Take the lane's virtual time off all tags, which changes no choice: only their differences count.

    A head that waits has a tag of at least the virtual time. An account that is away counts from the virtual time when
    it returns, however far behind its finish tag is; one that holds a slot may be charged before, so that its tag is
    kept to a distance that no charge makes up for.
    """
    passed = lane.virtual_time
    lane.virtual_time = 0
    for k in range(lane.accounts):
        account = accounts[k]
        account.start_tag = account.start_tag - passed if account.waiting else 0
        account.finish_tag = max(account.finish_tag - passed, -2 * VIRTUAL_FAR if account.held else 0)


def active_weight(lane: Any, accounts: Records, i: int) -> int:
    """Return the sum of weights of the accounts that wait or hold a slot, and of account `i`."""
    total = 0
    for k in range(lane.accounts):
        if accounts[k].waiting or accounts[k].held > 0 or k == i:
            total += accounts[k].weight
    return total


def open_turn(lane: Any, accounts: Records, rounds: int) -> int:
    """Pass over `rounds` rounds in which nobody could run, then open the next turn of an account that can."""
    for i in range(lane.accounts):
        if accounts[i].waiting and rounds > 0:
            accounts[i].deficit_ns += rounds * accounts[i].weight * lane.quantum_ns
    for k in range(lane.accounts):
        i = (lane.next_turn + k) % lane.accounts
        if accounts[i].waiting:
            accounts[i].deficit_ns += accounts[i].weight * lane.quantum_ns
            if accounts[i].deficit_ns > 0:
                accounts[i].in_turn = 1
                lane.next_turn = i + 1
                return int(i)
    return -1


def mean_run_tag(lane: Any, accounts: Records, i: int) -> int:
    """Return the mean virtual time, by weight, of the accounts that wait or hold a slot, and of account `i`.

    Summed as distances from the least, which stay small; rounded down, which changes no comparison with a tag.
    """
    least = -1
    for k in range(lane.accounts):
        active = accounts[k].waiting or accounts[k].held > 0 or k == i
        if active and (least < 0 or accounts[k].run_tag < accounts[least].run_tag):
            least = k
    if least < 0:
        return 0
    base = accounts[least].run_tag
    distance = weight = 0
    for k in range(lane.accounts):
        if accounts[k].waiting or accounts[k].held > 0 or k == i:
            distance += accounts[k].weight * (accounts[k].run_tag - base)
            weight += accounts[k].weight
    mean: int = base + distance // weight
    return mean
