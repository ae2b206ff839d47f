"""Memory against a model of it that adds up from nothing at every step, and first fit against brute force."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from htpsim.errors import CapacityError, IllegalTransition
from htpsim.memory import Memory
from htpsim.spec import Context, Device, Graph, Model, constant

COPIES = ["a", "b", "c"]
USERS = ["u", "v"]
copies, users = st.sampled_from(COPIES), st.sampled_from(USERS)


def draw_model(name: str, sizes: list[tuple[int, int, int]], load: Any, kv_bytes: int, decode: int) -> Model:
    contexts = tuple(
        Context(name=f"c{index}", weights_bytes=weights, spill_fill_bytes=spill, io_bytes=io)
        for index, (weights, spill, io) in enumerate(sizes)
    )
    graphs = tuple(Graph(name="ar1", context=context.name, service=constant(1)) for context in contexts[:decode])
    return Model(name=name, role="llm", contexts=contexts, decode=graphs, load=load, kv_bytes=kv_bytes)


sizes = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.integers(0, 3)), max_size=3)
modes = st.sampled_from(["read", "mmap"])
# Few models, each under its own name, so that loads meet files that are mapped already.
models = st.builds(draw_model, st.just("m"), sizes, modes, st.integers(0, 5), st.integers(0, 2))
limits = st.one_of(st.none(), st.integers(10, 60))
devices = st.builds(
    Device,
    cores=st.integers(1, 3),
    dram_budget_bytes=limits,
    host_budget_bytes=limits,
    pd_bytes=st.integers(8, 25),
    pd_count=st.integers(1, 3),
    mapping_limit_bytes=st.one_of(st.none(), st.just(8)),
    contexts_per_process=st.one_of(st.none(), st.just(4)),
    model_reserve_bytes=st.integers(0, 2),
)


class MemoryMachine(RuleBasedStateMachine):
    """Loads, users and executions in any order, illegal ones and ones that do not fit included."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ns = 0
        self.loaded: dict[str, dict[str, Any]] = {}

    @initialize(device=devices, pool=st.lists(models, min_size=1, max_size=3))
    def begin(self, device: Device, pool: list[Model]) -> None:
        self.device, self.memory = device, Memory(device)
        self.pool = [
            Model(name=f"m{number}", role="llm", contexts=m.contexts, decode=m.decode, load=m.load, kv_bytes=m.kv_bytes)
            for number, m in enumerate(pool)
        ]

    def observe(self) -> object:
        memory = self.memory
        ledgers: tuple[Any, ...] = ("device", "host", "pd")
        held = [(memory.held(ledger), memory.peak(ledger)) for ledger in ledgers]
        states = [(memory.state(copy), memory.users(copy)) for copy in COPIES]
        return held, states, memory.pds(), memory.core_reserved_bytes(), list(memory.events)

    def attempt(self, legal: bool, what: Any, *args: Any) -> bool:
        """Take a step; say whether it happened. One that is refused must change nothing."""
        self.now_ns += 1
        before = self.observe()
        refusal: Exception | None = None
        try:
            what(*args)
        except (CapacityError, IllegalTransition) as error:
            refusal = error
        assert isinstance(refusal, IllegalTransition) is not legal
        if refusal is None:
            return True
        assert "held" in str(refusal) or not legal
        assert self.observe() == before
        return False

    @rule(copy=copies, number=st.integers(0, 2), process=st.integers(0, 1), first=st.integers(0, 2), gang=st.booleans())
    def load(self, copy: str, number: int, process: int, first: int, gang: bool) -> None:
        model = self.pool[number % len(self.pool)]
        cores = tuple(range(self.device.cores)) if gang else (first % self.device.cores,)
        legal = copy not in self.loaded
        if self.attempt(legal, self.memory.load, copy, model, process, cores, self.now_ns):
            self.loaded[copy] = {"model": model, "process": process, "cores": cores, "users": {}, "executing": []}

    @rule(copy=copies, user=users, kv_bytes=st.integers(0, 5))
    def attach(self, copy: str, user: str, kv_bytes: int) -> None:
        entry = self.loaded.get(copy)
        legal = entry is not None and user not in entry["users"]
        first_promised = entry is not None and not entry["users"] and not entry.get("came")
        if self.attempt(legal, self.memory.attach, user, copy, kv_bytes, self.now_ns):
            assert entry is not None
            entry["users"][user], entry["came"] = kv_bytes, True
        elif legal and entry is not None and first_promised:
            assert kv_bytes > entry["model"].kv_bytes, "what was promised must be there"

    @rule(copy=copies, user=users)
    def detach(self, copy: str, user: str) -> None:
        entry = self.loaded.get(copy)
        legal = entry is not None and user in entry["users"] and not {user, ""} & set(entry["executing"])
        if self.attempt(legal, self.memory.detach, user, copy, self.now_ns):
            assert entry is not None
            del entry["users"][user]

    @rule(copy=copies)
    def unload(self, copy: str) -> None:
        entry = self.loaded.get(copy)
        if self.attempt(entry is not None and not entry["users"], self.memory.unload, copy, self.now_ns):
            del self.loaded[copy]

    @rule(copy=copies, user=st.sampled_from(["", *USERS]))
    def begin_execute(self, copy: str, user: str) -> None:
        entry = self.loaded.get(copy)
        legal = entry is not None and bool(entry["users"]) and (not user or user in entry["users"])
        if self.attempt(legal, self.memory.begin_execute, copy, user):
            assert entry is not None
            entry["executing"].append(user)

    @rule(copy=copies, user=st.sampled_from(["", *USERS]))
    def end_execute(self, copy: str, user: str) -> None:
        entry = self.loaded.get(copy)
        legal = entry is not None and user in entry["executing"]
        if self.attempt(legal, self.memory.end_execute, copy, user):
            assert entry is not None
            entry["executing"].remove(user)

    @invariant()
    def the_books_balance(self) -> None:
        memory, device = self.memory, self.device
        memory.validate()
        dram = host = pd = 0
        mapped = {}
        for entry in self.loaded.values():
            model = entry["model"]
            io_bytes = sum(context.io_bytes for context in model.contexts) * len(entry["users"])
            shared = sum(context.weights_bytes + context.spill_fill_bytes for context in model.contexts)
            kv_bytes = sum(entry["users"].values())
            dram += shared + io_bytes + kv_bytes + device.model_reserve_bytes
            pd += (shared + io_bytes + (kv_bytes if model.contexts else 0)) * len(entry["cores"])
            files = {(model.name, context.name): context.weights_bytes for context in model.contexts}
            if model.load == "read":
                host += sum(files.values())
            else:
                mapped.update(files)
        host += sum(mapped.values())
        assert (memory.held("device"), memory.held("host"), memory.held("pd")) == (dram, host, pd)
        assert dram <= (device.dram_budget_bytes or dram)
        assert host <= (device.host_budget_bytes or host)
        for (process, _), held in memory.pds().items():
            assert len(held) <= device.pd_count
            assert all(sum(items.values()) <= device.pd_bytes for items in held)
            assert memory.contexts_loaded(process) <= (device.contexts_per_process or 99)
        for copy in COPIES:
            assert memory.users(copy) == tuple(self.loaded[copy]["users"] if copy in self.loaded else ())

    def teardown(self) -> None:
        for copy in list(self.loaded):
            for user in list(self.loaded[copy]["executing"]):
                self.end_execute(copy, user)
            for user in list(self.loaded[copy]["users"]):
                self.detach(copy, user)
            self.unload(copy)
        if self.now_ns:
            assert [self.memory.held(ledger) for ledger in ("device", "host", "pd")] == [0, 0, 0]
            assert sum(delta for *_, delta in self.memory.events) == 0
            assert not any(self.memory.core_reserved_bytes())


TestMemoryMachine = MemoryMachine.TestCase
TestMemoryMachine.settings = settings(max_examples=60, stateful_step_count=40)


def brute_first_fit(sizes: list[int], pd_bytes: int, pd_count: int) -> tuple[int, ...] | None:
    """Return the first fit by trying every packing: the lexicographically least whose every prefix fits.

    Some context may have no PD in that order although another packing would hold all; then first fit fails, so each
    context's PD is fixed before the next is looked at.
    """
    fixed: tuple[int, ...] = ()
    for count in range(1, len(sizes) + 1):
        candidates = [
            packing
            for packing in product(range(pd_count), repeat=count)
            if packing[:-1] == fixed
            and all(
                sum(s for s, at in zip(sizes, packing, strict=False) if at == pd) <= pd_bytes for pd in set(packing)
            )
        ]
        if not candidates:
            return None
        fixed = min(candidates)
    return fixed


@given(st.lists(st.integers(0, 12), min_size=1, max_size=5), st.integers(5, 12), st.integers(1, 3))
def test_first_fit_equals_brute_force(weights: list[int], pd_bytes: int, pd_count: int) -> None:
    contexts = tuple(Context(name=f"c{index}", weights_bytes=count) for index, count in enumerate(weights))
    memory = Memory(Device(pd_bytes=pd_bytes, pd_count=pd_count))
    expected = brute_first_fit(weights, pd_bytes, pd_count)

    if expected is None:
        with pytest.raises(CapacityError):
            memory.load("a", Model(name="m", role="other", contexts=contexts), 0, (0,), 0)
    else:
        loaded = memory.load("a", Model(name="m", role="other", contexts=contexts), 0, (0,), 0)
        assert tuple(context.pds[0] for context in loaded) == expected


@given(st.lists(models, min_size=1, max_size=3), st.permutations([0, 1, 2]))
def test_what_is_held_does_not_depend_on_the_order_of_users(pool: list[Model], order: list[int]) -> None:
    held = []
    for sequence in ([0, 1, 2], order):
        memory = Memory(Device(pd_bytes=1_000))
        memory.load("a", pool[0], 0, (0,), 0)
        for user in sequence:
            memory.attach(f"u{user}", "a", pool[0].kv_bytes, 0)
        held.append((memory.held("device"), memory.held("pd"), memory.peak("device")))

    assert held[0] == held[1]
