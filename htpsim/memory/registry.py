"""The model registry: one loaded copy for a key, counted by those who use it.

The first caller for a key loads; a second caller while that load is in flight waits for it; a later one shares what is
there. The loader becomes the owner, everyone else a borrower, but the difference ends at the name: the copy belongs to
the registry. When the owner leaves first the copy stays for the borrowers, and only the last user's release makes it
vanish, upon which the caller must unload it. A load that fails leaves no entry, and the loader and every waiter are
told the same message. Each user has its own I/O and KV cache on the copy, so a user whose own graph executes cannot
leave: nothing is freed while a graph executes. As only users execute, that also covers the copy itself.

With ``waits_for_load=False`` a caller during a load starts a load of its own, which is the race of a registry that
looks first and inserts later. Then a key has several copies, each counted apart; later callers share the first that is
ready, and `copy_number` tells the copies apart.

A copy::

    absent  --load-->         loading      the caller loads it
    loading --wait-->         loading      another caller queues for it
    loading --loaded-->       ready
    loading --failed-->       absent
    ready   --share-->        ready
    ready   --begin-->        ready        a graph of a user starts
    ready   --end-->          ready
    ready   --release-->      ready        users remain
    ready   --last release--> absent

A user of a copy::

    stranger --load-->         loader
    stranger --wait-->         waiter
    stranger --share-->        borrower
    loader   --loaded-->       owner
    loader   --failed-->       stranger
    waiter   --loaded-->       borrower
    waiter   --failed-->       stranger
    owner    --begin-->        owner
    owner    --end-->          owner
    owner    --release-->      stranger
    borrower --begin-->        borrower
    borrower --end-->          borrower
    borrower --release-->      stranger
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final

from htpsim.errors import IllegalTransition, InvariantError
from htpsim.memory.placement import Key
from htpsim.memory.transitions import Story, expected, new_story, refuse, step, tell


class Outcome(Enum):
    """What a caller of `get_or_create` has to do."""

    LOAD = "load"
    """It loads, then reports `loaded` or `failed`."""
    WAIT = "wait"
    """Someone else loads; it will be among those woken."""
    SHARE = "share"
    """A copy is ready."""


class State(StrEnum):
    """Where a copy stands."""

    ABSENT = "absent"
    LOADING = "loading"
    READY = "ready"


class Role(StrEnum):
    """What someone is to a copy."""

    STRANGER = "stranger"
    LOADER = "loader"
    WAITER = "waiter"
    OWNER = "owner"
    BORROWER = "borrower"


class Stimulus(StrEnum):
    """What happens to a copy and to its users."""

    LOAD = "load"
    WAIT = "wait"
    SHARE = "share"
    LOADED = "loaded"
    FAILED = "failed"
    BEGIN = "begin"
    END = "end"
    RELEASE = "release"
    LAST_RELEASE = "last release"


TRANSITIONS: Final = {
    (State.ABSENT, Stimulus.LOAD): State.LOADING,
    (State.LOADING, Stimulus.WAIT): State.LOADING,
    (State.LOADING, Stimulus.LOADED): State.READY,
    (State.LOADING, Stimulus.FAILED): State.ABSENT,
    (State.READY, Stimulus.SHARE): State.READY,
    (State.READY, Stimulus.BEGIN): State.READY,
    (State.READY, Stimulus.END): State.READY,
    (State.READY, Stimulus.RELEASE): State.READY,
    (State.READY, Stimulus.LAST_RELEASE): State.ABSENT,
}

ROLES: Final = {
    (Role.STRANGER, Stimulus.LOAD): Role.LOADER,
    (Role.STRANGER, Stimulus.WAIT): Role.WAITER,
    (Role.STRANGER, Stimulus.SHARE): Role.BORROWER,
    (Role.LOADER, Stimulus.LOADED): Role.OWNER,
    (Role.LOADER, Stimulus.FAILED): Role.STRANGER,
    (Role.WAITER, Stimulus.LOADED): Role.BORROWER,
    (Role.WAITER, Stimulus.FAILED): Role.STRANGER,
    (Role.OWNER, Stimulus.BEGIN): Role.OWNER,
    (Role.OWNER, Stimulus.END): Role.OWNER,
    (Role.OWNER, Stimulus.RELEASE): Role.STRANGER,
    (Role.BORROWER, Stimulus.BEGIN): Role.BORROWER,
    (Role.BORROWER, Stimulus.END): Role.BORROWER,
    (Role.BORROWER, Stimulus.RELEASE): Role.STRANGER,
}

_OUTCOMES: Final = {State.ABSENT: Outcome.LOAD, State.LOADING: Outcome.WAIT, State.READY: Outcome.SHARE}


@dataclass(slots=True)
class _Copy:
    number: int
    state: State = State.ABSENT
    roles: dict[str, Role] = field(default_factory=dict)
    """Users, pending ones included, in the order in which they came."""
    executing: dict[str, int] = field(default_factory=dict)
    """Graphs in execution, of users that have any."""


class Registry:
    """Loaded models by key, and their users.

    Parameters
    ----------
    waits_for_load : bool
        Whether a caller during a load waits for it, or loads a copy of its own.

    Examples
    --------
    >>> registry, key = Registry(), ("vit", "", 0)
    >>> [registry.get_or_create(key, user).name for user in ("vlm0", "vlm1")]
    ['LOAD', 'WAIT']
    >>> registry.loaded(key), registry.get_or_create(key, "vlm2").name
    (('vlm1',), 'SHARE')
    >>> [registry.release(key, user) for user in ("vlm0", "vlm1", "vlm2")]
    [False, False, True]
    """

    __slots__ = ("_copies", "_failures", "_stories", "waits_for_load")

    def __init__(self, waits_for_load: bool = True) -> None:
        self.waits_for_load = waits_for_load
        self._copies: dict[Key, list[_Copy]] = {}
        self._failures: dict[tuple[Key, str], str] = {}
        self._stories: dict[Key, Story] = {}

    def get_or_create(self, key: Key, user: str) -> Outcome:
        """Ask for the model of `key` and say what the caller has to do; it counts as a user from now on.

        Raises
        ------
        IllegalTransition
            When `user` has or awaits it already.
        """
        own, copies = self._copy_of(key, user), self._copies.get(key, [])
        serving = own or self._serving(copies) or _Copy(max((copy.number for copy in copies), default=-1) + 1)
        outcome = _OUTCOMES[serving.state]
        self._step_user(key, serving, user, Stimulus(outcome.value))
        self._step(key, serving, user, Stimulus(outcome.value))
        if outcome is Outcome.LOAD:
            self._copies.setdefault(key, []).append(serving)
        self._failures.pop((key, user), None)
        return outcome

    def loaded(self, key: Key, user: str | None = None) -> tuple[str, ...]:
        """Report that a load ended well; the loader now owns it, and the waiters are returned in order, woken.

        `user` is the loader, needed only where several loads of one key can be in flight.

        Raises
        ------
        IllegalTransition
            When no such load is in flight.
        """
        copy = self._in_flight(key, user, Stimulus.LOADED)
        loader, *waiters = copy.roles
        for each in copy.roles:
            self._step_user(key, copy, each, Stimulus.LOADED)
        self._step(key, copy, loader, Stimulus.LOADED)
        return tuple(waiters)

    def failed(self, key: Key, message: str, user: str | None = None) -> tuple[str, ...]:
        """Report that a load failed: the copy vanishes and its waiters are returned in order, woken.

        `failure` then gives the loader and each waiter the same message, until they ask for the key again.

        Raises
        ------
        IllegalTransition
            When no such load is in flight.
        """
        copy = self._in_flight(key, user, Stimulus.FAILED)
        loader, *waiters = copy.roles
        for each in (loader, *waiters):
            self._step_user(key, copy, each, Stimulus.FAILED)
            self._failures[key, each] = message
        self._step(key, copy, loader, Stimulus.FAILED)
        return tuple(waiters)

    def failure(self, key: Key, user: str) -> str | None:
        """Return the message with which the load that `user` last asked for failed; None when it did not."""
        return self._failures.get((key, user))

    def release(self, key: Key, user: str) -> bool:
        """Let `user` go; True when it was the last, so that the copy is gone and the caller must unload it.

        Raises
        ------
        IllegalTransition
            For one that is no user (any more), during its load, or while a graph of `user` executes.
        """
        copy = self._used(key, user, Stimulus.RELEASE)
        if user in copy.executing:
            why = f"nothing is freed while a graph executes, and {copy.executing[user]} of '{user}' do"
            refuse(self._subject(key, user), copy.state, Stimulus.RELEASE, why, self.story(key))
        last = len(copy.roles) == 1
        self._step_user(key, copy, user, Stimulus.RELEASE)
        self._step(key, copy, user, Stimulus.LAST_RELEASE if last else Stimulus.RELEASE)
        return last

    def begin_execute(self, key: Key, user: str) -> None:
        """Note that a graph of `user` starts on its copy.

        Raises
        ------
        IllegalTransition
            For one that is no user of a ready copy.
        """
        copy = self._used(key, user, Stimulus.BEGIN)
        copy.executing[user] = copy.executing.get(user, 0) + 1

    def end_execute(self, key: Key, user: str) -> None:
        """Note that a graph of `user` ended.

        Raises
        ------
        IllegalTransition
            When none of its graphs executes.
        """
        copy = self._used(key, user, Stimulus.END)
        count = copy.executing.pop(user, 0)
        if count == 0:
            refuse(self._subject(key, user), copy.state, Stimulus.END, "no graph of it executes", self.story(key))
        if count > 1:
            copy.executing[user] = count - 1

    def users(self, key: Key) -> tuple[str, ...]:
        """Return who uses or awaits the model of `key`, copy by copy, in the order in which they came."""
        return tuple(user for copy in self._copies.get(key, ()) for user in copy.roles)

    def role(self, key: Key, user: str) -> Role:
        """Return what `user` is to the model of `key`."""
        copy = self._copy_of(key, user)
        return copy.roles[user] if copy else Role.STRANGER

    def state(self, key: Key) -> State:
        """Return where the model of `key` stands: ready as soon as one copy is."""
        states = {copy.state for copy in self._copies.get(key, ())}
        return next((state for state in (State.READY, State.LOADING) if state in states), State.ABSENT)

    def copy_number(self, key: Key, user: str) -> int:
        """Return which copy of `key` a user has or awaits: 0, unless loads did not wait for each other.

        Raises
        ------
        IllegalTransition
            For one that is no user.
        """
        copy = self._copy_of(key, user)
        if copy is None:
            raise IllegalTransition(f"{self._subject(key, user)}: has no copy (story: {'; '.join(self.story(key))})")
        return copy.number

    def story(self, key: Key) -> list[str]:
        """Return the last steps of `key`, oldest first; executions are not told."""
        return list(self._stories.get(key, ()))

    def validate(self) -> None:
        """Check that states, roles and counts agree.

        Raises
        ------
        InvariantError
            When they do not.
        """
        for key, copies in self._copies.items():
            users = self.users(key)
            numbers = [copy.number for copy in copies]
            if not copies or (self.waits_for_load and len(copies) > 1) or numbers != sorted(set(numbers)):
                raise InvariantError(f"registry key {key}: has copies {numbers}")
            if len(users) != len(set(users)) or any((key, user) in self._failures for user in users):
                raise InvariantError(f"registry key {key}: a user counts twice or was told of a failure: {users}")
            for copy in copies:
                _check(key, copy, self.waits_for_load)

    def _serving(self, copies: list[_Copy]) -> _Copy | None:
        """Return the copy that a new caller gets or waits for."""
        ready = next((copy for copy in copies if copy.state is State.READY), None)
        return ready or (copies[0] if copies and self.waits_for_load else None)

    def _copy_of(self, key: Key, user: str) -> _Copy | None:
        for copy in self._copies.get(key, ()):
            if user in copy.roles:
                return copy
        return None

    def _in_flight(self, key: Key, user: str | None, stimulus: Stimulus) -> _Copy:
        """Return the copy whose load ends: that of the loader `user`, or else the earliest."""
        for copy in self._copies.get(key, ()):
            if copy.state is State.LOADING and user in (None, next(iter(copy.roles))):
                return copy
        who = f"no load by '{user}' is in flight" if user else "no load is in flight"
        refuse(f"registry key {key}", self.state(key), stimulus, who, self.story(key))

    def _used(self, key: Key, user: str, stimulus: Stimulus) -> _Copy:
        """Return the copy of a user that may take `stimulus`."""
        copy = self._copy_of(key, user)
        role = Role.STRANGER if copy is None else copy.roles[user]
        if copy is None or (role, stimulus) not in ROLES:
            refuse(self._subject(key, user), role, stimulus, expected(ROLES, role), self.story(key))
        return copy

    def _step(self, key: Key, copy: _Copy, user: str, stimulus: Stimulus) -> None:
        """Move the copy and tell its story; take it out when it is absent."""
        before = copy.state
        copy.state = step(TRANSITIONS, f"registry key {key}", before, stimulus, self.story(key))
        tell(self._stories.setdefault(key, new_story()), stimulus, user, before, copy.state)
        if copy.state is State.ABSENT:
            self._copies[key].remove(copy)
            if not self._copies[key]:
                del self._copies[key]

    def _step_user(self, key: Key, copy: _Copy, user: str, stimulus: Stimulus) -> None:
        before = copy.roles.get(user, Role.STRANGER)
        after = step(ROLES, self._subject(key, user), before, stimulus, self.story(key))
        if after is Role.STRANGER:
            del copy.roles[user]
        else:
            copy.roles[user] = after

    @staticmethod
    def _subject(key: Key, user: str) -> str:
        return f"registry key {key}, user '{user}'"


def _check(key: Key, copy: _Copy, waits_for_load: bool) -> None:
    """Check one copy."""
    first, *others = copy.roles.values() or [Role.STRANGER]
    if copy.state is State.LOADING:
        sound = first is Role.LOADER and all(role is Role.WAITER for role in others) and not copy.executing
        sound = sound and (waits_for_load or not others)
    else:
        sound = copy.state is State.READY and first in (Role.OWNER, Role.BORROWER)
        sound = sound and all(role is Role.BORROWER for role in others)
    if not sound or not copy.executing.keys() <= copy.roles.keys() or min(copy.executing.values(), default=1) < 1:
        raise InvariantError(f"registry key {key}: copy {copy.number} is {copy.state.value} with {copy.roles}")
