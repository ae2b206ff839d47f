"""The guards: calls, grants, releases and timers, around the rules of ``sched``.

``wake``, ``pick``, ``charge`` and ``timer`` stand for the scenario's policy; whoever makes the engine ready puts that
policy's functions in their place.
"""

from __future__ import annotations

from typing import Any

from htpsim.device.records import NEVER
from htpsim.kernel.events import TIMER, place, push
from htpsim.kernel.fields import FAULT, RINGS
from htpsim.sched.basic import Fifo
from htpsim.sched.guard import NOBODY, NOT_WAITING, call, can_grant, grant, release

wake, pick, charge, timer = Fifo.wake, Fifo.pick, Fifo.charge, Fifo.timer


def call_guard(w: Any, j: int) -> None:
    """Let graphExecute `j` wait for a slot."""
    job = w.jobs[j]
    lane = job.lane
    if call(w.lanes[lane], w.accounts[lane], w.jobs, job.slot, j, w.st.now_ns, wake):
        w.st.wanted |= 1 << w.shells[lane].guard


def release_guard(w: Any, lane: int, slot: int, cost_ns: int) -> None:
    """Give back a slot and charge its use."""
    if release(w.lanes[lane], w.accounts[lane], slot, cost_ns, w.st.now_ns, charge):
        w.st.wanted |= 1 << w.shells[lane].guard


def make_grant(w: Any, g: int) -> int:
    """Make one grant and ask for the next if one more is possible; return the job granted, or NOBODY."""
    guard = w.guards[g]
    for lane in range(guard.lane, guard.lane + guard.lanes):
        j = grant(w.lanes[lane], w.accounts[lane], w.jobs, w.st.now_ns, pick, wake)
        if j >= 0:
            w.shells[lane].grants += 1
            for other in range(guard.lane, guard.lane + guard.lanes):
                if can_grant(w.lanes[other]):
                    w.st.wanted |= 1 << g
            return j
        if j == NOT_WAITING:
            w.st.stop = FAULT
            return NOBODY
    return NOBODY


def ring(w: Any, lane: int) -> None:
    """Let the policy do what is due."""
    shell = w.shells[lane]
    shell.timer_ns = NEVER
    now_ns = w.st.now_ns
    following = timer(w.lanes[lane], w.accounts[lane], now_ns)
    if following >= 0:
        if following <= now_ns:
            w.st.stop = FAULT
            return
        set_timer(w, lane, following)
    elif following != NEVER:
        w.st.stop = FAULT
        return
    if can_grant(w.lanes[lane]):
        w.st.wanted |= 1 << shell.guard


def set_timer(w: Any, lane: int, at_ns: int) -> None:
    """Let a policy's timer come."""
    shell = w.shells[lane]
    shell.timer_ns = at_ns
    push(w, at_ns, place(TIMER, w.guards[shell.guard].process, shell.number), RINGS, lane)


def weigh(w: Any) -> None:
    """Let only those count in a lane's sum of weights who can call in it: all loads have ended."""
    st = w.st
    st.ready_ns = st.now_ns
    for g in range(st.guards):
        for lane in range(w.guards[g].lane, w.guards[g].lane + w.guards[g].lanes):
            if w.shells[lane].weigh_to != NOBODY:
                w.lanes[lane].weight_sum = w.shells[lane].weigh_to
