"""Who may be on a core: the vendor's rule, written a second time from its description, for the device rules.

The clients of a core are the oldest graphExecutes of its contexts. They are taken in order of (priority, on the core
before waiting, arrival, number), each if it fits beside those taken already: one protection domain, at most one QNN
graph, HMX, HVX and VTCM within the core's. One that takes several cores must be taken on each. Where graphs run in
parallel there may be several QNN graphs, of one priority, which take turns at HMX and HVX.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from htpsim.invariants.spans import Span
from htpsim.invariants.trace import NOWHERE, Call, DeviceFacts

WAITING, ACQUIRING, RUNNING, EVICTING, RESTORING = "waiting", "acquiring", "running", "evicting", "restoring"
STAYING: Final = (ACQUIRING, RUNNING, RESTORING)
"""On the core with a claim to stay."""


@dataclass(slots=True)
class Client:
    """One graphExecute on the device, between its submission and its end."""

    span: Span
    state: str = WAITING
    asked_ns: int = NOWHERE
    """Since when it does not belong to the running set while it is on the core."""
    goal_ns: int = NOWHERE
    """Work done at which it must yield, by rule ``grid``."""
    held_ns: int = NOWHERE
    """When it last took its cores."""
    run_ns: int = NOWHERE
    """When its present run began."""
    done_ns: int = 0
    """Work done in the runs before that."""
    idle_ns: int = NOWHERE
    """Since when it could run and does not."""

    @property
    def call(self) -> Call:
        """Its facts."""
        return self.span.call

    @property
    def holds(self) -> bool:
        """Whether it takes up its cores."""
        return self.state != WAITING

    def rank(self, staying: bool) -> tuple[int, bool, int, int]:
        """Return its place among the clients of a core."""
        return -self.call.level, not staying, self.span.submitted_ns, self.span.execute


def fits(device: DeviceFacts, client: Call, beside: list[Call]) -> bool:
    """Tell whether `client` may be on a core beside others.

    >>> graph = Call(execute=0, thread="a")
    >>> fits(DeviceFacts(), graph, []), fits(DeviceFacts(), graph, [graph])
    (True, False)
    """
    if not beside:
        return True
    together = [client, *beside]
    graphs, others = [call for call in together if call.qnn], [call for call in together if not call.qnn]
    return (
        device.coexists
        and len({call.pd for call in together}) == 1
        and (len(graphs) <= 1 or (device.parallel_rate > 0 and len({call.level for call in graphs}) == 1))
        and sum(call.hmx for call in others) + max((call.hmx for call in graphs), default=0) <= device.hmx
        and sum(call.hvx for call in others) + max((call.hvx for call in graphs), default=0) <= device.hvx
        and sum(call.vtcm_bytes for call in together) <= device.vtcm_bytes
    )


def running_set(
    device: DeviceFacts, clients: Iterable[Client], waits: Iterable[int] = (), stays: Iterable[int] = ()
) -> set[int]:
    """Return the numbers of the clients that belong on one core.

    `waits` and `stays` name clients to be seen as waiting, or as on the core, whatever their state.
    """
    waits, stays = set(waits), set(stays)

    def staying(client: Client) -> bool:
        number = client.span.execute
        return number in stays or (client.state in STAYING and number not in waits)

    taken: list[Call] = []
    for client in sorted(clients, key=lambda client: client.rank(staying(client))):
        if fits(device, client.call, taken):
            taken.append(client.call)
    return {call.execute for call in taken}
