"""A state machine that submits graphs to a device at random, and holds it to the vendor's rules.

Time passes from one thing that is due to the next, as in an engine; what happens is written down as a trace, whose
rules of the device are checked at the end: who may run, who is evicted and when, which core may idle, what an evict
costs, and that work is done at its share of the bandwidth. At the end everything that was submitted must have finished.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from htpsim.device.records import ACQUIRING, EVICTING, JOB_FIELDS, RESTORING, RUNNING, WAITING, WORK_SCALE
from htpsim.experiments.trace_facts import device_facts
from htpsim.invariants import Call, Event, Trace, check_trace
from htpsim.invariants.trace import NOWHERE
from htpsim.sim.clock import NO_TIME
from htpsim.sim.machine import Machine
from htpsim.spec import Device
from htpsim.spec.records import record_class
from htpsim.testing.choose import Chooser, Drawn, brief
from htpsim.testing.parts import VTCM, device_of

PATIENCE: Final = 10_000
"""Things that happen, at the end, before what has not finished is reported."""

_Job: type[Any] = record_class("Job", JOB_FIELDS)


class _Time:
    """The clock that a machine expects of an engine, moved by hand."""

    def __init__(self) -> None:
        self._now = 0
        self.wanted = 0
        self.due_ns = NO_TIME
        self.due: Callable[[], None] = lambda: None
        self.due_place: Callable[[], int] = lambda: 0
        self.actions: list[Callable[[], None]] = []

    def bit(self, action: Callable[[], None]) -> int:
        """Return the bit that asks for an action."""
        self.actions.append(action)
        return 1 << (len(self.actions) - 1)


class DeviceMachine(RuleBasedStateMachine):
    """Random submissions to a device; `device_machine` makes one for a device or a machine of your own."""

    device: Device | None = None
    make: Callable[..., Any] = Machine

    def __init__(self) -> None:
        super().__init__()
        self.time = _Time()
        self.jobs: list[Any] = []
        self.states: list[int] = []
        self.open: set[int] = set()
        self.trace = Trace(engine="device machine")
        self.contexts: list[dict[str, Any]] = []
        self.machine: Any = None

    @initialize(data=st.data())
    def boot(self, data: st.DataObject) -> None:
        """Draw a device and the contexts loaded on it."""
        c = Drawn(data.draw)
        device = self.device or device_of(c)
        self.contexts = [_context(c, device) for _ in range(c.whole(1, 4))]
        gangs = any(len(context["cores"]) > 1 for context in self.contexts)
        self.machine = type(self).make(self.time, device, self.jobs, self.finished, gangs=gangs, check=True)
        for _ in self.contexts:
            self.machine.add_context()
        # There is no host here: a graph is answered in the instant in which it finishes.
        self.trace.device = replace(device_facts(device), rpc_return_ns=NOWHERE)

    @rule(
        wait_ns=st.integers(1, 12),
        arrivals=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 15), st.sampled_from((0, 0, 5, 40))), max_size=3),
    )
    def instant(self, wait_ns: int, arrivals: list[tuple[int, int, int]]) -> None:
        """Let time pass, then submit graphs of (context, work in ns, DRAM bytes) in one instant."""
        at_ns = self.time._now + wait_ns
        while self.time.due_ns < at_ns:
            self.settle(self.time.due_ns)
        self.time._now = at_ns
        while self.time.due_ns == at_ns:
            self.act(self.time.due)
        for number, work_ns, dram_bytes in arrivals:
            self.submit(number % len(self.contexts), work_ns, dram_bytes)
        self.settle(at_ns)

    def submit(self, number: int, work_ns: int, dram_bytes: int) -> None:
        """Hand one graph to the device."""
        context, j = self.contexts[number], len(self.jobs)
        job = _Job()
        job.execute, job.context = j, number
        job.core, job.width = context["cores"][0], len(context["cores"])
        job.cores = sum(1 << core for core in context["cores"])
        job.level, job.pd, job.qnn = context["level"], context["pd"], int(context["qnn"])
        job.vtcm_bytes, job.hvx, job.hmx = context["vtcm_bytes"], context["hvx"], context["hmx"]
        through = (self.trace.device.core_bandwidth if self.trace.device else 0) * job.width
        if through:  # a graph cannot run faster than its cores can fetch its bytes
            work_ns = max(work_ns, -(-dram_bytes * 10**9 // through))
        job.work, job.demand = work_ns << WORK_SCALE, -(-dram_bytes * 10**9 // work_ns)
        self.jobs.append(job)
        self.states.append(WAITING)
        self.open.add(j)
        facts = {key: context[key] for key in ("cores", "level", "qnn", "vtcm_bytes", "hvx", "hmx")}
        self.trace.calls[j] = Call(
            execute=j, thread=f"t{j}", path="qnn", context=f"c{number}", graph=f"g{j}", pd=f"pd {context['pd']}",
            solo_ns=work_ns, demand=job.demand, **facts,
        )  # fmt: skip
        self.note("call", j)
        self.note("submit", j)
        self.act(lambda: self.machine.submit(j))

    def note(self, kind: str, j: int) -> None:
        """Write an event of graph `j` down."""
        self.trace.events.append(Event(self.time._now, kind, j))

    def settle(self, at_ns: int) -> None:
        """Let everything of one instant happen: what is due, then the dispatch of cores, until nothing is left."""
        self.time._now = at_ns
        while True:
            if self.time.due_ns == at_ns:
                self.act(self.time.due)
            elif self.time.wanted:
                bit = self.time.wanted & -self.time.wanted
                self.time.wanted ^= bit
                self.act(self.time.actions[bit.bit_length() - 1])
            else:
                return

    def act(self, action: Callable[[], None]) -> None:
        """Do something to the device, and write down what it changed."""
        action()
        for j in sorted(self.open):
            before, after = self.states[j], self.jobs[j].state
            self.states[j] = after
            if before != after:
                for kind in _passed(before, after, first=self.jobs[j].evictions == 0):
                    self.note(kind, j)
        self.machine.dev.evicted = 0

    def finished(self, j: int) -> None:
        """Hear that a graph has finished."""
        self.note("finish", j)
        self.note("return", j)
        self.open.discard(j)

    def teardown(self) -> None:
        """Let everything finish, then check what happened."""
        if self.machine is None:
            return
        for _ in range(PATIENCE):
            if self.time.due_ns == NO_TIME:
                break
            self.settle(self.time.due_ns)
        assert not self.open, f"graphs {sorted(self.open)} were submitted and never finish"
        check_trace(self.trace).require()


def _context(c: Chooser, device: Device) -> dict[str, Any]:
    """Return a loaded context: where it lies, and what its graphs take."""
    first = c.whole(0, device.cores - 1)
    width = c.of(1, 1, device.cores) if device.topology != "device-per-core" else 1
    qnn = c.of(True, True, False)
    return {
        "cores": tuple((first + k) % device.cores for k in range(width)),
        "level": c.of(2, 2, 0, 4, 7),
        "pd": c.of(0, 0, 1),
        "qnn": qnn,
        "vtcm_bytes": VTCM if qnn and c.of(True, False) else c.whole(0, 4),
        "hvx": c.whole(0, 2),
        "hmx": 1 if qnn else c.of(0, 0, 1),
    }


def _passed(before: int, after: int, *, first: bool) -> tuple[str, ...]:
    """Return the events between two states of one graph."""
    if after == RUNNING and before == WAITING:
        return ("start", "run") if first else ("resume", "run")
    if after == WAITING and before == RUNNING:
        return ("yield", "freed")
    if after == WAITING:
        return ("freed",) if before == EVICTING else ()
    return {ACQUIRING: ("start",), RESTORING: ("resume",), RUNNING: ("run",), EVICTING: ("yield",)}.get(after, ())


def device_machine(device: Device | None = None, make: Callable[..., Any] = Machine) -> type[DeviceMachine]:
    """Return the state machine that tests a device; its ``TestCase`` is what a test module needs.

    Parameters
    ----------
    device : Device, optional
        Its constants; by default they are drawn.
    make : callable
        Returns the machine to test, called as ``htpsim.sim.machine.Machine`` is.

    Examples
    --------
    >>> from hypothesis import settings
    >>> from hypothesis.stateful import run_state_machine_as_test
    >>> run_state_machine_as_test(device_machine(), settings=settings(max_examples=3))
    """
    made: type[DeviceMachine] = type(
        "DeviceMachineOfYours", (DeviceMachine,), {"device": device, "make": staticmethod(make)}
    )
    brief(made)
    return made
