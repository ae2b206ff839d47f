"""What a run that can go no further is told: who waits, who holds what.

A model that stands still would otherwise reach its horizon in silence and look like a quiet one. Two things are taken
for a deadlock. *Nothing is left to happen* although a graphExecute is under way. Or a guard *grants nobody*: all its
slots are free, its oldest call has waited longer than the longest a call may take without counting as starved, and its
policy either asked for no timer or has granted nobody in the whole run; a policy that waits for its next period is not
accused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from htpsim.device.records import NEVER, STATE_NAMES
from htpsim.errors import InvariantError
from htpsim.sched.guard import can_grant
from htpsim.sim.guards import GuardShell
from htpsim.sim.rows import on_its_way
from htpsim.sim.runtime import Runtime
from htpsim.spec.plan import AccountPlan

STARVED_SOLO = 100
"""A call that waits this many times its time alone is starved, if that is more than half the measured time."""
_TOLD = 20


def find_deadlock(runtime: Runtime, measured_ns: int, *, nothing_left: bool) -> None:
    """Raise InvariantError when the run can go no further.

    Parameters
    ----------
    runtime : Runtime
        What stands still, at the end of the run.
    measured_ns : int
        Length of the measured window.
    nothing_left : bool
        Whether no event but the end of the run was pending.
    """
    in_flight = runtime.in_flight()
    if nothing_left and in_flight:
        raise InvariantError(_worded("nothing is left to happen", runtime, in_flight))
    for guard in runtime.guards.values():
        for number in range(len(guard.lanes)):
            if _grants_nobody(runtime, guard, number, measured_ns):
                why = f"policy {guard.policy.name} grants nobody, although every slot is free"
                raise InvariantError(_worded(why, runtime, in_flight))


def _grants_nobody(runtime: Runtime, guard: GuardShell, number: int, measured_ns: int) -> bool:
    lane = guard.lanes[number]
    if not can_grant(lane.record) or lane.record.holders:
        return False
    waits_for_timer = lane.timer_due_ns != NEVER and lane.grants > 0
    head = min((a for a in lane.accounts if a.waiting), key=lambda a: int(a.called_ns))
    patience_ns = max(STARVED_SOLO * runtime.jobs[head.head].solo_ns, measured_ns // 2)
    return not waits_for_timer and runtime.env.now - head.called_ns > patience_ns


def _worded(why: str, runtime: Runtime, in_flight: list[Any]) -> str:
    """Say why it is a deadlock and, in one line, who waits and who holds what."""
    told = [*guards_in_words(runtime.guards, runtime.plan.accounts), *_calls(runtime, in_flight[:_TOLD])]
    more = f"; and {len(in_flight) - _TOLD} more" if len(in_flight) > _TOLD else ""
    return f"deadlock at {runtime.env.now} ns: {why}: {'; '.join(told)}{more}"


def guards_in_words(guards: Mapping[int, Any], accounts: Sequence[AccountPlan]) -> Iterator[str]:
    """Yield a sentence for each set of slots: how many are held, who holds, who waits.

    Parameters
    ----------
    guards
        By process; each has its lanes and its policy.
    accounts
        Of all processes, as the plan numbers them.
    """
    for process, guard in guards.items():
        names = [account.name for account in accounts if account.process == process]
        for number, lane in enumerate(guard.lanes):
            held = [f"{names[i]} holds {a.held}" for i, a in enumerate(lane.accounts) if a.held]
            wait = [f"{names[i]} waits" for i, a in enumerate(lane.accounts) if a.waiting]
            of_core = f" for core {number}" if len(guard.lanes) > 1 else ""
            slots = f"{lane.record.holders} of {lane.record.slots} slots{of_core} held"
            yield f"guard of process {process} (policy {guard.policy.name}): {', '.join([slots, *held, *wait])}"


def _calls(runtime: Runtime, in_flight: list[Any]) -> Iterator[str]:
    for job in in_flight:
        who = f"{runtime.plan.clients[job.client].name} request {job.place[0]} graphExecute {job.execute}"
        if job.granted_ns == NEVER:
            yield f"{who} waits for the guard since {job.called_ns} ns"
        elif on_its_way(job):
            yield f"{who} is on its way"
        else:
            yield f"{who} is {STATE_NAMES[job.state]} on core {job.core} since {job.since_ns} ns"
