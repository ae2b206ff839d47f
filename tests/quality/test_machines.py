"""Bugs that the public state machines must find: broken registries, guards, policies and devices of a user."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from htpsim.device import rules
from htpsim.errors import IllegalTransition, InvariantError
from htpsim.memory import Outcome, Registry
from htpsim.memory.registry import State
from htpsim.sched import Fifo, Sfq, guard
from htpsim.testing import device_machine, guard_machine, registry_machine
from tests.quality.plants import LowestFirst, NewestFirst

BRIEF = settings(
    max_examples=1000,
    stateful_step_count=20,
    deadline=None,
    database=None,
    derandomize=True,
    print_blob=False,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


def caught(machine: type[Any]) -> str:
    """Return what a machine says when it finds a bug."""
    with pytest.raises((AssertionError, IllegalTransition, InvariantError)) as error:
        run_state_machine_as_test(machine, settings=BRIEF)
    return str(error.value)


class LoadsAgain(Registry):
    """A second caller during a load starts a load of its own, and it is not said."""

    def get_or_create(self, key: Any, user: str) -> Outcome:
        outcome = super().get_or_create(key, user)
        return Outcome.LOAD if outcome is Outcome.WAIT else outcome


class KeepsFailure(Registry):
    """A load that failed leaves its entry."""

    def failed(self, key: Any, message: str, user: str | None = None) -> tuple[str, ...]:
        before = {key: list(copies) for key, copies in self._copies.items()}
        roles = {id(copy): dict(copy.roles) for copies in before.values() for copy in copies}
        woken = super().failed(key, message, user)
        for copies in before.values():
            for copy in copies:
                copy.roles.update(roles[id(copy)])
                copy.state = State.LOADING if copy.state is State.ABSENT else copy.state
        self._copies.update(before)
        return woken


class TellsNobody(Registry):
    """Waiters are not told why a load failed."""

    def failed(self, key: Any, message: str, user: str | None = None) -> tuple[str, ...]:
        woken = super().failed(key, message, user)
        for waiter in woken:
            self._failures.pop((key, waiter), None)
        return woken


class WakesNobody(Registry):
    """Waiters sleep on when the load has ended."""

    def loaded(self, key: Any, user: str | None = None) -> tuple[str, ...]:
        super().loaded(key, user)
        return ()


class FreesUnderGraphs(Registry):
    """A user may leave while its graph executes."""

    def release(self, key: Any, user: str) -> bool:
        for copy in self._copies.get(key, ()):
            copy.executing.pop(user, None)
        return super().release(key, user)


class FreesEarly(Registry):
    """The owner's release frees the copy under its borrowers."""

    def release(self, key: Any, user: str) -> bool:
        owner = next(iter(self.users(key)), None)
        return super().release(key, user) or user == owner


class NeverFrees(Registry):
    """The last release is not noticed."""

    def release(self, key: Any, user: str) -> bool:
        super().release(key, user)
        return False


class CountsTwice(Registry):
    """Who asks twice is taken for two."""

    def get_or_create(self, key: Any, user: str) -> Outcome:
        try:
            return super().get_or_create(key, user)
        except IllegalTransition:
            return super().get_or_create(key, f"{user} again")


@pytest.mark.parametrize(
    ("registry", "says"),
    [
        (LoadsAgain, "expected Outcome.WAIT"),
        (KeepsFailure, ""),
        (TellsNobody, ""),
        (WakesNobody, "woke ()"),
        (FreesUnderGraphs, "references"),
        (FreesEarly, "still use"),
        (NeverFrees, "memory-balance"),
        (CountsTwice, "a second request"),
    ],
)
def test_a_broken_registry(registry: type[Registry], says: str) -> None:
    assert says in caught(registry_machine(registry))


def test_the_registry_itself_passes() -> None:
    run_state_machine_as_test(registry_machine(), settings=settings(BRIEF, max_examples=30))


class Stubborn(Fifo):
    """Grants nobody but the first account: the others wait for ever."""

    name = "stubborn"

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        return 0 if accounts[0].waiting else -1


class Lazy(Sfq):
    """Promises to keep slots busy, and lets one rest."""

    name, work_conserving = "lazy", True

    @staticmethod
    def pick(lane: Any, accounts: Any, now_ns: int) -> int:
        return Sfq.pick(lane, accounts, now_ns) if now_ns % 3 else -1

    @staticmethod
    def timer(lane: Any, accounts: Any, now_ns: int) -> int:
        return now_ns + 5


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (Stubborn, "waiting for ever"),
        (Lazy, "guard-work"),
        (LowestFirst, "guard-order"),
        (NewestFirst, "guard-order"),
    ],
)
def test_a_broken_policy(policy: type[Any], says: str) -> None:
    assert says in caught(guard_machine(policy, slots=(1,)))


def broken_guard(**functions: Any) -> SimpleNamespace:
    """Return the guard's functions with some replaced."""
    names = ("call", "can_grant", "grant", "release", "validate", "open_account")
    return SimpleNamespace(**{name: getattr(guard, name) for name in names} | functions)


def _release_twice(lane: Any, accounts: Any, i: int, cost_ns: int, now_ns: int, charge: Any) -> None:
    guard.release(lane, accounts, i, cost_ns, now_ns, charge)
    lane.holders -= 1


@pytest.mark.parametrize(
    ("functions", "says"),
    [
        ({"release": _release_twice}, ""),
        ({"release": _release_twice, "validate": lambda *records: None}, "guard-exclusion"),
    ],
)
def test_a_broken_guard(functions: dict[str, Any], says: str) -> None:
    assert says in caught(guard_machine("fifo", slots=(1,), rules=broken_guard(**functions)))


def _loses_work(dev: Any, cores: Any, jobs: Any, holders: Any, j: int, now_ns: int) -> None:
    _wait_again(dev, cores, jobs, holders, j, now_ns)
    jobs[j].left = 1


_wait_again = rules.wait_again


@pytest.mark.parametrize(
    ("name", "broken", "says"),
    [
        ("wait_again", _loses_work, "work at"),
        ("ask_to_yield", lambda *arguments: None, "eviction at"),
    ],
)
def test_a_broken_device(name: str, broken: Any, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, name, broken)

    assert says in caught(device_machine())
