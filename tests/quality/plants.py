"""Deliberately broken guards, policies, devices, engines and ledgers, each with the rule that must find it.

A plant replaces a function of the package for the length of a test. Nothing here is in the package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from htpsim.device import admission, bandwidth, rates, rules
from htpsim.device.records import NEVER, WAITING
from htpsim.errors import CapacityError
from htpsim.memory import memory as memory_module
from htpsim.memory import plan as room
from htpsim.sched import POLICIES, Drr, Edf, Eevdf, Fifo, Lottery, Policy, Priority, Quota, Sfq, Stride, guard
from htpsim.sched.fair import mean_run_tag
from htpsim.sched.policy import VIRTUAL_SCALE
from htpsim.sim import guards, requests

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Bug:
    """One bug: what is wrong, which scenarios show it, which rules may find it."""

    name: str
    kind: str
    """"backlogged" or "any", with the policy behind a colon; or the name of a crafted scenario."""
    rules: tuple[str, ...]
    plant: Plant


BUGS: list[Bug] = []


def bug(name: str, kind: str, *found_by: str) -> Callable[[Plant], Plant]:
    def register(plant: Plant) -> Plant:
        BUGS.append(Bug(name, kind, found_by, plant))
        return plant

    return register


def policy(name: str, kind: str, *found_by: str, takes: str) -> Callable[[type[Policy]], type[Policy]]:
    """Register a broken policy that takes the name of a built-in one."""

    def register(broken: type[Policy]) -> type[Policy]:
        BUGS.append(Bug(name, kind, found_by, lambda patch: patch.setitem(POLICIES, takes, broken)))
        return broken

    return register


def tampered(patch: pytest.MonkeyPatch, where: Any, name: str, after: Callable[..., None]) -> None:
    """Let a function do its work, and then something wrong with what it was given."""
    original = getattr(where, name)

    def replacement(*arguments: Any) -> Any:
        answer = original(*arguments)
        after(*arguments)
        return answer

    patch.setattr(where, name, replacement)


# Guards


def _slots(patch: pytest.MonkeyPatch, more: int) -> None:
    def widen(self: Any, *arguments: Any) -> None:
        self.record.slots += more

    tampered(patch, guards.Lane, "__init__", widen)


@bug("slots are off by one", "any:fifo", "guard-exclusion")
def _(patch: pytest.MonkeyPatch) -> None:
    _slots(patch, 1)


@bug("a slot is granted while none is free", "backlogged:fifo", "guard-exclusion")
def _(patch: pytest.MonkeyPatch) -> None:
    _slots(patch, 1 << 20)


@bug("a slot is released twice", "backlogged:fifo", "guard-exclusion")
def _(patch: pytest.MonkeyPatch) -> None:
    def again(lane: Any, accounts: Any, i: int, cost_ns: int, now_ns: int, charge: Any) -> None:
        lane.holders -= 1

    tampered(patch, guard, "release", again)


@bug("a slot is never free again", "any:fifo", "guard-work")
def _(patch: pytest.MonkeyPatch) -> None:
    def kept(lane: Any, accounts: Any, i: int, cost_ns: int, now_ns: int, charge: Any) -> None:
        lane.holders += 1

    tampered(patch, guard, "release", kept)


@bug("a call is lost on its way into the queue", "any:fifo", "guard-work", "guard-order")
def _(patch: pytest.MonkeyPatch) -> None:
    def forgotten(lane: Any, accounts: Any, calls: Any, i: int, j: int, now_ns: int, wake: Any) -> None:
        lane.waiting -= accounts[i].head == j and j % 5 == 4

    tampered(patch, guard, "call", forgotten)


@bug("calls of one account are served last in, first out", "pairs", "guard-fifo")
def _(patch: pytest.MonkeyPatch) -> None:
    def turned(lane: Any, accounts: Any, calls: Any, i: int, j: int, now_ns: int, wake: Any) -> None:
        account = accounts[i]
        if account.head != j:
            before = account.head
            while calls[before].next_call != j:
                before = calls[before].next_call
            calls[before].next_call = guard.NOBODY
            calls[j].next_call, account.head, account.tail = account.head, j, before

    tampered(patch, guard, "call", turned)


# Policies


@policy("wrong end of the priority order", "any:priority", "guard-order", takes="priority")
class LowestFirst(Priority):
    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        waiting = [i for i in range(lane.accounts) if accounts[i].waiting]
        return min(waiting, key=lambda i: (accounts[i].priority, accounts[i].called_ns))


@policy("a rank is never made up for by waiting", "any:priority", "guard-order", takes="priority")
class NeverAgeing(Priority):
    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        waiting = [i for i in range(lane.accounts) if accounts[i].waiting]
        return max(waiting, key=lambda i: (accounts[i].priority, -accounts[i].called_ns, -i))


@policy("last come, first served", "any:fifo", "guard-order", takes="fifo")
class NewestFirst(Fifo):
    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        return max((i for i in range(lane.accounts) if accounts[i].waiting), key=lambda i: (accounts[i].called_ns, -i))


@policy("a tie is broken by the order of a set", "any:fifo", "guard-order", takes="fifo")
class AnyOfEquals(Fifo):
    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        waiting = [i for i in range(lane.accounts) if accounts[i].waiting]
        first = min(accounts[i].called_ns for i in waiting)
        return list({f"account {97 * i % 13}": i for i in waiting if accounts[i].called_ns == first}.values())[-1]


@policy("the weight is ignored after a wake-up", "backlogged:sfq", "share-bound", takes="sfq")
class WeightForgotten(Sfq):
    @staticmethod
    def charge(lane: Any, accounts: Any, i: int, cost_ns: int, now_ns: int) -> None:
        accounts[i].finish_tag += cost_ns << VIRTUAL_SCALE
        if accounts[i].waiting:
            accounts[i].start_tag = max(accounts[i].start_tag, accounts[i].finish_tag)


@policy("virtual time stands still", "any:sfq", "guard-order", takes="sfq")
class NoVirtualTime(Sfq):
    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        chosen = Sfq.pick(lane, accounts, now_ns)
        lane.virtual_time = 0
        return chosen


@policy("another account is charged", "backlogged:sfq", "share-bound", takes="sfq")
class WrongAccount(Sfq):
    @staticmethod
    def charge(lane: Any, accounts: Any, i: int, cost_ns: int, now_ns: int) -> None:
        Sfq.charge(lane, accounts, (i + 1) % lane.accounts, cost_ns, now_ns)


@policy("calls are charged, not device time", "backlogged:sfq", "share-bound", takes="sfq")
class CallsCharged(Sfq):
    @staticmethod
    def charge(lane: Any, accounts: Any, i: int, cost_ns: int, now_ns: int) -> None:
        Sfq.charge(lane, accounts, i, 1, now_ns)


@policy("a waiting head keeps the tag of before the charge", "pairs:sfq", "guard-order", takes="sfq")
class StaleTag(Sfq):
    @staticmethod
    def charge(lane: Any, accounts: Any, i: int, cost_ns: int, now_ns: int) -> None:
        accounts[i].finish_tag += (cost_ns << VIRTUAL_SCALE) // accounts[i].weight


@policy("an overdraft is never repaid", "backlogged:quota", "guard-order", takes="quota")
class Forgiving(Quota):
    @staticmethod
    def timer(lane: Any, accounts: Any, now_ns: int) -> int:
        for i in range(lane.accounts):
            accounts[i].budget = max(accounts[i].budget, 0)
        return Quota.timer(lane, accounts, now_ns)


@policy("a budget is renewed once", "any:quota", "guard-order", "guard-work", takes="quota")
class OnePeriod(Quota):
    @staticmethod
    def timer(lane: Any, accounts: Any, now_ns: int) -> int:
        Quota.timer(lane, accounts, now_ns)
        return -1


@policy("whoever was away comes back at the pass of when it left", "any:stride", "guard-order", takes="stride")
class OldPass(Stride):
    @staticmethod
    def wake(lane: Any, accounts: Any, i: int, now_ns: int) -> None:
        """Keep the old pass."""


@policy("a turn never ends", "backlogged:drr", "share-bound", takes="drr")
class EndlessTurn(Drr):
    @staticmethod
    def charge(lane: Any, accounts: Any, i: int, cost_ns: int, now_ns: int) -> None:
        accounts[i].deficit_ns -= cost_ns


@policy("nobody must be eligible", "backlogged:eevdf", "guard-order", takes="eevdf")
class AllEligible(Eevdf):
    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        def deadline(i: int) -> tuple[int, int]:
            request = max(lane.slice_ns, accounts[i].longest_ns) << VIRTUAL_SCALE
            return accounts[i].run_tag + request // accounts[i].weight, i

        mean_run_tag(lane, accounts, -1)
        return min((i for i in range(lane.accounts) if accounts[i].waiting), key=deadline)


@policy("the latest deadline first", "any:edf", "guard-order", takes="edf")
class LatestDeadline(Edf):
    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        return max(
            (i for i in range(lane.accounts) if accounts[i].waiting), key=lambda i: (accounts[i].deadline_ns, -i)
        )


@policy("every account has one ticket", "backlogged:lottery", "guard-order", takes="lottery")
class EqualTickets(Lottery):
    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        weights = [accounts[i].weight for i in range(lane.accounts)]
        for i in range(lane.accounts):
            accounts[i].weight = 1
        chosen = Lottery.pick(lane, accounts, now_ns)
        for i, weight in enumerate(weights):
            accounts[i].weight = weight
        return chosen


# Devices


def _waiting(dev: Any, jobs: Any, clients: Any, core: int) -> list[int]:
    heads = [clients[k] for k in range(dev.clients)]
    return [j for j in heads if jobs[j].state == WAITING and jobs[j].core == core]


@bug("the lowest QNN priority first", "levels", "running-set")
def _(patch: pytest.MonkeyPatch) -> None:
    def lowest(dev: Any, jobs: Any, clients: Any, core: int) -> int:
        return min(_waiting(dev, jobs, clients, core), key=lambda j: (jobs[j].level, jobs[j].arrival_ns), default=-1)

    patch.setattr(rules, "first_waiting", lowest)


@bug("the newest of equal priority first", "levels", "running-set")
def _(patch: pytest.MonkeyPatch) -> None:
    def newest(dev: Any, jobs: Any, clients: Any, core: int) -> int:
        return max(_waiting(dev, jobs, clients, core), key=lambda j: (jobs[j].level, jobs[j].arrival_ns), default=-1)

    patch.setattr(rules, "first_waiting", newest)


@bug("equal priority evicts", "apps", "eviction")
def _(patch: pytest.MonkeyPatch) -> None:
    def staying_counts_for_nothing(jobs: Any, a: int, b: int) -> bool:
        return bool((-jobs[a].level, -jobs[a].execute) < (-jobs[b].level, -jobs[b].execute))

    patch.setattr(admission, "goes_before", staying_counts_for_nothing)


@bug("nobody is ever evicted", "levels", "eviction")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rules, "ask_to_yield", lambda *arguments: None)


@bug("a victim leaves twice as late", "levels", "eviction")
def _(patch: pytest.MonkeyPatch) -> None:
    def later(dev: Any, job: Any, now_ns: int) -> None:
        job.yield_ns += dev.yield_latency_ns
        if job.timer_ns != NEVER:
            job.timer_ns = max(job.timer_ns, min(job.yield_ns, now_ns + -(-job.left // (1 << 20))))

    tampered(patch, rules, "ask_to_yield", later)


@bug("evicted work is queued last", "levels", "running-set")
def _(patch: pytest.MonkeyPatch) -> None:
    def last(dev: Any, cores: Any, jobs: Any, holders: Any, j: int, now_ns: int) -> None:
        jobs[j].arrival_ns = now_ns

    tampered(patch, rules, "wait_again", last)


@bug("evicted work is drawn again", "levels", "work", "parts")
def _(patch: pytest.MonkeyPatch) -> None:
    def resampled(dev: Any, cores: Any, jobs: Any, holders: Any, j: int, now_ns: int) -> None:
        jobs[j].left = jobs[j].work

    tampered(patch, rules, "wait_again", resampled)


@bug("a resume loses work", "levels", "work")
def _(patch: pytest.MonkeyPatch) -> None:
    def lost(dev: Any, cores: Any, jobs: Any, holders: Any, j: int, now_ns: int) -> None:
        jobs[j].left = max(1 << 20, jobs[j].left // 2)

    tampered(patch, rules, "wait_again", lost)


@bug("bandwidth is not shared out again when one finishes", "bandwidth", "work")
def _(patch: pytest.MonkeyPatch) -> None:
    original = rules.finish

    def finish(dev: Any, *arguments: Any) -> None:
        original(dev, *arguments)
        dev.rates_stale = 0

    patch.setattr(rules, "finish", finish)


@bug("bandwidth goes to whoever comes first", "bandwidth", "work")
def _(patch: pytest.MonkeyPatch) -> None:
    def first_come(dev: Any, jobs: Any, holders: Any) -> None:
        left = dev.bandwidth
        for j in sorted(holders[k] for k in range(dev.holders)):
            if jobs[j].cap >= 0:
                jobs[j].cap = min(jobs[j].demand, left)
                left -= jobs[j].cap

    tampered(patch, bandwidth, "share_bandwidth", first_come)
    patch.setattr(rates, "share_bandwidth", bandwidth.share_bandwidth)


@bug("a context serves its youngest graph first", "shared", "context-fifo")
def _(patch: pytest.MonkeyPatch) -> None:
    def jump(dev: Any, cores: Any, context: Any, jobs: Any, clients: Any, j: int) -> None:
        jobs[j].state, head = 0, context.head
        jobs[j].next_in_context, jobs[head].next_in_context = jobs[head].next_in_context, j
        if jobs[j].next_in_context < 0:
            context.tail = j

    patch.setattr(rules, "queue_up", jump)


def _fits_without(*ignored: str) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        def fits(dev: Any, job: Any, pd: int, qnn: int, vtcm_bytes: int, hvx: int, hmx: int) -> bool:
            checks = {
                "pd": job.pd == pd,
                "qnn": not (job.qnn and qnn),
                "vtcm": job.vtcm_bytes + vtcm_bytes <= dev.vtcm_bytes,
                "hvx": job.hvx + hvx <= dev.hvx,
                "hmx": job.hmx + hmx <= dev.hmx,
            }
            return all(held for name, held in checks.items() if name not in ignored)

        patch.setattr(admission, "fits_beside", fits)

    return plant


for _name in ("pd", "hmx", "hvx", "vtcm"):
    BUGS.append(Bug(f"{_name} is not looked at", "apps", ("core-exclusion",), _fits_without(_name)))
BUGS.append(Bug("two QNN graphs run at once", "apps", ("core-exclusion",), _fits_without("qnn", "hmx", "vtcm")))


@bug("a restore takes no time", "levels", "device-costs", "parts")
def _(patch: pytest.MonkeyPatch) -> None:
    original = rules.start

    def start(dev: Any, *arguments: Any) -> None:
        restore_ns, dev.restore_ns = dev.restore_ns, 0
        original(dev, *arguments)
        dev.restore_ns = restore_ns

    patch.setattr(rules, "start", start)


@bug("a core never powers down", "cold", "device-costs")
def _(patch: pytest.MonkeyPatch) -> None:
    def warm(dev: Any, cores: Any, jobs: Any, holders: Any, j: int, now_ns: int) -> None:
        for core in cores:
            core.idle_since_ns = 1 << 60

    tampered(patch, rules, "free_cores", warm)


@bug("a core that is free is not looked at", "levels", "device-work")
def _(patch: pytest.MonkeyPatch) -> None:
    original = rules.first_waiting

    def sometimes(dev: Any, jobs: Any, clients: Any, core: int) -> int:
        j = original(dev, jobs, clients, core)
        return -1 if j >= 0 and jobs[j].execute % 4 == 3 and dev.clients < 3 else j

    patch.setattr(rules, "first_waiting", sometimes)


# Engines


@bug("waiting while evicted is not counted", "levels", "parts", "little")
def _(patch: pytest.MonkeyPatch) -> None:
    original = rules.start

    def start(dev: Any, cores: Any, jobs: Any, holders: Any, j: int, now_ns: int) -> None:
        waited_ns = jobs[j].wait_ns
        original(dev, cores, jobs, holders, j, now_ns)
        if waited_ns and jobs[j].evictions:
            jobs[j].wait_ns = waited_ns

    patch.setattr(rules, "start", start)


@bug("evicting counts as running", "levels", "parts", "utilisation")
def _(patch: pytest.MonkeyPatch) -> None:
    def twice(dev: Any, cores: Any, jobs: Any, holders: Any, j: int, now_ns: int) -> None:
        jobs[j].run_ns += jobs[j].evict_ns

    tampered(patch, rules, "wait_again", twice)


@bug("a full queue forgets a request that it drops", "drops", "requests")
def _(patch: pytest.MonkeyPatch) -> None:
    def forget(self: Any, request: Any, *, taken_up: bool) -> None:
        if len(self.queue) > 1:
            self.queue.popleft().begun_ns = 1
        self.queue.append(request)

    patch.setattr(requests.Backlog, "add", forget)


@bug("a request that was served counts as dropped", "drops", "requests")
def _(patch: pytest.MonkeyPatch) -> None:
    original = requests.RequestState.row

    def row(self: Any) -> Any:
        if self.number == 0:
            self.state = requests.DROPPED
        return original(self)

    patch.setattr(requests.RequestState, "row", row)


# Memory


@bug("a reference is leaked when a load fails", "full", "memory-balance")
def _(patch: pytest.MonkeyPatch) -> None:
    from htpsim.sim.loader import Loader

    patch.setattr(Loader, "_leave", lambda self, client, copy: None)


@bug("bytes are counted twice and given back once", "full", "memory-balance")
def _(patch: pytest.MonkeyPatch) -> None:
    original = memory_module.Memory.load

    def load(self: Any, copy: str, *arguments: Any) -> Any:
        contexts = original(self, copy, *arguments)
        for event in [event for event in self.events if event[3].startswith(f"{copy}/")]:
            self._ledgers.take(event[0], room.Taking(*event[1:]))
        return contexts

    patch.setattr(memory_module.Memory, "load", load)


@bug("the last byte of a limit is given away twice", "tight", "memory-limit")
def _(patch: pytest.MonkeyPatch) -> None:
    original = room.Plan.free

    def generous(self: Any, at: Any) -> int | None:
        free = original(self, at)
        return None if free is None else free + 1

    patch.setattr(room.Plan, "free", generous)


@bug("a protection domain too many is opened", "domains", "memory-limit")
def _(patch: pytest.MonkeyPatch) -> None:
    original = room._first_fit

    def one_more(plan: Any, who: str, model: str, process: int, core: int, asked_bytes: int) -> int:
        try:
            return original(plan, who, model, process, core, asked_bytes)
        except CapacityError:
            return plan.room.device.pd_count

    patch.setattr(room, "_first_fit", one_more)
