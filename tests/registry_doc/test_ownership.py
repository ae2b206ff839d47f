"""Who holds which bytes of a shared ViT, and that a load is all or nothing, in the model of memory itself."""

from __future__ import annotations

import pytest

from htpsim.errors import CapacityError, InvariantError
from htpsim.memory import LoadedContext, Memory
from htpsim.memory.ledger import Taking
from htpsim.spec import Context, Device, Graph, Model, constant

MB = 10**6
TERMS = {"weights_bytes": 100, "run_list_bytes": 8, "spill_fill_bytes": 4, "vtcm_backup_bytes": 2}
CONTEXT = Context(name="veg", io_bytes=5, **TERMS)
GRAPHS = (Graph(name="graph", context="veg", service=constant(1)),)
VIT = Model(name="vit", role="vit", contexts=(CONTEXT,), graphs=GRAPHS)
LLM = Model(name="llm", role="llm", contexts=(CONTEXT,), decode=GRAPHS, kv_bytes=50)


def opened(model: Model, users: int) -> Memory:
    """Return a memory in which users share one copy of a model."""
    memory = Memory(Device())
    memory.load("copy", model, 0, (0,), 0)
    for user in range(users):
        memory.attach(f"vlm{user}", "copy", model.kv_bytes, 0)
    return memory


@pytest.mark.parametrize("users", [1, 2, 4])
def test_the_registry_holds_four_terms_once_and_every_user_the_fifth(users: int) -> None:
    memory = opened(VIT, users)
    (held,) = memory.pds()[0, 0]

    assert held["copy/veg"] == sum(TERMS.values())
    assert {item: count for item, count in held.items() if item != "copy/veg"} == {
        f"vlm{user} I/O on copy/veg": CONTEXT.io_bytes for user in range(users)
    }


@pytest.mark.parametrize("users", [1, 2, 4])
def test_an_llm_adds_a_kv_cache_a_user_and_a_vit_none(users: int) -> None:
    assert opened(LLM, users).held("device") - opened(VIT, users).held("device") == users * LLM.kv_bytes


def test_a_user_that_leaves_takes_its_own_and_nothing_of_the_others() -> None:
    memory = opened(LLM, 3)
    memory.detach("vlm0", "copy", 1)

    assert memory.held("device") == opened(LLM, 2).held("device")
    assert memory.users("copy") == ("vlm1", "vlm2")


class SharesTheIo(Memory):
    """A planted fault: a borrower counts as a user of the copy, but has no I/O of its own."""

    def attach(self, user: str, copy: str, kv_bytes: int, now_ns: int) -> None:
        borrows = bool(self.users(copy))
        super().attach(user, copy, kv_bytes, now_ns)
        if borrows:
            self._ledgers.give(now_ns, Taking("device", "dram", f"{user} I/O on {copy}/veg", CONTEXT.io_bytes))


def test_a_borrower_without_io_of_its_own_is_found() -> None:
    memory = SharesTheIo(Device())
    memory.load("copy", VIT, 0, (0,), 0)
    memory.attach("vlm0", "copy", 0, 0)
    memory.validate()
    memory.attach("vlm1", "copy", 0, 0)

    with pytest.raises(InvariantError, match="accounted for are"):
        memory.validate()


# -- a load is all or nothing

FREE_BYTES, LEAK_BYTES = 3_000 * MB, 200 * MB
DEVICE = Device(dram_budget_bytes=FREE_BYTES, mapping_limit_bytes=1_000 * MB, pd_count=40, pd_rule="any")
SECOND_FAILS = Model(
    name="vit",
    role="vit",
    contexts=(Context(name="first", weights_bytes=LEAK_BYTES), Context(name="second", weights_bytes=1_001 * MB)),
)


class KeepsTheFirstContext(Memory):
    """A planted fault: when the second context cannot be created, the first is forgotten and not freed."""

    def load(
        self, copy: str, model: Model, process: int, cores: tuple[int, ...], now_ns: int
    ) -> tuple[LoadedContext, ...]:
        try:
            return super().load(copy, model, process, cores, now_ns)
        except CapacityError as refusal:
            if "context 1 'second'" in str(refusal):
                self._ledgers.take(now_ns, Taking("device", "dram", f"{copy}/first", LEAK_BYTES))
            raise


def refusals(memory: Memory, count: int) -> list[str]:
    """Return the words of so many refused loads."""
    words = []
    for number in range(count):
        with pytest.raises(CapacityError) as refusal:
            memory.load(f"load {number}", SECOND_FAILS, 0, (0,), number)
        words.append(str(refusal.value))
    return words


def test_a_load_that_fails_at_its_second_context_leaves_nothing_of_the_first() -> None:
    memory = Memory(DEVICE)

    assert len({words.replace(f"load {n}", "") for n, words in enumerate(refusals(memory, 40))}) == 1
    assert memory.held("device") == memory.held("pd") == memory.held("host") == 0
    assert memory.events == []
    memory.validate()


def test_a_load_that_leaks_fails_for_want_of_room_in_the_end() -> None:
    """With 3 GB free and 200 MB lost a time, load number 3 GB / 200 MB + 1 = 16 finds no room for its first context."""
    memory = KeepsTheFirstContext(DEVICE)
    words = refusals(memory, FREE_BYTES // LEAK_BYTES + 1)

    assert all("context 1 'second'" in each for each in words[:-1])
    assert "context 0 'first'" in words[-1]
    assert "dram_budget_bytes" in words[-1]
    assert len(words) == 16
    with pytest.raises(InvariantError, match="accounted for are"):
        memory.validate()


def test_contexts_of_one_copy_come_and_go_together() -> None:
    """As they must where they are registered in one spill-fill group: the others refer to the first of them."""
    both = Model(name="vit", role="vit", contexts=(CONTEXT, Context(name="tail", weights_bytes=9)))
    memory = Memory(Device())
    memory.load("copy", both, 0, (0,), 1)
    memory.unload("copy", 2)

    taken, given = ({(event[3], event[0]) for event in memory.events if event[4] * sign > 0} for sign in (1, -1))
    assert {time for _, time in taken} == {1}
    assert {time for _, time in given} == {2}
    assert {item for item, _ in taken} == {item for item, _ in given}
