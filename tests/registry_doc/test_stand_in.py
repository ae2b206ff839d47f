"""The proposed change keeps every rule of memory over any sequence of steps; each way to get it wrong is found."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.invariants import Report, check_trace
from tests.registry_doc.stand_in import IO_BYTES, SHARED, Copy, Runtime

COPY_BYTES = sum(count_bytes for _, count_bytes in SHARED)
MEMORY_RULES = ("memory-balance", "memory-in-use", "references")


def check(runtime: Runtime) -> Report:
    """Check what a runtime wrote down, and that the rules of memory were among those that could be checked."""
    report = check_trace(runtime.trace)
    assert {*MEMORY_RULES} <= {*report.checked}
    return report


def shared(runtime: Runtime, *users: str) -> Runtime:
    """Let users open one model, the first of them loading it."""
    first, *others = users
    runtime.open("vit", first)
    runtime.loaded("vit")
    for user in others:
        runtime.open("vit", user)
    return runtime


WHAT = ("open", "loaded", "failed", "begin", "end", "close")
steps = st.lists(st.tuples(st.sampled_from(WHAT), st.integers(0, 2), st.integers(0, 1)), max_size=40)


@given(steps, st.integers(1, 3))
def test_the_proposed_change_keeps_every_rule(script: list[tuple[str, int, int]], contexts: int) -> None:
    """Three users, two keys, loads that fail, graphs that are out when their model is destroyed; then all close."""
    runtime, asked = Runtime(contexts), dict[str, str]()
    for what, number, which in script:
        user, key = f"vlm{number}", f"vit{which}"
        loading = key in runtime.copies and runtime.copies[key].loading
        if what == "open" and user not in asked:
            asked[user] = key
            runtime.open(key, user)
        elif what in ("loaded", "failed") and loading:
            if what == "failed":
                asked = {other: its for other, its in asked.items() if its != key}
            getattr(runtime, what)(key)
        elif (what == "begin" and user in runtime.opened and user not in runtime.running) or (
            what == "end" and user in runtime.running
        ):
            getattr(runtime, what)(user)
        elif what == "close" and user in runtime.opened:
            del asked[user]
            runtime.close(user)
    users = {copy.name: sum(copy is other for other in runtime.opened.values()) for copy in runtime.copies.values()}

    assert check_trace(runtime.trace).violations == []
    ready = [copy for copy in runtime.copies.values() if not copy.loading]
    assert all(copy.count == users[copy.name] > 0 for copy in ready)
    assert runtime.held_bytes() == COPY_BYTES * contexts * len(ready) + IO_BYTES * len(runtime.opened)
    for user in list(runtime.opened):
        runtime.close(user)
    assert check_trace(runtime.trace).violations == []
    assert runtime.held_bytes() == 0


def test_a_borrower_adds_its_io_and_nothing_else() -> None:
    runtime = shared(Runtime(), "a")
    before = runtime.held_bytes()
    runtime.open("vit", "b")

    assert (before, runtime.held_bytes()) == (COPY_BYTES + IO_BYTES, COPY_BYTES + 2 * IO_BYTES)
    assert check(runtime).ok


def test_the_copy_outlives_the_model_that_loaded_it() -> None:
    runtime = shared(Runtime(), "a", "b")
    runtime.close("a")
    runtime.begin("b")
    runtime.end("b")

    assert runtime.held_bytes() == COPY_BYTES + IO_BYTES
    assert check(runtime).ok


# -- planted faults: one step done wrong, a script that shows it, the rule that finds it


class FreesWithItsLoader(Runtime):
    """Today's ownership: whoever loaded a model destroys it."""

    def release(self, copy: Copy, user: str) -> None:
        if user == copy.loader:
            self.use("detach", copy, user)
            self.unload(copy)
        else:
            super().release(copy, user)


class DestroysUnderItsGraph(Runtime):
    def wait_for_own_graph(self, user: str) -> None:
        """Go on at once."""


class KeepsItsIo(Runtime):
    def deregister_io(self, copy: Copy, user: str) -> None:
        """Leave it to the context, which others still use."""


class FreesContextsFirst(Runtime):
    def close(self, user: str) -> None:
        copy = self.opened.pop(user)
        copy.count -= 1
        if copy.count == 0:
            self.unload(copy)
        self.deregister_io(copy, user)
        self.use("detach", copy, user)


class ReleasesTwice(Runtime):
    """Once in the model's destructor and once in that of the handle it was given."""

    def release(self, copy: Copy, user: str) -> None:
        super().release(copy, user)
        super().release(copy, user)


class CountsBeforeTheLoad(Runtime):
    """A reference is counted for a load that then fails, and the entry stays for the next try."""

    def undo(self, key: str, copy: Copy) -> None:
        copy.count += 1
        for context in reversed(range(self.contexts - 1)):
            self.give_context(copy, context)


class KeepsWhatItGot(Runtime):
    """A load that fails at its last context leaves the others."""

    def undo(self, key: str, copy: Copy) -> None:
        del self.copies[key]


class DoesNotWaitForTheLoad(Runtime):
    """A second caller takes a copy that is still being loaded for one that is ready, and executes."""

    def joins_a_load(self, copy: Copy, user: str) -> None:
        super().joins_a_load(copy, user)
        self.begin_on(copy, user)


def let_return(runtime: Runtime) -> None:
    for user in list(runtime.running):
        runtime.end(user)


def leave_while_another_executes(runtime: Runtime) -> None:
    shared(runtime, "a", "b")
    runtime.begin("b")
    runtime.close("a")
    let_return(runtime)


def leave_first(runtime: Runtime) -> None:
    shared(runtime, "a", "b")
    runtime.close("a")


def leave_while_executing(runtime: Runtime) -> None:
    shared(runtime, "a", "b")
    runtime.begin("b")
    runtime.close("b")
    let_return(runtime)


def leave_last(runtime: Runtime) -> None:
    shared(runtime, "a")
    runtime.close("a")


def fail_and_try_again(runtime: Runtime) -> None:
    runtime.open("vit", "a")
    runtime.failed("vit")
    if "vit" not in runtime.copies:
        runtime.open("vit", "a")
    runtime.loaded("vit")
    runtime.close("a")


def execute_during_a_load(runtime: Runtime) -> None:
    runtime.open("vit", "a")
    runtime.open("vit", "b")
    runtime.loaded("vit")
    let_return(runtime)


@pytest.mark.parametrize(
    ("faulty", "script", "rule", "words"),
    [
        (FreesWithItsLoader, leave_while_another_executes, "memory-in-use", "was freed while"),
        (FreesWithItsLoader, leave_first, "references", "'unload' while b use it"),
        (DestroysUnderItsGraph, leave_while_executing, "memory-in-use", "was freed while"),
        (KeepsItsIo, leave_first, "memory-balance", f"still holds {IO_BYTES} B for 'a', no user of copy"),
        (FreesContextsFirst, leave_last, "references", "'unload' while a use it"),
        (ReleasesTwice, leave_first, "references", "let go of it without using it"),
        (CountsBeforeTheLoad, fail_and_try_again, "references", "is counted to have 2 users, it has 1"),
        (KeepsWhatItGot, fail_and_try_again, "memory-balance", "for nobody: no user has copy"),
        (DoesNotWaitForTheLoad, execute_during_a_load, "references", "which b does not use"),
    ],
)
def test_a_planted_fault_is_found(
    faulty: type[Runtime], script: Callable[[Runtime], None], rule: str, words: str
) -> None:
    sound, broken = Runtime(contexts=2), faulty(contexts=2)
    script(sound)
    script(broken)

    assert check(sound).ok
    report = check(broken)
    assert [violation for violation in report.violations if violation.rule == rule and words in violation.message], (
        report.violations
    )


def test_every_planted_fault_has_a_script() -> None:
    marks = test_a_planted_fault_is_found.pytestmark  # type: ignore[attr-defined]
    (planted,) = [mark.args[1] for mark in marks if mark.name == "parametrize"]

    assert {case[0] for case in planted} == {*Runtime.__subclasses__()}
