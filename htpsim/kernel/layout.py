"""From a plan and its loading to the tables of a run."""

from __future__ import annotations

from copy import copy
from typing import Any, Final

import numpy as np

from htpsim.device.records import GRID, LATENCY, NEVER, NOBODY
from htpsim.kernel.events import NO_TIME
from htpsim.kernel.fields import CLOSED, PERIODIC, POISSON, REPLAY
from htpsim.kernel.shapes import differs, shape_of
from htpsim.kernel.tallying import MEASURES
from htpsim.kernel.world import Memory
from htpsim.results.columns import PATH_BYPASS, PATH_GENIE, PATH_QNN
from htpsim.results.loaded import Loaded, Used
from htpsim.results.tally import BINS
from htpsim.rng import stream_key
from htpsim.sched import Policy, policy_params
from htpsim.sched.guard import open_account
from htpsim.sched.policy import ACCOUNT_FIELDS, LANE_FIELDS
from htpsim.spec import Distribution, Instance, OtherClient, exponential, table
from htpsim.spec.plan import NO_ACCOUNT, ClientPlan, GraphPlan, Plan
from htpsim.spec.records import record_class, record_dtype

ARRIVALS: Final = {"closed": CLOSED, "periodic": PERIODIC, "poisson": POISSON, "replay": REPLAY}
FEW_THREADS: Final = 4
"""Threads of an unlimited client to begin with."""
FIRST_ROOM: Final = 64
PACE_LIMIT: Final = 10_000
"""Requests of a closed loop that may begin in one instant, as in the reference engine."""


class Values:
    """Tables of integers one behind the other; the same table is kept once."""

    def __init__(self) -> None:
        self._tables: list[Any] = []
        self._starts: list[int] = []
        self._kept: list[Any] = []
        """those that were found equal to another, too, so that no other can take their place in memory"""
        self._found: dict[int, int] = {}
        self._length = 0

    def add(self, values: Any) -> int:
        """Return where a table begins."""
        if not len(values):
            return 0
        found = self._found.get(id(values))
        if found is None:
            found = self._equal(values)
            if found < 0:
                found = self._length
                self._tables.append(values)
                self._starts.append(found)
                self._length += len(values)
            self._found[id(values)] = found
            self._kept.append(values)
        return found

    def _equal(self, values: Any) -> int:
        """Return where an equal table begins, or -1: splits of one size have equal times, and a cache holds few."""
        for start, other in zip(self._starts, self._tables, strict=True):
            if len(other) == len(values) and other[0] == values[0] and np.array_equal(other, values):
                return start
        return -1

    def all(self) -> Any:
        """Return them as one array, of at least one integer."""
        return np.concatenate([*self._tables, np.zeros(1, dtype=np.int64)])


def signed(key: int) -> int:
    """Return the signed integer with the same 64 bits."""
    return key - (1 << 64) if key >> 63 else key


class Layout:
    """Fills the tables of one run."""

    def __init__(
        self, plan: Plan, loaded: Loaded, replication: int, policy: type[Policy], *, keeps: bool = True
    ) -> None:
        self.plan = plan
        self.keeps = keeps
        self.shape = shape_of(plan, keeps=keeps)
        self.loaded = loaded
        self.replication = replication
        self.policy = policy
        self.memory = Memory()
        self.values = Values()
        self.processes = sorted({account.process for account in plan.accounts})
        self.per_core = plan.scenario.guard.slots_per == "core"
        self.jobs: list[dict[str, int]] = []
        self.threads: list[dict[str, int]] = []
        self.turns: list[dict[str, int]] = []
        self.adapters = {"": 0}
        self.copies: dict[int, int] = {}
        """where the turns at a copy stand, by its first context"""
        self.streams: dict[tuple[int, str], tuple[str, str]] = {}
        """names of the streams whose keys are in the clients' records: all that differs between replications"""
        self.made: Memory | None = None

    def again(self, replication: int) -> Layout:
        """Return the layout of another replication, which need not be filled in anew."""
        self.make()
        other = copy(self)
        other.replication = replication
        other.margins = dict(self.margins)
        return other

    def make(self) -> Memory:
        """Return the tables, ready for the loop."""
        if self.made is None:
            self.made = self.fill()
            assert not differs(self.made.arrays, self.counts(), self.shape)
        memory = self.made.copy()
        users = memory.arrays["users"]
        for (number, field), stream in self.streams.items():
            users[field][number] = signed(stream_key(self.plan.scenario.run.seed, self.replication, *stream))
        return memory

    def fill(self) -> Memory:
        """Return the tables, but for the keys of the streams of draws."""
        plan, memory, loaded = self.plan, self.memory, self.loaded
        self.device()
        self.guards()
        users = [self.user(client) for client in plan.clients]
        for name, records in (("users", users), ("threads", self.threads), ("jobs", self.jobs), ("turns", self.turns)):
            made = memory.put(name, max(1, len(records)))
            for k, record in enumerate(records):
                for field, value in record.items():
                    made[field][k] = value
        memory.integers("values", self.values.all())
        steps = memory.put("loads", max(1, len(loaded.steps)))
        children: list[int] = []
        for k, step in enumerate(loaded.steps):
            failed = step.ends >= 0 and plan.clients[step.ends].name in loaded.failed
            steps[k] = (step.at_ns, step.place, len(children), len(step.brings), step.ends, failed)
            children += step.brings
        memory.integers("children", children or [0])
        for name in ("clients", "holders", "evicted", "returns"):
            memory.integers(name, [NOBODY] * (loaded.contexts + 1))
        for name in ("requests", "rows", "slices"):
            memory.put(name, FIRST_ROOM)
        measures = 1 if self.keeps else len(plan.clients) * MEASURES
        memory.put("tallies", measures)
        memory.integers("bins", np.zeros(1 if self.keeps else measures * BINS, dtype=np.int64))
        self.state()
        return memory

    def counts(self) -> dict[str, int]:
        """Return how many records those tables have that have room for one more where they have none."""
        return {"users": len(self.plan.clients), "threads": len(self.threads), "jobs": len(self.jobs)}

    def device(self) -> None:
        """Fill in the device, its cores and contexts."""
        device = self.plan.scenario.device
        named = ("cores", "vtcm_bytes", "hvx", "hmx", "yield_latency_ns", "yield_interval_ns", "evict_ns", "restore_ns")
        times = ("acquire_ns", "power_up_ns", "power_up_warm_ns", "idle_timeout_ns", "first_call_ns", "rpc_wake_ns")
        more = ("rpc_return_ns", "throttle_rest_ns", "throttle_stretch")
        bandwidth = 0 if device.dram_bandwidth is None else device.dram_bandwidth - device.background_bandwidth
        graphs = [g for c in self.plan.clients for m in c.models for g in m.all_graphs]
        self.memory.put(
            "dev", 1, gangs=any(g.width > 1 for g in graphs), coexists=device.coexists,
            yield_rule=GRID if device.yield_rule == "grid" else LATENCY, bandwidth=bandwidth,
            core_bandwidth=device.core_dram_bandwidth or 0,
            powers=device.power_up_ns > 0 or device.power_up_warm_ns > 0,
            throttles=device.throttle_after_ns is not None, throttle_after_ns=device.throttle_after_ns or 0,
            rpc_polling_ns=NEVER if device.rpc_polling_ns is None else device.rpc_polling_ns,
            shares=bandwidth > 0 or (device.core_dram_bandwidth or 0) > 0 or device.pge,
            parallel=device.pge, parallel_rate=device.pge_scaled,
            **{name: getattr(device, name) for name in (*named, *times, *more)},
        )  # fmt: skip
        self.memory.put("cores", device.cores, cold=1, holder=NOBODY)
        self.memory.put("contexts", self.loaded.contexts + 1, head=NOBODY, tail=NOBODY)

    def guards(self) -> None:
        """Fill in the guards of the processes, their lanes and accounts."""
        plan, policy, memory = self.plan, self.policy, self.memory
        per_guard = plan.scenario.device.cores if self.per_core else 1
        params = policy_params(policy, plan.scenario.guard.params)
        count = len(self.processes) * per_guard
        lanes = memory.put("lanes", max(1, count), (*LANE_FIELDS, *policy.lane_fields, *policy.params), **params)
        lanes["slots"] = plan.slots()
        account_fields = (*ACCOUNT_FIELDS, *policy.account_fields)
        for n, process in enumerate(self.processes):
            accounts = [a for a in plan.accounts if a.process == process]
            opened: list[Any] = [record_class("Account", account_fields)() for _ in accounts]
            for i, account in enumerate(accounts):
                open_account(opened, i, account.weight, account.priority)
            filled = [tuple(getattr(each, f) for f in each.fields) for each in opened]
            for k in range(n * per_guard, (n + 1) * per_guard):
                lanes["accounts"][k] = len(accounts)
                lanes["weight_sum"][k] = sum(a.weight for a in accounts)
                memory.accounts.append(np.array(filled, dtype=record_dtype(account_fields)))
        each = range(count)
        memory.put(
            "shells", max(1, count), guard=[k // per_guard for k in each] or 0, number=[k % per_guard for k in each]
            or 0, timer_ns=NEVER, weigh_to=[self.summed(k // per_guard, k % per_guard) for k in each] or NOBODY,
        )  # fmt: skip
        firsts = [n * per_guard for n in range(len(self.processes))]
        memory.put("guards", max(1, len(firsts)), process=self.processes or 0, lane=firsts or 0, lanes=per_guard)

    def summed(self, guard: int, lane: int) -> int:
        """Return the sum of weights of those who can call in a lane once all have loaded; NOBODY to leave it."""
        weights = {
            use.account: use.weight
            for client, uses in zip(self.plan.clients, self.loaded.uses, strict=True)
            for use in uses
            if use.plan.guarded
            and client.process == self.processes[guard]
            and (not self.per_core or (use.contexts and use.contexts[0].core == lane))
        }
        return sum(weights.values()) if weights else NOBODY

    def state(self) -> None:
        """Fill in the state of the loop, and what is pending when it begins."""
        scenario, loaded = self.plan.scenario, self.loaded
        device, guard, run = scenario.device, scenario.guard, scenario.run
        timers = len(self.memory.accounts)
        begins = len(self.plan.clients)
        fan = max((len(step.brings) for step in loaded.steps), default=0)
        self.memory.put("heap", 2 * (begins + timers + 16 + fan))
        self.memory.put(
            "st", 1, start_ns=loaded.ready_ns + run.warmup_ns,
            end_ns=loaded.ready_ns + run.warmup_ns + run.duration_ns, free_request=NOBODY, due_ns=NO_TIME, due=NOBODY,
            guards=len(self.processes), first_start=NOBODY, last_start=NOBODY, keeps=self.keeps, starved_user=NOBODY,
            loading=begins, clients=begins, to_load=begins, changes=loaded.keeper is not None, goes_on=NOBODY,
            per_core=self.per_core, whole_request=guard.scope == "request",
            gap_inside=guard.gap_inside,
            covers_switches=guard.covers == "switches", overhead_ns=guard.overhead_ns, rpc_call_ns=device.rpc_call_ns,
            late_returns=device.rpc_return_ns > 0 or (device.rpc_polling_ns is not None and device.rpc_wake_ns > 0),
            alternates=device.background_off_ns > 0 and device.dram_bandwidth is not None,
            next_bandwidth=device.dram_bandwidth or 0, next_ns=device.background_on_ns,
            after_next_ns=device.background_off_ns,
        )  # fmt: skip
        self.rooms = {"rows": 1 << 20, "requests": 1 << 12, "slices": 1 << 12} if self.keeps else {}
        self.margins = {"heap": max(fan, begins) + 8, "rows": 4, "requests": 4, "slices": 2 * loaded.contexts + 4}

    def user(self, client: ClientPlan) -> dict[str, int]:
        """Return the record of a client, with its threads and jobs."""
        spec = client.spec
        arrivals = spec.arrivals
        record = {
            "instance": int(isinstance(spec, Instance)), "thread": len(self.threads), "free": NOBODY, "queue": NOBODY,
            "encoded": NOBODY, "queue_limit": NOBODY, "pace_at_ns": NEVER,
            "arrivals": ARRIVALS[arrivals.kind], "ttft_ns": NEVER, "itl_ns": NEVER, "turns": 1,
            "period_ns": arrivals.period_ns, "offset_ns": arrivals.offset_ns,
            "clock_ns": arrivals.offset_ns, "times": len(arrivals.times_ns), "threads": 1,
            "first_time": self.values.add(np.array(arrivals.times_ns, dtype=np.int64)),
        }  # fmt: skip
        self.draw(record, "think", client, arrivals.think)
        if arrivals.kind == "poisson":
            self.draw(record, "between", client, exponential(arrivals.period_ns), "arrival")
        else:
            jitter = Distribution(kind="uniform", high=arrivals.jitter_ns)
            self.draw(record, "between", client, jitter, "jitter")
        for purpose in ("vit", "prefill", "decode"):
            self.streams[client.number, f"{purpose}_key"] = (client.name, purpose)
        if isinstance(spec, Instance):
            self.instance(record, client, spec)
        else:
            self.other(record, client, spec)
        return record

    def draw(
        self, record: dict[str, int], name: str, client: ClientPlan, values: Distribution, purpose: str = ""
    ) -> None:
        """Fill in a distribution and the key of its stream."""
        drawn = table(values)
        self.streams[client.number, f"{name}_key"] = (client.name, purpose or name)
        record[f"{name}_first"] = self.values.add(drawn)
        record[f"{name}_count"] = len(drawn)

    def instance(self, record: dict[str, int], client: ClientPlan, spec: Instance) -> None:
        """Fill in a VLM."""
        record |= {
            "has_vit": int(spec.vit is not None), "has_llm": int(spec.llm is not None), "turns": spec.dialog_turns,
            "gap_graph_ns": spec.host_gap_graph_ns, "gap_step_ns": spec.host_gap_step_ns,
            "gap_stage_ns": spec.host_gap_stage_ns, "pace_limit": PACE_LIMIT,
            "drop_newest": int(spec.drop == "newest"), "ar": 1,
            "queue_limit": NOBODY if spec.queue_limit is None else spec.queue_limit,
            "ttft_ns": NEVER if spec.ttft_deadline_ns is None else spec.ttft_deadline_ns,
            "itl_ns": NEVER if spec.itl_deadline_ns is None else spec.itl_deadline_ns,
        }  # fmt: skip
        self.draw(record, "images", client, spec.images)
        self.draw(record, "text", client, spec.text_tokens, "text_tokens")
        self.draw(record, "output", client, spec.output_tokens, "output_tokens")
        if spec.llm is not None:
            record |= {"ar": spec.llm.ar, "context_tokens": spec.llm.context_tokens}
            record |= {"lm_head_split": int(spec.llm.lm_head_split)}
            record["tokens_per_image"] = spec.vit.tokens_per_image if spec.vit else 0
            record |= {"adapter_ns": spec.llm.lora_switch_ns, "graphs_ns": spec.llm.graph_switch_ns}
        thread = new_thread(len(self.threads), client.number)
        by_plan = {id(use.plan): use for use in self.loaded.uses[client.number]}
        record["own"] = int(spec.vit_thread == "own" and len(by_plan) == 2)
        record["answers"] = thread["number"] + record["own"]
        for role, plan in (("vit", client.vit), ("llm", client.llm)):
            use = by_plan.get(id(plan))
            if use is None:
                continue
            t = record["answers"] if role == "llm" else thread["number"]
            if use.plan.on_host:
                record["vit_on_host"] = 1
            groups = {"vit": use.plan.graphs} if role == "vit" else {
                "prefill": use.plan.prefill, "decode": use.plan.decode,
            }  # fmt: skip
            if role == "llm":
                thread |= self.turn_taker(use)
            for name, graphs in groups.items():
                thread[name] = len(self.jobs)
                tiers = {"prefill": use.plan.prefill_tiers, "decode": use.plan.decode_tiers}.get(name, [0])
                thread["vits" if name == "vit" else f"{name}s"] = len(graphs) // len(tiers)
                if name != "vit":
                    record[f"{name}_tier"] = self.values.add(np.array(tiers, dtype=np.int64))
                    record[f"{name}_tiers"] = len(tiers)
                record[f"{name}_width"] = width(graphs)
                self.jobs += [self.job(client, use, graph, t) for graph in graphs]
        self.threads.append(thread | {"second": record["own"]})
        if record["own"]:
            self.threads.append(thread | {"number": record["answers"]})

    def turn_taker(self, use: Used) -> dict[str, int]:
        """Return what a thread knows of the turns at the copy that it answers on."""
        if not use.plan.switches:
            return {}
        first = use.contexts[0].copy
        if first not in self.copies:
            self.copies[first] = len(self.turns)
            switches = int(use.plan.model.graph_switch_ns > 0)
            self.turns.append({"switches_graphs": switches, "first": NOBODY, "last": NOBODY})
        adapter = self.adapters.setdefault(use.plan.adapter, len(self.adapters))
        return {"copy": self.copies[first], "adapter": adapter}

    def other(self, record: dict[str, int], client: ClientPlan, spec: OtherClient) -> None:
        """Fill in another client, with a record of each of its graphs for every thread."""
        closed = spec.arrivals.kind == "closed"
        record |= {
            "limit": spec.outstanding, "drops": int(spec.when_full == "drop"), "gap_graph_ns": spec.host_gap_ns,
            "pace_limit": PACE_LIMIT + spec.outstanding,
            "ttft_ns": NEVER if spec.deadline_ns is None else spec.deadline_ns,
        }  # fmt: skip
        self.streams[client.number, "vit_key"] = (client.name, "job")
        for use in self.loaded.uses[client.number]:
            count = spec.outstanding if closed else min(FEW_THREADS, spec.outstanding or FEW_THREADS)
            record["threads"] = count
            for k in range(count):
                t = len(self.threads)
                thread = new_thread(len(self.threads), client.number)
                thread |= {"first": len(self.jobs), "last": len(use.plan.graphs) - 1}
                thread["offset_ns"] = spec.arrivals.offset_ns
                if not closed:
                    thread["next_free"] = t + 1 if k + 1 < count else NOBODY
                    record["free"] = record["thread"]
                self.threads.append(thread)
                self.jobs += [self.job(client, use, graph, t) for graph in use.plan.graphs]

    def job(self, client: ClientPlan, use: Used, graph: GraphPlan, thread: int) -> dict[str, int]:
        """Return the record of one graph of one thread, with what never changes."""
        plan = use.plan
        if plan.on_host:  # its record only knows its times
            first = self.values.add(graph.solo_ns)
            return {"draw": graph.draw, "first_value": first, "value_count": len(graph.solo_ns)}
        return {
            "level": plan.level, "qnn": int(graph.qnn), "vtcm_bytes": graph.vtcm_bytes, "hvx": graph.hvx,
            "hmx": graph.hmx, "thread": thread, "user": client.number, "graph": graph.number,
            "path": PATH_GENIE if plan.guarded else PATH_BYPASS if plan.bypass else PATH_QNN,
            "weight": use.weight if plan.guarded else 0, "account": plan.account if plan.guarded else NO_ACCOUNT,
            "instance": int(isinstance(client.spec, Instance)), "slot": use.account,
            "draw": graph.draw, "first_value": self.values.add(graph.solo_ns),
            "value_count": len(graph.solo_ns),
            "first_demand": self.values.add(graph.demand) if self.memory.arrays["dev"]["shares"][0] else 0,
            **self.where(client, use, graph),
        }  # fmt: skip

    def where(self, client: ClientPlan, use: Used, graph: GraphPlan) -> dict[str, int]:
        """Return where the calls of a graph go: what another copy of its model changes."""
        found = use.contexts[graph.context]
        lane = NOBODY
        if use.plan.guarded:
            guard = self.processes.index(client.process)
            lane = guard * self.plan.scenario.device.cores + found.core if self.per_core else guard
        return {
            "context": found.copy, "core": found.core, "cores": found.mask, "width": found.width, "pd": found.pd,
            "lane": lane,
        }  # fmt: skip


def new_thread(number: int, user: int) -> dict[str, int]:
    """Return the record of a thread that has not begun."""
    nobody = dict.fromkeys(("hold_call", "hold_row", "next_free", "next_start", "copy"), NOBODY)
    return {"number": number, "user": user, **nobody}


def width(graphs: list[GraphPlan]) -> int:
    """Return how many draws a step of these graphs has."""
    return 1 + max((g.draw for g in graphs), default=0)
