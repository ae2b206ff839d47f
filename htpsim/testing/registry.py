"""A state machine that asks, loads, executes and lets go at random, and holds a registry to its contract.

The contract, in the words of the registry of ``htpsim.memory``: the first caller of a key loads, a second one during
the load waits, a later one shares; a load that fails leaves nothing and tells everyone the same; who uses a copy is
counted, the last to let go frees it, and nothing is freed while a graph executes. What happens is also written down as
a trace, whose rules of memory and references are checked at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from htpsim.errors import IllegalTransition
from htpsim.invariants import Call, Event, MemoryEvent, Trace, UseEvent, check_trace
from htpsim.memory import Outcome, Registry
from htpsim.testing.choose import brief

KEYS: Final = (("vit", "", 0), ("llm", "", 0))
USERS: Final = ("vlm0", "vlm1", "vlm2", "vlm3")
SHARED, OWN = 100, 7
"""Bytes of a copy, and of each user's I/O on it."""

_keys = st.sampled_from(KEYS)
_users = st.sampled_from(USERS)
_which = st.integers(0, 7)


@dataclass(slots=True)
class _Model:
    """What the contract says of one key."""

    loading: bool = False
    users: list[str] = field(default_factory=list)
    """In the order in which they came, pending ones included."""
    executing: Counter[str] = field(default_factory=Counter)
    loads: int = 0
    running: dict[str, list[int]] = field(default_factory=dict)

    def someone(self, which: int) -> str:
        """Return a user, most often one that is there."""
        there = self.users if which < 6 else []
        return there[which % len(there)] if there else USERS[which % len(USERS)]


class RegistryMachine(RuleBasedStateMachine):
    """Random users of a registry; `registry_machine` makes one for a registry of your own."""

    make: Callable[[], Any] = Registry

    def __init__(self) -> None:
        super().__init__()
        self.registry: Any = type(self).make()
        self.models = {key: _Model() for key in KEYS}
        self.told: dict[tuple[Any, str], str] = {}
        self.now_ns = 0
        self.trace = Trace(engine="registry machine")

    def copy_of(self, key: Any) -> str:
        """Name the present copy of a key."""
        return f"{key[0]} {self.models[key].loads}"

    def change(self, key: Any, delta_bytes: int, user: str = "") -> None:
        """Write bytes taken or given back down."""
        copy = self.copy_of(key)
        item = f"{user} I/O on {copy}" if user else copy
        self.trace.memory.append(MemoryEvent(self.now_ns, "device", "dram", item, delta_bytes, copy, user))

    def use(self, kind: str, key: Any, user: str = "", users: int = 0) -> None:
        """Write down what happened to the users of a copy."""
        self.trace.uses.append(UseEvent(self.now_ns, kind, self.copy_of(key), user, users))

    def refused(self, action: Callable[[], object], what: str) -> None:
        """Hold the registry to refusing, and to being unchanged by that."""
        before = {key: self.registry.users(key) for key in KEYS}
        try:
            answer = action()
        except IllegalTransition:
            after = {key: self.registry.users(key) for key in KEYS}
            assert after == before, f"{what} was refused, and changed {before} to {after}"
            return
        raise AssertionError(f"{what} was not refused; it returned {answer!r}")

    @rule(key=_keys, user=_users)
    def ask(self, key: Any, user: str) -> None:
        """Ask for a model."""
        self.now_ns += 1
        model = self.models[key]
        if user in model.users:
            self.refused(lambda: self.registry.get_or_create(key, user), f"a second request of {user}")
            return
        expected = Outcome.LOAD if not model.users else Outcome.WAIT if model.loading else Outcome.SHARE
        outcome = self.registry.get_or_create(key, user)
        assert outcome is expected, f"{user} asked for {key}: got {outcome}, expected {expected}"
        model.users.append(user)
        self.told.pop((key, user), None)
        if outcome is Outcome.LOAD:
            model.loading, model.loads = True, model.loads + 1
            self.change(key, SHARED)
        elif outcome is Outcome.SHARE:
            self.attach(key, user)

    def attach(self, key: Any, user: str) -> None:
        """Give a user of a ready copy its own bytes."""
        self.use("attach", key, user)
        self.change(key, OWN, user)

    @rule(key=_keys)
    def load_well(self, key: Any) -> None:
        """End a load."""
        self.now_ns += 1
        model = self.models[key]
        if not model.loading:
            self.refused(lambda: self.registry.loaded(key), f"the end of no load of {key}")
            return
        woken = self.registry.loaded(key)
        assert tuple(woken) == tuple(model.users[1:]), f"woke {woken}, {model.users[1:]} waited"
        model.loading = False
        for user in model.users:
            self.attach(key, user)

    @rule(key=_keys)
    def load_badly(self, key: Any) -> None:
        """Let a load fail."""
        self.now_ns += 1
        model, message = self.models[key], f"no room at {self.now_ns}"
        if not model.loading:
            self.refused(lambda: self.registry.failed(key, message), f"the failure of no load of {key}")
            return
        woken = self.registry.failed(key, message)
        assert tuple(woken) == tuple(model.users[1:]), f"woke {woken}, {model.users[1:]} waited"
        self.change(key, -SHARED)
        self.use("failed", key)
        self.told |= {(key, user): message for user in model.users}
        model.users.clear()
        model.loading = False
        self.use("count", key, users=len(self.registry.users(key)))

    @rule(key=_keys, which=_which)
    def begin(self, key: Any, which: int) -> None:
        """Begin to execute a graph."""
        self.now_ns += 1
        model = self.models[key]
        user = model.someone(which)
        if user not in model.users or model.loading:
            self.refused(lambda: self.registry.begin_execute(key, user), f"a graph of {user}, no user of {key},")
            return
        self.registry.begin_execute(key, user)
        model.executing[user] += 1
        number = len(self.trace.calls)
        self.trace.calls[number] = Call(
            execute=number, thread=f"{user} {number}", client=user, path="qnn", context=self.copy_of(key)
        )
        self.trace.events += [Event(self.now_ns, "call", number), Event(self.now_ns, "submit", number)]
        model.running.setdefault(user, []).append(number)

    @rule(key=_keys, which=_which)
    def end(self, key: Any, which: int) -> None:
        """End the execution of a graph."""
        self.now_ns += 1
        model = self.models[key]
        user = model.someone(which)
        if not model.executing[user]:
            self.refused(lambda: self.registry.end_execute(key, user), f"the end of no graph of {user}")
            return
        self.registry.end_execute(key, user)
        model.executing[user] -= 1
        self.trace.events.append(Event(self.now_ns, "return", model.running[user].pop(0)))

    @rule(key=_keys, which=_which)
    def let_go(self, key: Any, which: int) -> None:
        """Release a model."""
        self.now_ns += 1
        model = self.models[key]
        user = model.someone(which)
        if user not in model.users or model.loading or model.executing[user]:
            self.refused(lambda: self.registry.release(key, user), f"the release of {key} by {user}")
            return
        last = self.registry.release(key, user)
        model.users.remove(user)
        self.change(key, -OWN, user)
        self.use("detach", key, user)
        assert bool(last) == (not model.users), f"{user} let go: last is {last}, {model.users} still use {key}"
        if last:
            self.change(key, -SHARED)
            self.use("unload", key)

    @invariant()
    def users_are_who_came(self) -> None:
        """Hold the registry's users and messages against the contract, and its records against each other."""
        self.registry.validate()
        for key, model in self.models.items():
            assert tuple(self.registry.users(key)) == tuple(model.users)
            for user in USERS:
                assert self.registry.failure(key, user) == self.told.get((key, user))

    def teardown(self) -> None:
        """Check what happened."""
        for key, model in self.models.items():
            if model.users and not model.loading:
                self.use("count", key, users=len(self.registry.users(key)))
            elif model.loading:
                self.change(key, -SHARED)  # the load is given up
        self.trace.end_ns = self.now_ns
        check_trace(self.trace).require()


def registry_machine(make: Callable[[], Any] = Registry) -> type[RegistryMachine]:
    """Return the state machine that tests a registry; its ``TestCase`` is what a test module needs.

    Parameters
    ----------
    make : callable
        Returns an empty registry with the methods of ``htpsim.memory.Registry``: ``get_or_create``, ``loaded``,
        ``failed``, ``failure``, ``begin_execute``, ``end_execute``, ``release``, ``users``, ``validate``.

    Examples
    --------
    >>> from hypothesis import settings
    >>> from hypothesis.stateful import run_state_machine_as_test
    >>> run_state_machine_as_test(registry_machine(), settings=settings(max_examples=3))
    """
    made: type[RegistryMachine] = type("RegistryMachineOfYours", (RegistryMachine,), {"make": staticmethod(make)})
    brief(made)
    return made
