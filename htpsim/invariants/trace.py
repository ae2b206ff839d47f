"""A trace: what happened to every graphExecute, whoever recorded it.

A trace is facts and events. The *facts* of a graphExecute are known when it is called: its thread, dialog handle,
weight, process, context, graph and path; a simulation adds what only it can know. Its *events* are instants:

===========  ==========================================================================================
``call``     its thread called graphExecute
``grant``    the guard gave it a slot (path ``genie`` only; absent for one that runs under another's slot)
``submit``   it was handed to the device
``start``    its core began it: VTCM acquire and power-up
``run``      its work began or went on
``yield``    it stopped for a client that goes before it; its VTCM is being saved
``freed``    its core is free of it; it waits again
``resume``   its core took it back: VTCM is being restored
``finish``   its work was done
``return``   its thread got it back
``release``  its slot was given back (a recorder may leave it out: it is then taken to be the ``return``)
===========  ==========================================================================================

A recorder around a real guard writes the four that it can see: call, grant, submit, return. Everything that is checked
is computed from these, never from an engine's state. Times are whole nanoseconds of one clock that never steps back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

VERSION: Final = 1
"""Of the schema; a file of another version is refused."""

KINDS: Final = (
    "call", "grant", "submit", "start", "run", "yield", "freed", "resume", "finish", "return", "release",
)  # fmt: skip
"""Events of a graphExecute, in the order in which they first come."""

DEVICE_KINDS: Final = frozenset(("start", "run", "yield", "freed", "resume", "finish"))
"""Those that only something on the device, or a simulation of it, can see."""

REQUEST_KINDS: Final = ("arrive", "begin", "done", "drop", "refuse")
USE_KINDS: Final = ("attach", "detach", "count", "unload", "failed")
PATHS: Final = ("genie", "qnn", "bypass")

NOWHERE: Final = -1
"""A time that did not come, a number that does not apply."""


class Event(NamedTuple):
    """One event of one graphExecute."""

    time_ns: int
    kind: str
    """One of KINDS."""
    execute: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is known of a graphExecute when it is called. What was not recorded keeps its default."""

    execute: int
    """Its number; unique in the trace."""
    thread: str
    handle: str | None = None
    """Dialog handle that the thread carried; None: none."""
    weight: int | None = None
    """Weight registered for the handle; None: not recorded."""
    process: int = 0
    context: str = ""
    """The loaded context: two copies of one binary are two contexts."""
    graph: str = ""
    path: str = "genie"
    """``genie``: through the guard; ``qnn``: straight to the device; ``bypass``: past the guard, without a handle."""
    under: int | None = None
    """The graphExecute whose slot it runs under, where a slot outlives one graphExecute."""
    rank: int = 0
    """For a guard's priority policy; larger is served first."""
    client: str = ""
    """Instance or other client whose thread it is."""
    request: int = NOWHERE
    stage: str = ""
    token: int = NOWHERE
    """Number of the token that its return yields."""
    adapter: str = ""
    """LoRA adapter that its request is answered with."""
    deadline_ns: int = NOWHERE
    """By when its thread wants it back."""
    cores: tuple[int, ...] = ()
    """Cores it takes, all at once; empty: not recorded."""
    level: int = NOWHERE
    """QNN priority, 0 to 7; larger goes first."""
    pd: str = ""
    """Protection domain of its context."""
    qnn: bool = True
    """A QNN graph, of which a core runs one at a time."""
    vtcm_bytes: int = 0
    hvx: int = 0
    hmx: int = 0
    solo_ns: int = NOWHERE
    """Its work: the time it takes alone."""
    demand: int = 0
    """DRAM bytes a second it asks for at full rate."""


class Parts(NamedTuple):
    """Where the time of a graphExecute went, as its recorder counted it [ns]."""

    guard_wait_ns: int
    guard_overhead_ns: int
    rpc_ns: int
    device_wait_ns: int
    acquire_ns: int
    run_ns: int
    evict_ns: int
    restore_ns: int
    rpc_return_ns: int

    @property
    def core_ns(self) -> int:
        """Time for which it held its core: what the guard charges."""
        return self.acquire_ns + self.run_ns + self.evict_ns + self.restore_ns


class RequestEvent(NamedTuple):
    """One event of a request or job."""

    time_ns: int
    kind: str
    """One of REQUEST_KINDS."""
    client: str
    request: int
    tokens: int = 0
    """Tokens it asks for; with ``arrive`` only."""


class MemoryEvent(NamedTuple):
    """Bytes taken (positive) or given back (negative) at one place of one ledger."""

    time_ns: int
    ledger: str
    """"device", "host" or "pd"."""
    place: str
    item: str
    delta_bytes: int
    copy: str = ""
    """Loaded copy that the bytes are part of; "" for a file that several map."""
    user: str = ""
    """User whose own I/O or KV cache they are; "" for what its users share."""


class UseEvent(NamedTuple):
    """Something that happened to the users of a loaded copy."""

    time_ns: int
    kind: str
    """One of USE_KINDS; ``count`` is what the registry says, the others are what happened."""
    copy: str
    user: str = ""
    users: int = 0
    """With ``count`` only: how many users the registry says it has."""


class Account(NamedTuple):
    """One dialog handle in the guard of a process."""

    process: int
    handle: str
    weight: int
    rank: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardFacts:
    """What is known of the guard. What is not known keeps its default, and rules that need it do not apply."""

    policy: str = ""
    params: tuple[tuple[str, int], ...] = ()
    slots: int | None = None
    """Holders at once, a process or a core."""
    slots_per: Literal["process", "core"] = "process"
    work_conserving: bool | None = None
    """Whether the policy promises that no slot is free while a call waits."""
    accounts: tuple[Account, ...] = ()
    """In the order by which the policy breaks ties; empty: in order of first call."""
    weighed_ns: int = NOWHERE
    """From when on only accounts that can call count in a lane's sum of weights; NOWHERE: all count throughout."""
    weight_sums: tuple[tuple[int, int, int], ...] = ()
    """(process, core or NOWHERE, sum of weights) from `weighed_ns` on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """The device's constants, in the words of ``spec.Device``; 0 bandwidth is none modelled."""

    cores: int = 1
    coexists: bool = True
    parallel_rate: int = 0
    """Work in a nanosecond, in ns x 2^-20, of each of several QNN graphs on a core; 0: a core runs one at a time."""
    vtcm_bytes: int = 0
    hvx: int = 0
    hmx: int = 0
    yield_rule: Literal["latency", "grid"] = "latency"
    yield_latency_ns: int = 0
    yield_interval_ns: int = 0
    evict_ns: int = 0
    restore_ns: int = 0
    acquire_ns: int = 0
    """NOWHERE: not known, nor what powering up takes."""
    power_up_ns: int = 0
    power_up_warm_ns: int = 0
    idle_timeout_ns: int = 0
    first_call_ns: int = 0
    throttle_after_ns: int = NOWHERE
    """Busy time after which a core slows down; NOWHERE: never."""
    throttle_stretch: int = 1000
    """How long work then takes, in thousandths."""
    throttle_rest_ns: int = 0
    rpc_return_ns: int = NOWHERE
    """Time of an answer to its host; NOWHERE: not known."""
    rpc_polling_ns: int = NOWHERE
    """How long the host polls for it; NOWHERE: not modelled."""
    rpc_wake_ns: int = 0
    bandwidth: int = 0
    background: int = 0
    """What the bandwidth grows by while background traffic pauses."""
    background_on_ns: int = 0
    background_off_ns: int = 0
    """Background traffic comes for one time and pauses for the other, from time 0 on; 0: it does not pause."""
    core_bandwidth: int = 0
    limits: tuple[tuple[str, int], ...] = ()
    """(ledger, bytes that a place of it may hold)."""
    pd_count: int = 0
    """Protection domains a process may open on a core; 0: not known."""


@dataclass(slots=True, kw_only=True)
class Trace:
    """A recorded or simulated run. Lists are in order of time; where times are equal, in the order recorded."""

    source: str = ""
    """Who recorded it."""
    engine: str = ""
    """Name of the engine for a simulation; "" for a recording."""
    replay: str = ""
    """Command that gives the same trace again; "" for a recording."""
    end_ns: int | None = None
    """Last instant that was observed, everything at it included; None: that of the last event."""
    guard: GuardFacts = field(default_factory=GuardFacts)
    device: DeviceFacts | None = None
    """None: not known, so that rules of the device do not apply."""
    calls: dict[int, Call] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    parts: dict[int, Parts] = field(default_factory=dict)
    """Of graphExecutes that returned, as far as their recorder counted them."""
    requests: list[RequestEvent] = field(default_factory=list)
    memory: list[MemoryEvent] = field(default_factory=list)
    uses: list[UseEvent] = field(default_factory=list)

    @property
    def last_ns(self) -> int:
        """The last instant observed.

        >>> Trace(events=[Event(5, "call", 0)]).last_ns
        5
        """
        if self.end_ns is not None:
            return self.end_ns
        lists: Iterable[list[Event] | list[RequestEvent] | list[MemoryEvent] | list[UseEvent]]
        lists = (self.events, self.requests, self.memory, self.uses)
        return max((entries[-1].time_ns for entries in lists if entries), default=0)

    def history(self, execute: int) -> list[Event]:
        """Return the events of one graphExecute, in order."""
        return [event for event in self.events if event.execute == execute]


def merge(traces: Iterable[Trace]) -> Trace:
    """Return one trace of several recorded by one clock, such as one a process; facts are those of the first.

    Raises
    ------
    ValueError
        When two of them use one number.

    Examples
    --------
    >>> one = Trace(calls={1: Call(execute=1, thread="a")}, events=[Event(7, "call", 1)])
    >>> two = Trace(calls={2: Call(execute=2, thread="b")}, events=[Event(5, "call", 2)])
    >>> [event.time_ns for event in merge([one, two]).events]
    [5, 7]
    """
    merged: Trace | None = None
    for trace in traces:
        if merged is None:
            merged = Trace(
                source=trace.source, engine=trace.engine, replay=trace.replay, guard=trace.guard, device=trace.device
            )
        twice = merged.calls.keys() & trace.calls.keys()
        if twice:
            raise ValueError(f"graphExecute {min(twice)} is in two of the traces, expected each number once")
        merged.calls.update(trace.calls)
        merged.parts.update(trace.parts)
        merged.events += trace.events
        merged.requests += trace.requests
        merged.memory += trace.memory
        merged.uses += trace.uses
        if trace.end_ns is not None:
            merged.end_ns = max(trace.end_ns, merged.end_ns or 0)
    merged = merged or Trace()
    for entries in (merged.events, merged.requests, merged.memory, merged.uses):
        entries.sort(key=lambda entry: entry.time_ns)
    return merged
