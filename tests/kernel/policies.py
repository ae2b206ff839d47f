"""Policies of a user's own: one that never grants, one with faults that only a run shows, one that is sound."""

from __future__ import annotations

from typing import Any

from htpsim.sched import Fifo, Sfq


class Nobody(Fifo):
    name = "nobody"

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        return -1


class Latest(Sfq):
    """The youngest call first: compiles, and has a field of its own."""

    name = "latest"
    account_fields = (*Sfq.account_fields, "turns")

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        best = -1
        for i in range(lane.accounts):
            if accounts[i].waiting and (best < 0 or accounts[i].called_ns > accounts[best].called_ns):
                best = i
        if best >= 0:
            accounts[best].turns += 1
        return best


class Divides(Fifo):
    """Divides by nothing as soon as everybody waits."""

    name = "divides"

    @staticmethod
    def charge(lane: Any, accounts: Any, i: int, cost_ns: int, now_ns: int) -> None:
        accounts[i].charged_ns += 1 // (lane.accounts - lane.waiting - 1)


class Formats(Fifo):
    """Keeps a text: sound in Python, and nothing that Numba compiles."""

    name = "formats"

    @staticmethod
    def charge(lane: Any, accounts: Any, i: int, cost_ns: int, now_ns: int) -> None:
        str.format("{!r} of {}", cost_ns, vars(Formats))
