"""Copies for CPU or GPU, which lie in host memory alone; and what the ledgers call what was read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from htpsim.errors import CapacityError
from htpsim.memory import Memory
from htpsim.spec import Context, Device, Model

PARTS = (
    Context(name="p", weights_bytes=40, spill_fill_bytes=7, io_bytes=2),
    Context(name="q", weights_bytes=30, spill_fill_bytes=5, io_bytes=3),
)
MODEL = Model(name="m", role="other", contexts=PARTS)


def test_a_copy_for_the_host_needs_room_for_files_spill_fill_and_io() -> None:
    needed = 40 + 7 + 2 + 30 + 5 + 3
    memory = Memory(Device(host_budget_bytes=needed))
    loaded = memory.load("a", MODEL, 0, (), now_ns=0)
    memory.attach("u", "a", 0, now_ns=1)

    assert [(part.name, part.copy, part.model) for part in loaded] == [("a/p", "a", "m"), ("a/q", "a", "m")]
    assert [(part.cores, part.pds, part.places) for part in loaded] == [((), (), ())] * 2
    assert (memory.held("host"), memory.held("device"), memory.held("pd")) == (needed, 0, 0)
    memory.validate()
    memory.detach("u", "a", 2)
    memory.unload("a", 3)
    assert memory.held("host") == 0
    with pytest.raises(CapacityError, match=r"^model 'm', context 1 'q' of copy 'a': no room in host: .* asked 8 B"):
        Memory(Device(host_budget_bytes=needed - 1)).load("a", MODEL, 0, (), now_ns=0)


def test_what_was_read_stands_in_the_ledger_under_its_context() -> None:
    memory = Memory(Device())
    memory.load("a", replace(MODEL, load="read"), 0, (0,), now_ns=0)
    memory.load("b", replace(MODEL, load="read", file_kept=False), 0, (0,), now_ns=0)
    memory.load("c", replace(MODEL, load="read", read_budget_bytes=9), 0, (0,), now_ns=0)

    reads = [(item, count) for _, ledger, _, item, count in memory.events if ledger == "host"]
    assert reads == [("a/p read", 40), ("a/q read", 30), ("b/p read", 40), ("b/q read", 30), ("c read buffer", 9)]


def test_a_model_that_finds_every_pd_taken_by_others_is_told_so() -> None:
    memory = Memory(Device(pd_rule="by-model", pd_count=1))
    memory.load("a", MODEL, 0, (0,), now_ns=0)

    with pytest.raises(CapacityError) as refusal:
        memory.load("b", replace(MODEL, name="n"), 0, (0,), now_ns=0)

    assert str(refusal.value) == (
        "model 'n', context 0 'p' of copy 'b': a context is never split, and of the 1 PDs (device.pd_count) of process "
        "0 on core 0 each holds another model (device.pd_rule by-model): device.pd_count 1, asked 1, held 1, free 0"
    )


def test_a_full_pd_is_said_to_have_nothing_free() -> None:
    memory = Memory(Device(pd_bytes=49, pd_count=1, pd_rule="any"))
    memory.load("a", replace(MODEL, contexts=PARTS[:1]), 0, (0,), now_ns=0)

    with pytest.raises(CapacityError, match=r"device.pd_bytes 49 B .* asked 38 B .* held 49 B .* free 0 B"):
        memory.load("b", replace(MODEL, name="n", contexts=PARTS[1:]), 0, (0,), now_ns=0)
