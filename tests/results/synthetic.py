"""Logs to compute from: one whose every figure is known by hand, and a small FIFO machine that makes plausible ones.

The machine is not an engine of htpsim. It knows FIFO guards and FIFO cores, no priorities and no eviction, and is here
so that metrics, frames and plots can be checked without one.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from htpsim.results import RunLog
from htpsim.results.columns import (
    DONE,
    DROPPED,
    NEVER,
    PARTS,
    PATH_GENIE,
    PATH_QNN,
    QUEUED,
    RUNNING,
    STAGE_DECODE,
    STAGE_JOB,
    STAGE_PREFILL,
    STAGE_VIT,
    Copy,
    Execute,
    Load,
    MemoryEvent,
    Request,
    Slice,
)
from htpsim.spec import (
    NORMAL,
    Arrivals,
    Context,
    Device,
    Graph,
    Guard,
    Instance,
    Model,
    OtherClient,
    Registry,
    Run,
    Scenario,
    constant,
    exponential,
)

MS = 1_000_000


def model(name: str, role: str, **times_ns: int) -> Model:
    """Make a model with one graph of each given kind: graphs, prefill, decode."""
    context = Context(name="all", weights_bytes=400 * 2**20 if role == "vit" else 1800 * 2**20, io_bytes=5 * 2**20)
    graphs = {kind: (Graph(name=kind, context="all", service=constant(ns)),) for kind, ns in times_ns.items()}
    return Model(name=name, role=role, contexts=(context,), kv_bytes=0 if role == "vit" else 224 * 2**20, **graphs)


VIT = model("vit", "vit", graphs=370 * MS)
LLM = model("llm", "llm", prefill=110 * MS, decode=57 * MS)


def execute(**given: int) -> tuple[int, ...]:
    """Make one row; what is not given follows from the instants, and the parts sum to the whole."""
    row = dict.fromkeys(Execute._fields, 0)
    row.update(level=NORMAL, account=-1, token=-1, path=PATH_QNN)
    instants = ("called_ns", "granted_ns", "submitted_ns", "started_ns", "finished_ns", "returned_ns")
    row.update(dict.fromkeys((*instants, "released_ns"), NEVER))
    row.update(given)
    if row["returned_ns"] != NEVER:
        if row["granted_ns"] == NEVER:
            row["granted_ns"] = row["called_ns"]
        if row["released_ns"] == NEVER:
            row["released_ns"] = row["returned_ns"]
        row["guard_wait_ns"] = row["granted_ns"] - row["called_ns"]
        row["rpc_ns"] = row["submitted_ns"] - row["granted_ns"] - row["guard_overhead_ns"]
        if "device_wait_ns" not in given:
            row["device_wait_ns"] = row["started_ns"] - row["submitted_ns"]
        if "run_ns" not in given:
            row["run_ns"] = row["finished_ns"] - row["started_ns"] - row["acquire_ns"]
        row["rpc_return_ns"] = row["returned_ns"] - row["finished_ns"]
        assert sum(row[part] for part in PARTS) == row["returned_ns"] - row["called_ns"], row
    if "solo_ns" not in given:
        row["solo_ns"] = row["run_ns"]
    return tuple(row[name] for name in Execute._fields)


def request(**given: int) -> tuple[int, ...]:
    """Make one row of a request; instants that are not given were never reached."""
    row = dict.fromkeys(Request._fields, 0)
    row.update(dict.fromkeys(("begun_ns", "vit_done_ns", "first_token_ns", "done_ns"), NEVER))
    row.update(given)
    return tuple(row[name] for name in Request._fields)


def plain(client: int, req: int, stage: int, start: int, end: int, wait: int = 0, **given: int) -> tuple[int, ...]:
    """Make a call that waited `wait` on the device, then ran from `start` to `end`, without RPC."""
    called = start - wait
    return execute(
        client=client, request=req, stage=stage, called_ns=called, granted_ns=called, submitted_ns=called,
        started_ns=start, finished_ns=end, returned_ns=end, **given,
    )  # fmt: skip


def hand_log() -> RunLog:
    """Two instances of weights 3 and 1 and a job client on one core; window (100, 1000]; every figure known by hand.

    a: request 0 arrived 60, ViT 60-160, prefill 160-260 (token 0), decodes end 300, 340, 500 (gaps 40, 40, 160).
       request 1 arrived 500, ViT 500-560 then evicted, resumes 700, done 760; prefill in flight since 800.
    b: request 0 arrived 0, no image: prefill 20-90 (token 0, before the window), decode 2 waits for a's.
       guarded calls; its request 1 arrived 900 and waits for the guard; request 2 is queued, 3 was dropped.
    job: one job 560-700, arrived 550.
    """
    scenario = Scenario(
        name="hand",
        device=Device(dram_budget_bytes=1000),
        guard=Guard(slots=1),
        run=Run(duration_ns=900, warmup_ns=90),
        instances=(
            Instance(name="a", weight=3, vit=VIT, llm=LLM, itl_deadline_ns=100, ttft_deadline_ns=250),
            Instance(name="b", weight=1, llm=LLM),
        ),
        clients=(OtherClient(name="job", model=model("adas", "other", graphs=140), deadline_ns=100),),
    )
    genie = {"path": PATH_GENIE, "weight": 3, "account": 0}
    genie_b = {"path": PATH_GENIE, "weight": 1, "account": 1}
    evicted = execute(
        execute=8, client=0, request=1, stage=STAGE_VIT, called_ns=500, submitted_ns=500, started_ns=500,
        finished_ns=760, returned_ns=760, device_wait_ns=130, run_ns=110, evict_ns=10, restore_ns=10, evictions=1,
    )  # fmt: skip
    rows = [
        plain(1, 0, STAGE_PREFILL, 20, 90, execute=0, graph=1, copy=1, token=0, **genie_b),
        plain(0, 0, STAGE_VIT, 100, 160, wait=40, execute=1),
        plain(0, 0, STAGE_PREFILL, 160, 260, execute=2, graph=1, copy=1, token=0, **genie),
        plain(0, 0, STAGE_DECODE, 260, 300, execute=3, graph=2, copy=1, token=1, **genie),
        plain(0, 0, STAGE_DECODE, 300, 340, execute=4, graph=2, copy=1, token=2, step=1, **genie),
        execute(
            execute=5, client=1, request=0, stage=STAGE_DECODE, graph=2, copy=1, token=1, called_ns=90, granted_ns=340,
            submitted_ns=340, started_ns=340, finished_ns=380, returned_ns=380, **genie_b,
        ),
        plain(0, 0, STAGE_DECODE, 460, 500, wait=120, execute=6, graph=2, copy=1, token=3, step=2, **genie),
        plain(2, 0, STAGE_JOB, 560, 700, execute=7, graph=3, copy=2),
        evicted,
        execute(
            execute=9, client=0, request=1, stage=STAGE_PREFILL, graph=1, copy=1, called_ns=800, granted_ns=800,
            submitted_ns=800, started_ns=800, solo_ns=9000, **genie,
        ),
        execute(
            execute=10, client=1, request=1, stage=STAGE_PREFILL, graph=1, copy=1, called_ns=900, solo_ns=9000,
            **genie_b,
        ),
    ]  # fmt: skip
    requests = [
        request(client=0, state=DONE, arrived_ns=60, begun_ns=60, vit_done_ns=160, first_token_ns=260, done_ns=500,
                images=1, prompt_tokens=300, output_tokens=4, tokens=4),
        request(client=0, request=1, state=RUNNING, arrived_ns=500, begun_ns=500, vit_done_ns=760, images=1,
                prompt_tokens=300, output_tokens=4),
        request(client=1, state=DONE, arrived_ns=0, begun_ns=20, first_token_ns=90, done_ns=380, prompt_tokens=64,
                output_tokens=2, tokens=2),
        request(client=1, request=1, state=RUNNING, arrived_ns=900, begun_ns=900, prompt_tokens=64, output_tokens=2),
        request(client=1, request=2, state=QUEUED, arrived_ns=950, prompt_tokens=64, output_tokens=2),
        request(client=1, request=3, state=DROPPED, arrived_ns=960, prompt_tokens=64, output_tokens=2),
        request(client=2, state=DONE, arrived_ns=550, begun_ns=560, done_ns=700),
    ]  # fmt: skip
    return RunLog(
        scenario=scenario,
        replication=0,
        engine="by hand",
        ready_ns=10,
        start_ns=100,
        end_ns=1000,
        clients=["a", "b", "job"],
        graphs=["vit/graphs", "llm/prefill", "llm/decode", "adas/graphs"],
        accounts=["process 0/a", "process 0/b"],
        executes=rows,
        requests=requests,
        slices=[(8, 1, 500, 550), (8, 2, 550, 560), (8, 3, 690, 700), (8, 1, 700, 760)],
        memory=[
            MemoryEvent(0, "host", "host", "vit file", 50),
            MemoryEvent(0, "device", "dram", "vit", 400),
            MemoryEvent(5, "device", "dram", "llm", 300),
            MemoryEvent(5, "pd", "process 0 core 0 pd 0", "llm", 300),
            MemoryEvent(6, "host", "host", "vit file", -50),
            MemoryEvent(8, "device", "dram", "vit", -100),
        ],
        loads=[
            Load(0, "vit", "owner", "vit@0", 0, 2, 6, ""),
            Load(0, "llm", "owner", "llm@0", 0, 6, 10, ""),
            Load(1, "llm", "borrower", "llm@0", 0, 2, 10, ""),
        ],
        copies=[
            Copy("vit@0", "vit", "all", "vit", 0, 0, 400, 1),
            Copy("llm@0", "llm", "all", "llm", 0, 0, 300, 2),
            Copy("adas@0", "adas", "all", "other", 0, 0, 10, 1),
        ],
    )


def vlm_scenario(
    *, vit_path: str = "genie", registry: bool = False, instances: int = 4, cores: int = 2, seconds: int = 60,
    slots: int = 0, weights: tuple[int, ...] = (1,), tokens: int = 60, seed: int = 1, think_ms: int = 1000,
    queue_limit: int | None = None, jitter: bool = True,
) -> Scenario:  # fmt: skip
    """Make the headline's shape: some equal instances, each with a ViT and an LLM."""
    return Scenario(
        name="synthetic",
        device=Device(name="SA8775P", cores=cores, load_bandwidth=1_000_000_000, dram_budget_bytes=12 * 2**30),
        guard=Guard(slots=slots, policy="fifo" if len(set(weights)) == 1 else "sfq"),
        registry=Registry(vit=registry),
        run=Run(duration_ns=seconds * 1000 * MS, seed=seed),
        instances=tuple(
            Instance(
                name=f"vlm{i}",
                weight=weights[i % len(weights)],
                vit=VIT,
                llm=LLM,
                vit_path=vit_path,
                arrivals=Arrivals(think=exponential(think_ms * MS)),
                output_tokens=constant(tokens),
                queue_limit=queue_limit,
                host_gap_step_ns=5 * MS if jitter else 0,
            )
            for i in range(instances)
        ),
    )


@dataclass
class Work:
    """One call that a request will make."""

    stage: int
    step: int
    token: int
    run_ns: int
    gap_ns: int
    guarded: bool


@dataclass
class Thread:
    """One instance: what it has to do now, and what waits for it."""

    index: int
    ahead: deque[Work] = field(default_factory=deque)
    current: int = -1
    queue: deque[int] = field(default_factory=deque)


class Machine:
    """FIFO guard, FIFO cores, closed loops or given arrivals; call `run` once."""

    def __init__(self, scenario: Scenario, arrivals: dict[int, list[int]] | None = None, rpc_ns: int = 100_000) -> None:
        self.scenario, self.rpc_ns = scenario, rpc_ns
        self.random = random.Random(scenario.run.seed)
        self.jitter = 0.03 if any(i.host_gap_step_ns for i in scenario.instances) else 0.0
        self.cores = scenario.device.cores
        self.free = scenario.guard.slots or self.cores
        self.line: deque[dict[str, int]] = deque()
        self.fifo: list[deque[dict[str, int]]] = [deque() for _ in range(self.cores)]
        self.busy = [False] * self.cores
        self.threads = [Thread(i) for i in range(len(scenario.instances))]
        self.requests: list[list[dict[str, int]]] = [[] for _ in self.threads]
        self.open: list[dict[str, int]] = []
        self.rows: list[tuple[int, ...]] = []
        self.heap: list[tuple[int, int, Callable[[], None]]] = []
        self.now = self.serial = self.calls = 0
        self.closed = arrivals is None
        self.ready_ns, self.memory, self.loads, self.copies = load_all(scenario)
        self.end_ns = self.ready_ns + scenario.run.warmup_ns + scenario.run.duration_ns
        for i in range(len(self.threads)):
            for time in [self.ready_ns + i * 37 * MS] if arrivals is None else arrivals.get(i, []):
                self.at(time, lambda i=i: self.arrive(i))

    def at(self, time: int, what: Callable[[], None]) -> None:
        self.serial += 1
        heapq.heappush(self.heap, (time, self.serial, what))

    def run(self) -> RunLog:
        while self.heap and self.heap[0][0] <= self.end_ns:
            self.now, _, what = heapq.heappop(self.heap)
            what()
        scenario = self.scenario
        return RunLog(
            scenario=scenario, replication=0, engine="machine", ready_ns=self.ready_ns,
            start_ns=self.ready_ns + scenario.run.warmup_ns, end_ns=self.end_ns,
            clients=[i.name for i in scenario.instances], graphs=["vit/graphs", "llm/prefill", "llm/decode"],
            accounts=[f"process 0/{i.name}" for i in scenario.instances],
            executes=self.rows + [execute(**row) for row in sorted(self.open, key=lambda row: row["execute"])],
            requests=[request(**row) for rows in self.requests for row in rows],
            memory=self.memory, loads=self.loads, copies=self.copies,
        )  # fmt: skip

    def arrive(self, i: int) -> None:
        instance, thread = self.scenario.instances[i], self.threads[i]
        number = len(self.requests[i])
        self.requests[i].append(
            {
                "client": i, "request": number, "state": QUEUED, "arrived_ns": self.now, "prompt_tokens": 300,
                "images": 1, "output_tokens": instance.output_tokens.mean, "tokens": 0,
            }
        )  # fmt: skip
        if instance.queue_limit is not None and len(thread.queue) >= instance.queue_limit and thread.current >= 0:
            self.requests[i][number]["state"] = DROPPED
            return
        thread.queue.append(number)
        if thread.current < 0:
            self.take_up(thread)

    def take_up(self, thread: Thread) -> None:
        thread.current = thread.queue.popleft()
        row, instance = self.requests[thread.index][thread.current], self.scenario.instances[thread.index]
        row.update(state=RUNNING, begun_ns=self.now)
        thread.ahead = deque(self.work(instance, row["output_tokens"]))
        self.call(thread)

    def work(self, instance: Instance, tokens: int) -> Iterator[Work]:
        vit, llm = instance.vit.graphs[0], instance.llm
        yield Work(STAGE_VIT, 0, -1, self.time(vit.service.mean), 0, instance.vit_path == "genie")
        for step in range(3):
            yield Work(STAGE_PREFILL, step, 0 if step == 2 else -1, self.time(llm.prefill[0].service.mean), 0, True)
        for token in range(1, tokens):
            gap = instance.host_gap_step_ns
            yield Work(STAGE_DECODE, token - 1, token, self.time(llm.decode[0].service.mean), gap, True)

    def time(self, mean: int) -> int:
        return max(1, round(mean * (1 + self.jitter * self.random.uniform(-1, 1))))

    def call(self, thread: Thread) -> None:
        work = thread.ahead.popleft()
        i = thread.index
        row = {
            "execute": self.calls, "client": i, "request": thread.current, "stage": work.stage, "step": work.step,
            "graph": work.stage, "copy": self.copy_of(i, work.stage), "core": i % self.cores, "token": work.token,
            "path": PATH_GENIE if work.guarded else PATH_QNN, "account": i if work.guarded else -1,
            "weight": self.scenario.instances[i].weight if work.guarded else 0, "called_ns": self.now,
            "solo_ns": work.run_ns,
        }  # fmt: skip
        self.calls += 1
        self.open.append(row)
        if not work.guarded:
            self.grant(row, work.gap_ns)
        elif self.free:
            self.free -= 1
            self.grant(row, work.gap_ns)
        else:
            row["gap"] = work.gap_ns
            self.line.append(row)

    def copy_of(self, i: int, stage: int) -> int:
        role = "vit" if stage == STAGE_VIT else "llm"
        mine = [load.copy for load in self.loads if load.client == i and load.model == role]
        return [copy.name for copy in self.copies].index(mine[0])

    def grant(self, row: dict[str, int], gap_ns: int) -> None:
        row.pop("gap", None)
        row["granted_ns"] = self.now
        self.at(self.now + self.rpc_ns, lambda: self.submit(row, gap_ns))

    def submit(self, row: dict[str, int], gap_ns: int) -> None:
        row["submitted_ns"] = self.now
        row["next"] = gap_ns
        self.fifo[row["core"]].append(row)
        self.dispatch(row["core"])

    def dispatch(self, core: int) -> None:
        if self.busy[core] or not self.fifo[core]:
            return
        row = self.fifo[core].popleft()
        self.busy[core] = True
        row["started_ns"] = self.now
        self.at(self.now + row["solo_ns"], lambda: self.finish(row))

    def finish(self, row: dict[str, int]) -> None:
        row["finished_ns"] = self.now
        self.busy[row["core"]] = False
        self.dispatch(row["core"])
        self.at(self.now + self.rpc_ns, lambda: self.give_back(row))

    def give_back(self, row: dict[str, int]) -> None:
        gap_ns = row.pop("next")
        row["returned_ns"] = row["released_ns"] = self.now
        self.open.remove(row)
        self.rows.append(execute(**row))
        if row["path"] == PATH_GENIE:
            self.free += 1
            if self.line:
                waiting = self.line.popleft()
                self.free -= 1
                self.grant(waiting, waiting["gap"])
        self.progress(row, gap_ns)

    def progress(self, row: dict[str, int], gap_ns: int) -> None:
        thread, mine = self.threads[row["client"]], self.requests[row["client"]][row["request"]]
        if row["stage"] == STAGE_VIT:
            mine["vit_done_ns"] = self.now
        if row["token"] >= 0:
            mine["tokens"] = row["token"] + 1
            mine.setdefault("first_token_ns", self.now)
        if thread.ahead:
            self.at(self.now + gap_ns, lambda: self.call(thread))
            return
        mine.update(state=DONE, done_ns=self.now)
        thread.current = -1
        if self.closed:
            think = self.scenario.instances[thread.index].arrivals.think.mean
            self.at(self.now + round(think * self.random.uniform(0.5, 1.5)), lambda: self.arrive(thread.index))
        if thread.queue:
            self.take_up(thread)


def load_all(scenario: Scenario) -> tuple[int, list[MemoryEvent], list[Load], list[Copy]]:
    """Load ViT and LLM for every instance, one after the other: shared where the registry says so."""
    now, memory, loads, copies = 0, [], [], []
    for i, instance in enumerate(scenario.instances):
        core = i % scenario.device.cores
        for m in (instance.vit, instance.llm):
            shared = scenario.registry.vit if m.role == "vit" else scenario.registry.llm
            name = f"{m.name} on core {core}" if shared else f"{m.name} of {instance.name}"
            found = any(copy.name == name for copy in copies)
            begun = now
            if not found:
                size = m.contexts[0].shared_bytes
                memory.append(MemoryEvent(now, "host", "host", f"file {name}", m.contexts[0].binary_bytes))
                memory.append(MemoryEvent(now, "device", "dram", name, size))
                memory.append(MemoryEvent(now, "pd", f"process 0 core {core} pd 0", name, size))
                now += m.contexts[0].binary_bytes * 1000 * MS // (scenario.device.load_bandwidth or 1)
                memory.append(MemoryEvent(now, "host", "host", f"file {name}", -m.contexts[0].binary_bytes))
                copies.append(Copy(name, m.name, "all", m.role, 0, core, size, 1))
            else:
                copies = [c._replace(users=c.users + 1) if c.name == name else c for c in copies]
            extra = m.contexts[0].io_bytes + m.kv_bytes
            memory.append(MemoryEvent(now, "device", "dram", f"I/O and KV of {instance.name}", extra))
            loads.append(Load(i, m.name, "borrower" if found else "owner", name, core, begun, now, ""))
    return now, memory, loads, copies


def stretches(log: RunLog) -> list[Slice]:
    """Return the slices as named rows."""
    return [Slice(*row) for row in log.slices]
