"""Rules of the device, from one sweep over its events: the running set, evictions, idle cores, and what they cost.

The sweep looks at the device between instants. What happens in one instant is judged by the state in which the instant
leaves the device, so that no rule depends on the order in which simultaneous events were written down.
"""

from __future__ import annotations

from bisect import insort
from itertools import groupby

from htpsim.invariants.memory import emptied, on_copy
from htpsim.invariants.rule import Finding
from htpsim.invariants.running import (
    ACQUIRING,
    EVICTING,
    RESTORING,
    RUNNING,
    STAYING,
    WAITING,
    Client,
    fits,
    running_set,
)
from htpsim.invariants.spans import History, Span, Stretch
from htpsim.invariants.trace import DEVICE_KINDS, NOWHERE, Event

_BECOMES = {"start": ACQUIRING, "resume": RESTORING, "run": RUNNING, "yield": EVICTING, "freed": WAITING}


class Sweep:
    """The device of a trace, instant by instant; `found` collects what is wrong, by rule."""

    def __init__(self, history: History) -> None:
        assert history.trace.device is not None
        self.history = history
        self.device = history.trace.device
        self.contexts: dict[tuple[int, str], list[tuple[int, int, int]]] = {}
        self.clients: dict[int, Client] = {}
        self.cores: dict[int, dict[int, Client]] = {core: {} for core in range(self.device.cores)}
        self.idle_since: dict[int, int] = {}
        self.called: dict[tuple[int, str], int] = {}
        """when a graphExecute of a context has last finished"""
        self.emptied = emptied(history)
        self.gangs = any(len(span.call.cores) > 1 for span in history.sound)
        self.found: dict[str, list[Finding]] = {
            rule: [] for rule in ("running-set", "eviction", "device-work", "device-costs")
        }

    def run(self) -> dict[str, list[Finding]]:
        """Go through the trace and return what is wrong."""
        history = self.history
        sound = {span.execute for span in history.sound if span.call.cores}
        seen = [
            e for e in history.trace.events if e.execute in sound and (e.kind in DEVICE_KINDS or e.kind == "submit")
        ]
        for at_ns, group in groupby(seen, key=lambda event: event.time_ns):
            self.instant(at_ns, list(group))
        self.check_overdue(history.last_ns + 1)
        for client in self.clients.values():
            self.end_idle(client, history.last_ns)
        return self.found

    def instant(self, at_ns: int, events: list[Event]) -> None:
        """Enter the events of one instant and judge the state it leaves."""
        self.check_overdue(at_ns)
        yielded: list[Client] = []
        begun: list[Client] = []
        blurred = False
        stale: set[int] = set()
        for event in events:
            client = self.enter(event, at_ns)
            stale.update(client.call.cores)
            if event.kind in ("start", "resume"):
                begun.append(client)
            elif event.kind == "yield":
                yielded.append(client)
            elif event.kind in ("finish", "freed") and client in begun:
                blurred = True
                begun.remove(client)
        cores = sorted(self.cores) if self.gangs else sorted(stale & self.cores.keys())
        self.judge_preludes(begun, at_ns)
        if yielded and not blurred:  # where something ran for no time at all, an instant has no order
            self.judge_yields(cores, yielded, at_ns)
        if begun and not blurred:
            self.judge_starts(cores, begun, at_ns)
        self.settle(cores, at_ns)

    def enter(self, event: Event, at_ns: int) -> Client:
        """Move a client on."""
        if event.kind == "submit":
            return self.arrive(self.history.spans[event.execute])
        client = self.clients[event.execute]
        if event.kind == "start":
            self.become_client(client)
        if event.kind in ("start", "resume"):
            client.held_ns, client.asked_ns = at_ns, NOWHERE
            self.end_idle(client, at_ns)
        if event.kind == "run":
            client.done_ns = run_until(client.span, at_ns)
            client.run_ns = at_ns
        if event.kind == "finish":
            self.called[client.call.process, client.call.context] = at_ns
            self.leave(client, at_ns)
        else:
            client.state = _BECOMES[event.kind]
        if event.kind == "freed":
            self.note_idle_cores(client, at_ns)
        return client

    def arrive(self, span: Span) -> Client:
        """Queue a graphExecute in its context; as the oldest there it is a client of its cores."""
        client = self.clients[span.execute] = Client(span)
        started_ns = span.started_ns if span.started_ns != NOWHERE else self.history.last_ns + 1
        queue = self.contexts.setdefault((span.call.process, span.call.context), [])
        insort(queue, (span.submitted_ns, started_ns, span.execute))
        if queue[0][2] == span.execute:
            for _, _, number in queue[1:2]:
                self.forget(self.clients[number])
            self.become_client(client)
        return client

    def become_client(self, client: Client) -> None:
        """Enter a client on its cores."""
        for core in client.call.cores:
            self.cores.setdefault(core, {})[client.span.execute] = client

    def forget(self, client: Client) -> None:
        """Take a client that only waits off its cores: another of its context goes before it."""
        if not client.holds:
            for core in client.call.cores:
                self.cores[core].pop(client.span.execute, None)

    def leave(self, client: Client, at_ns: int) -> None:
        """End a client; the next of its context follows it."""
        call = client.call
        for core in call.cores:
            self.cores[core].pop(call.execute, None)
        self.note_idle_cores(client, at_ns)
        del self.clients[call.execute]
        queue = self.contexts[call.process, call.context]
        queue[:] = [entry for entry in queue if entry[2] != call.execute]
        if queue:
            self.become_client(self.clients[queue[0][2]])

    def note_idle_cores(self, client: Client, at_ns: int) -> None:
        """Note since when the cores that a client leaves are empty; who took them at once may be written down first."""
        for core in client.call.cores:
            others = [other for other in self.cores[core].values() if other.holds]
            if not others or (client.held_ns != at_ns and all(other.held_ns == at_ns for other in others)):
                self.idle_since[core] = at_ns

    def sets(self, cores: list[int], waits: list[Client], stays: list[Client]) -> dict[int, set[int]]:
        """Return the running set of each of `cores`."""
        waiting, staying = [c.span.execute for c in waits], [c.span.execute for c in stays]
        return {core: running_set(self.device, self.cores[core].values(), waiting, staying) for core in cores}

    @staticmethod
    def belongs(client: Client, sets: dict[int, set[int]]) -> bool:
        """Tell whether a client is in the running set of each of its cores."""
        return all(client.span.execute in sets[core] for core in client.call.cores)

    def judge_starts(self, cores: list[int], begun: list[Client], at_ns: int) -> None:
        """Find those that began though they are not in the running set."""
        sets = self.sets(cores, begun, [])
        for client in begun:
            if not self.belongs(client, sets):
                before = sorted(set().union(*(sets[core] for core in client.call.cores)) - {client.span.execute})
                oldest = min((self.clients[number].span.submitted_ns for number in before), default=at_ns)
                message = (
                    f"{self.history.name(client.span)} (level {client.call.level}) took core {client.call.cores[0]}, "
                    f"which belongs to {', '.join(self.described(number) for number in before)}"
                )
                self.found["running-set"].append((at_ns, client.span.execute, message, at_ns - oldest))

    def judge_preludes(self, begun: list[Client], at_ns: int) -> None:
        """Find VTCM acquires, power-ups, evicts and restores of another length than the device's."""
        device = self.device
        for client in begun:
            span, call = client.span, client.call
            if span.started_ns != at_ns or (len(span.holds) > 1 and span.holds[0][0] != at_ns):
                continue
            first = self.is_first(client, at_ns)
            acquire_ns = device.acquire_ns + first * device.first_call_ns
            powers_ns = {self.power_up_ns(core, at_ns) for core in call.cores} or {0}
            alone = all(not other.holds or other is client for core in call.cores for other in self.there(core))
            wanted = {acquire_ns + power_ns for power_ns in ({max(powers_ns)} if alone else powers_ns | {0})}
            if device.acquire_ns != NOWHERE:
                self.judge_length(span, "acquired its core", span.acquires, wanted)
            self.judge_length(span, "was evicted", span.evicts, {device.evict_ns})
            self.judge_length(span, "was restored", span.restores, {device.restore_ns})

    def is_first(self, client: Client, at_ns: int) -> bool:
        """Tell whether nothing of a context has finished before since its copy was loaded."""
        finished_ns = self.called.get((client.call.process, client.call.context))
        if finished_ns is None:
            return True
        copies = (copy for copy in self.emptied if on_copy(client.span, copy))
        return any(finished_ns <= left_ns <= at_ns for copy in copies for left_ns in self.emptied[copy])

    def power_up_ns(self, core: int, at_ns: int) -> int:
        """Return how long a core took to power up that was taken in this instant."""
        if any(other.holds and other.held_ns != at_ns for other in self.there(core)):
            return 0
        idle_ns = at_ns - self.idle_since.get(core, at_ns)
        if core not in self.idle_since or idle_ns > self.device.idle_timeout_ns:
            return self.device.power_up_ns
        return self.device.power_up_warm_ns if idle_ns else 0

    def there(self, core: int) -> list[Client]:
        """Return the clients of a core."""
        return list(self.cores[core].values())

    def judge_length(self, span: Span, what: str, stretches: list[Stretch], wanted_ns: set[int]) -> None:
        """Find stretches of another length than the device's."""
        for begin_ns, end_ns in stretches:
            if end_ns != NOWHERE and end_ns - begin_ns not in wanted_ns:
                length_ns, right = end_ns - begin_ns, " or ".join(map(str, sorted(wanted_ns)))
                message = f"{self.history.name(span)} {what} for {length_ns} ns, expected {right}"
                self.found["device-costs"].append((begin_ns, span.execute, message, length_ns - min(wanted_ns)))

    def described(self, number: int) -> str:
        """Describe a client in a message."""
        client = self.clients[number]
        return f"{number} (level {client.call.level}, submitted at {client.span.submitted_ns} ns)"

    def judge_yields(self, cores: list[int], yielded: list[Client], at_ns: int) -> None:
        """Find those that were evicted though they belong on the core, or at another instant than the rule's."""
        sets = self.sets(cores, [], yielded)
        for client in yielded:
            if self.belongs(client, sets):
                message = f"{self.history.name(client.span)} was evicted, though it belongs to the running set"
                self.found["eviction"].append((at_ns, client.span.execute, message, 0))
                continue
            if client.asked_ns == NOWHERE:
                self.ask(client, at_ns)
            due_ns = self.due_ns(client)
            if due_ns not in (NOWHERE, at_ns):
                message = f"{self.history.name(client.span)} yielded {at_ns - due_ns} ns later than its rule says"
                self.found["eviction"].append((at_ns, client.span.execute, message, at_ns - due_ns))
            client.asked_ns = NOWHERE

    def ask(self, client: Client, at_ns: int) -> None:
        """Note that a client must leave, and by rule ``grid`` at how much work."""
        client.asked_ns = at_ns
        interval_ns = self.device.yield_interval_ns
        if self.device.yield_rule == "grid" and interval_ns:
            client.goal_ns = (run_until(client.span, at_ns) // interval_ns + 1) * interval_ns

    def due_ns(self, client: Client) -> int:
        """Return when an asked client must yield; NOWHERE when that cannot be told from outside."""
        if self.device.yield_rule == "latency":
            return max(client.asked_ns + self.device.yield_latency_ns, client.run_ns)
        slowed = client.call.demand and (self.device.bandwidth or self.device.core_bandwidth)
        slowed = slowed or self.device.parallel_rate
        return NOWHERE if slowed else client.run_ns + client.goal_ns - client.done_ns

    def check_overdue(self, at_ns: int) -> None:
        """Find clients that should have yielded before this instant."""
        for client in self.clients.values():
            if client.asked_ns != NOWHERE and client.state == RUNNING:
                due_ns = self.due_ns(client)
                if due_ns != NOWHERE and due_ns < at_ns:
                    message = f"{self.history.name(client.span)} ran on after it had to yield at {due_ns} ns"
                    self.found["eviction"].append((due_ns, client.span.execute, message, at_ns - due_ns))
                    client.asked_ns = NOWHERE

    def settle(self, cores: list[int], at_ns: int) -> None:
        """Note who must leave, and who could run and does not, once everything of an instant has happened."""
        sets = self.sets(cores, [], [])
        for core in cores:
            for client in self.cores[core].values():
                belongs = self.belongs(client, sets) if self.gangs else client.span.execute in sets[core]
                if client.state in STAYING:
                    if belongs:
                        client.asked_ns = NOWHERE
                    elif client.asked_ns == NOWHERE:
                        self.ask(client, at_ns)
                elif client.state == WAITING and belongs and self.has_room(client):
                    client.idle_ns = at_ns if client.idle_ns == NOWHERE else client.idle_ns
                else:
                    self.end_idle(client, at_ns)

    def has_room(self, client: Client) -> bool:
        """Tell whether each of its cores has room beside what is still there."""
        for core in client.call.cores:
            there = [other.call for other in self.cores[core].values() if other.holds]
            if not fits(self.device, client.call, there):
                return False
        return True

    def end_idle(self, client: Client, at_ns: int) -> None:
        """Report a client that could have run since some instant, and did not."""
        if client.idle_ns != NOWHERE and at_ns - client.idle_ns > self.history.slack_ns:
            message = (
                f"{self.history.name(client.span)} waited {at_ns - client.idle_ns} ns for a core that was free for it"
            )
            self.found["device-work"].append((client.idle_ns, client.span.execute, message, at_ns - client.idle_ns))
        client.idle_ns = NOWHERE


def run_until(span: Span, at_ns: int) -> int:
    """Return how long a graphExecute has run up to an instant.

    >>> from htpsim.invariants.trace import Call
    >>> run_until(Span(Call(execute=0, thread="a"), runs=[(2, 5), (7, NOWHERE)]), 9)
    5
    """
    runs = [(begin, at_ns if end == NOWHERE else min(end, at_ns)) for begin, end in span.runs]
    return sum(end - begin for begin, end in runs if end > begin)
