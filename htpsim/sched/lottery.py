"""A policy that draws lots: ``lottery``. Its draws are addressed by a counter, so a run repeats exactly."""

from __future__ import annotations

from typing import Any, ClassVar

from htpsim.sched.basic import Fifo
from htpsim.sched.policy import Records

# The constants of splitmix64 (Steele, Lea, Flood 2014), as signed 64-bit integers where they exceed 2^63: multiplied
# modulo 2^64 they are the same, and compiled code then has no unsigned number to mix with signed ones.
_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)
_MIX_1 = 0xBF58476D1CE4E5B9 - (1 << 64)
_MIX_2 = 0x94D049BB133111EB - (1 << 64)
_LOW_32 = (1 << 32) - 1
_COST_SCALE = 40


class Lottery(Fifo):
    """Draw the next grant by lot, each waiting account with as many tickets as its weight.

    Without ``compensate`` weights share out *grants*: who makes longer calls gets more device time. With it, tickets
    are weight over the cost of the account's last call (Waldspurger's compensation tickets), and weights share device
    time.

    Source: Waldspurger, Weihl 1994; draws by splitmix64 of (seed, number of the draw).
    Bound: none on a path; of n grants an account with share p gets Binomial(n, p): mean n p, variance n p (1 - p).
    Premise: all backlogged throughout, compensate = 0.
    Cost: two passes over the accounts a grant.
    """

    name: ClassVar[str] = "lottery"
    params: ClassVar[dict[str, tuple[int, str]]] = {
        "seed": (1, "seed of the draws, apart from the scenario's"),
        "compensate": (0, "1: tickets are weight over the last call's cost, so weights share device time, not grants"),
    }
    limits: ClassVar[dict[str, tuple[int, int]]] = {"seed": (0, (1 << 62) - 1), "compensate": (0, 1)}
    lane_fields: ClassVar[tuple[str, ...]] = ("draws", "latest_cost_ns")
    account_fields: ClassVar[tuple[str, ...]] = ("last_cost_ns",)

    @staticmethod
    def pick(lane: Any, accounts: Records, now_ns: int) -> int:
        """Draw one ticket of those of the waiting accounts."""
        total = 0
        for i in range(lane.accounts):
            if accounts[i].waiting:
                total += tickets(lane, accounts, i)
        if total == 0:
            return -1
        drawn = addressed_draw(lane.seed, lane.draws) % total
        lane.draws += 1
        last = -1
        for i in range(lane.accounts):
            if accounts[i].waiting and drawn >= 0:
                last = i
                drawn -= tickets(lane, accounts, i)
        return last

    @staticmethod
    def charge(lane: Any, accounts: Records, i: int, cost_ns: int, now_ns: int) -> None:
        """Remember the cost for the next draw."""
        accounts[i].last_cost_ns = max(1, cost_ns)
        lane.latest_cost_ns = max(1, cost_ns)


def tickets(lane: Any, accounts: Records, i: int) -> int:
    """Return the tickets of account `i`, at least one; one that never ran is taken to cost what the latest call did."""
    weight: int = accounts[i].weight
    cost_ns: int = accounts[i].last_cost_ns if accounts[i].last_cost_ns > 0 else lane.latest_cost_ns
    if lane.compensate == 0 or cost_ns == 0:
        return weight
    return max(1, (weight << _COST_SCALE) // cost_ns)


def addressed_draw(seed: int, number: int) -> int:
    """Return draw `number` of the stream `seed`: 63 bits, the same on Python's integers and on wrapping 64-bit ones.

    >>> from htpsim.rng import mix
    >>> addressed_draw(7, 3) == mix(mix(7) ^ 3) >> 1
    True
    """
    return mixed(mixed(seed) ^ number) >> 1 & ((1 << 63) - 1)


def mixed(value: int) -> int:
    """Return the splitmix64 output for a 64-bit state."""
    value = wrapped(value + _GOLDEN)
    value = wrapped((value ^ (value >> 30 & ((1 << 34) - 1))) * _MIX_1)
    value = wrapped((value ^ (value >> 27 & ((1 << 37) - 1))) * _MIX_2)
    return value ^ (value >> 31 & ((1 << 33) - 1))


def wrapped(value: int) -> int:
    """Return the low 64 bits; masks stay below 2^63, so that 64-bit integers that wrap by themselves agree."""
    return ((value >> 32 & _LOW_32) << 32) | (value & _LOW_32)
