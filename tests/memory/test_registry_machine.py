"""The registry against a model of it that is only sets and counts, over any sequence of steps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from htpsim.errors import IllegalTransition
from htpsim.memory import Outcome, Registry, Role
from htpsim.memory.registry import State

KEYS = [("vit", "", 0), ("llm", "", 0)]
USERS = ["vlm0", "vlm1", "vlm2", "vlm3"]
keys, users = st.sampled_from(KEYS), st.sampled_from(USERS)


class RegistryMachine(RuleBasedStateMachine):
    """Copies are dictionaries {loading, loader, users in order, executing}; illegal steps are tried as well."""

    def __init__(self) -> None:
        super().__init__()
        self.copies: dict[Any, list[dict[str, Any]]] = {key: [] for key in KEYS}
        self.loads = self.unloads = 0

    @initialize(waits=st.booleans())
    def begin(self, waits: bool) -> None:
        self.waits = waits
        self.registry = Registry(waits_for_load=waits)

    def copy_of(self, key: Any, user: str) -> dict[str, Any] | None:
        return next((copy for copy in self.copies[key] if user in copy["users"]), None)

    def attempt(self, legal: bool, what: Any, *args: Any) -> Any:
        if legal:
            return what(*args)
        before = self.observe()
        with pytest.raises(IllegalTransition):
            what(*args)
        assert self.observe() == before
        return None

    def observe(self) -> object:
        return [
            (self.registry.state(key), self.registry.users(key), [self.registry.role(key, user) for user in USERS])
            for key in KEYS
        ]

    @rule(key=keys, user=users)
    def get(self, key: Any, user: str) -> None:
        outcome = self.attempt(self.copy_of(key, user) is None, self.registry.get_or_create, key, user)
        if outcome is None:
            return
        ready = [copy for copy in self.copies[key] if not copy["loading"]]
        loading = [copy for copy in self.copies[key] if copy["loading"]]
        if ready:
            assert outcome is Outcome.SHARE
            ready[0]["users"].append(user)
        elif loading and self.waits:
            assert outcome is Outcome.WAIT
            loading[0]["users"].append(user)
        else:
            assert outcome is Outcome.LOAD
            self.copies[key].append({"loading": True, "loader": user, "users": [user], "executing": []})
            self.loads += 1

    @rule(key=keys, user=users, fails=st.booleans())
    def end_load(self, key: Any, user: str, fails: bool) -> None:
        copy = next((copy for copy in self.copies[key] if copy["loading"] and copy["loader"] == user), None)
        if fails:
            woken = self.attempt(copy is not None, self.registry.failed, key, "no room", user)
        else:
            woken = self.attempt(copy is not None, self.registry.loaded, key, user)
        if copy is None:
            return
        assert woken == tuple(copy["users"][1:])
        copy["loading"] = False
        if fails:
            self.copies[key].remove(copy)
            self.loads -= 1
            assert {self.registry.failure(key, each) for each in copy["users"]} == {"no room"}

    @rule(key=keys, user=users)
    def release(self, key: Any, user: str) -> None:
        copy = self.copy_of(key, user)
        legal = copy is not None and not copy["loading"] and user not in copy["executing"]
        last = self.attempt(legal, self.registry.release, key, user)
        if copy is None or not legal:
            return
        copy["users"].remove(user)
        if user == copy["loader"]:
            copy["loader"] = None  # an owner that comes back borrows like anyone else
        assert last is (not copy["users"])
        if last:
            self.copies[key].remove(copy)
            self.unloads += 1

    @rule(key=keys, user=users)
    def begin_execute(self, key: Any, user: str) -> None:
        copy = self.copy_of(key, user)
        legal = copy is not None and not copy["loading"]
        self.attempt(legal, self.registry.begin_execute, key, user)
        if copy is not None and legal:
            copy["executing"].append(user)

    @rule(key=keys, user=users)
    def end_execute(self, key: Any, user: str) -> None:
        copy = self.copy_of(key, user)
        legal = copy is not None and user in copy["executing"]
        self.attempt(legal, self.registry.end_execute, key, user)
        if copy is not None and legal:
            copy["executing"].remove(user)

    @invariant()
    def counts_are_right(self) -> None:
        self.registry.validate()
        for key in KEYS:
            copies = self.copies[key]
            assert self.registry.users(key) == tuple(user for copy in copies for user in copy["users"])
            for copy in copies:
                assert len({self.registry.copy_number(key, user) for user in copy["users"]}) == 1
                for user in copy["users"]:
                    roles = (Role.LOADER, Role.WAITER) if copy["loading"] else (Role.OWNER, Role.BORROWER)
                    assert self.registry.role(key, user) is roles[user != copy["loader"]]
            assert (self.registry.state(key) is State.ABSENT) is (not copies)
        assert self.loads - self.unloads == sum(len(copies) for copies in self.copies.values())

    def teardown(self) -> None:
        for key, copies in self.copies.items():
            for copy in list(copies):
                if copy["loading"]:
                    self.end_load(key, copy["loader"], False)
                for user in list(copy["executing"]):
                    self.end_execute(key, user)
                for user in list(copy["users"]):
                    self.release(key, user)
            assert self.registry.users(key) == ()
        assert self.loads == self.unloads


TestRegistryMachine = RegistryMachine.TestCase
TestRegistryMachine.settings = settings(max_examples=40, stateful_step_count=40)
