"""Memory of one device: what loaded copies and their users hold, and what refuses to hold more.

A copy of a model is its contexts, in order. Each context reserves its weights, run list, spill-fill and VTCM backup
once in device DRAM, and as much address space in one protection domain (PD) of its process on every core it is loaded
for: the first PD, in order of opening, that has room. A context is never split. Every user of the copy adds its own I/O
of each context and its own KV cache, in the same PDs, because that is where its graphs run. The file that was read adds
host DRAM: ``read`` keeps one heap copy a load for as long as it is loaded, ``mmap`` one page-cache copy for all loads
that map the same file, which is named by model and context.

Room is counted for the whole five-term need: a load must find room for its first user's I/O and KV cache as well, and
that room stays *promised* to the first user that attaches, so that two loads at once cannot both count on it. A promise
is not held: it is in no ledger, no peak and no event. That the promise includes the KV cache is an assumption, as is
how the KV cache lies: in equal parts in the PDs of the contexts that hold decode graphs, the remainder in the first.
What a copy takes only while it is being loaded (a read buffer, the peak of its init) is held until `loaded`.

A step is planned whole before anything is taken, so what does not fit leaves nothing and never shows in a peak. The
refusal names the first context that did not fit, its index, the limit, and what was asked, held and free.

A copy::

    absent    --load-->        idle
    idle      --attach-->      used
    idle      --unload-->      absent
    used      --attach-->      used
    used      --detach-->      used        users remain
    used      --last detach--> idle
    used      --begin-->       executing
    executing --attach-->      executing
    executing --begin-->       executing
    executing --detach-->      executing   of a user none of whose graphs executes
    executing --end-->         executing   graphs remain
    executing --last end-->    used
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NoReturn

from htpsim.errors import InvariantError
from htpsim.memory.ledger import Event, LedgerName, Ledgers, Taking
from htpsim.memory.plan import (
    DRAM,
    LIMITS,
    At,
    LoadedContext,
    Room,
    copy_takings,
    loading_takings,
    mapped_file,
    pd_place,
    plan_load,
    plan_user,
    user_takings,
)
from htpsim.memory.states import TRANSITIONS, State, Stimulus
from htpsim.memory.transitions import Story, new_story, refuse, step, tell
from htpsim.spec import Device, Model

LEAKED: Final = "leaked"
"""What the ledgers call bytes that unloads did not give back."""

ANYONE: Final = ""
"""Who executes when it is not said."""


@dataclass(slots=True)
class _Copy:
    model: Model
    process: int
    contexts: tuple[LoadedContext, ...]
    state: State
    promise: Counter[At]
    """Room kept for the first user; empty once it came."""
    loading: list[Taking]
    """What it holds only until it is loaded."""
    users: dict[str, int] = field(default_factory=dict)
    """KV bytes of each user."""
    executing: dict[str, int] = field(default_factory=dict)
    """Graphs in execution, of users that have any."""


class Memory:
    """What is loaded on one device, and what that takes.

    Parameters
    ----------
    device : Device
        Its limits; a limit of None does not bind.

    Examples
    --------
    >>> from htpsim.spec import Context
    >>> vit = Model(name="vit", role="vit", contexts=(Context(name="veg", weights_bytes=40, io_bytes=2),))
    >>> memory = Memory(Device(dram_budget_bytes=45))
    >>> [loaded.places for loaded in memory.load("vit 0", vit, 0, (0,), now_ns=0)]
    [('process 0 core 0 pd 0',)]
    >>> memory.attach("vlm0", "vit 0", 0, now_ns=5)
    >>> memory.held("device"), memory.held("pd"), memory.held("host")
    (42, 42, 40)
    >>> memory.attach("vlm1", "vit 0", 2, now_ns=6)
    Traceback (most recent call last):
    ...
    htpsim.errors.CapacityError: model 'vit', user 'vlm1', vlm1 KV on vit 0/veg: no room in dram: \
    device.dram_budget_bytes 45 B (45 B), asked 2 B (2 B), held 44 B (44 B), free 1 B (1 B)
    """

    __slots__ = ("_copies", "_leaked", "_ledgers", "_mapped", "_room", "_stories", "device")

    def __init__(self, device: Device) -> None:
        self.device = device
        self._ledgers = Ledgers()
        self._room = Room(device, self._ledgers)
        self._copies: dict[str, _Copy] = {}
        self._leaked: Counter[At] = Counter()
        self._mapped: dict[str, tuple[Taking, list[str]]] = {}
        self._stories: dict[str, Story] = {}

    @property
    def events(self) -> list[Event]:
        """Every change so far: (time_ns, ledger, place, item, delta_bytes)."""
        return self._ledgers.events

    def load(
        self, copy: str, model: Model, process: int, cores: tuple[int, ...], now_ns: int
    ) -> tuple[LoadedContext, ...]:
        """Take what a copy of `model` needs on `cores` and return its contexts, in order; on none it is for CPU or GPU.

        Raises
        ------
        CapacityError
            When one of them does not fit; then nothing is taken.
        IllegalTransition
            When a copy of that name is loaded.
        ScenarioError
            When a file of that name is mapped with another size.
        """
        after = self._next(copy, Stimulus.LOAD)
        mapped = {name: taking for name, (taking, _) in self._mapped.items()}
        models = {place: c.model for e in self._copies.values() for c in e.contexts for place in c.places}
        plan = plan_load(self._room, copy, model, process, cores, self.contexts_loaded(process), mapped, models)
        contexts = tuple(plan.contexts)
        loading = loading_takings(copy, model, contexts)
        for taking in (*plan.mapped.values(), *copy_takings(copy, model, contexts, self.device), *loading):
            self._ledgers.take(now_ns, taking)
        if model.load == "mmap":
            for file in (mapped_file(model, context) for context in model.contexts):
                self._mapped.setdefault(file.item, (file, []))[1].append(copy)
        promise: Counter[At] = Counter()
        for ledger, place, _, count_bytes in user_takings(ANYONE, copy, model, contexts, model.kv_bytes):
            promise[ledger, place] += count_bytes
        self._room.promised.update(promise)
        self._copies[copy] = _Copy(model, process, contexts, State.ABSENT, promise, loading)
        self._move(copy, Stimulus.LOAD, copy, after)
        return contexts

    def loaded(self, copy: str, now_ns: int) -> None:
        """Give back what a copy held only while it was being loaded."""
        entry = self._copies[copy]
        for taking in entry.loading:
            self._ledgers.give(now_ns, taking)
        entry.loading = []

    def attach(self, user: str, copy: str, kv_bytes: int, now_ns: int) -> None:
        """Take a user's own I/O of every context of a copy, and its KV cache.

        Raises
        ------
        CapacityError
            When they do not fit; then nothing is taken.
        IllegalTransition
            When there is no such copy, or it has that user.
        """
        after = self._next(copy, Stimulus.ATTACH)
        entry = self._copies[copy]
        if user in entry.users:
            self._refuse(copy, Stimulus.ATTACH, f"'{user}' is attached")
        takings = user_takings(user, copy, entry.model, entry.contexts, kv_bytes)
        plan_user(self._room, user, entry.model, takings, entry.promise)
        for taking in takings:
            self._ledgers.take(now_ns, taking)
        self._keep_promise(entry)
        entry.users[user] = kv_bytes
        self._move(copy, Stimulus.ATTACH, user, after)

    def detach(self, user: str, copy: str, now_ns: int) -> None:
        """Give back a user's I/O and KV cache.

        Raises
        ------
        IllegalTransition
            When it is not attached, or while a graph of it, or of nobody named, executes.
        """
        entry = self._copies.get(copy)
        stimulus = Stimulus.LAST_DETACH if entry and len(entry.users) == 1 else Stimulus.DETACH
        if entry and (user in entry.executing or ANYONE in entry.executing):
            self._refuse(copy, stimulus, "nothing is freed while a graph executes")
        after = self._next(copy, stimulus)
        entry = self._copies[copy]
        if user not in entry.users:
            self._refuse(copy, stimulus, f"'{user}' is not attached")
        for taking in user_takings(user, copy, entry.model, entry.contexts, entry.users[user]):
            self._ledgers.give(now_ns, taking)
        del entry.users[user]
        self._move(copy, stimulus, user, after)

    def unload(self, copy: str, now_ns: int) -> None:
        """Give back a copy.

        Raises
        ------
        IllegalTransition
            When there is none, or it has users.
        """
        after = self._next(copy, Stimulus.UNLOAD)
        entry = self._copies[copy]
        self.loaded(copy, now_ns)
        for taking in copy_takings(copy, entry.model, entry.contexts, self.device):
            self._ledgers.give(now_ns, taking)
        self._leak(entry, now_ns)
        for name in [name for name, (_, copies) in self._mapped.items() if copy in copies]:
            file, copies = self._mapped[name]
            copies.remove(copy)
            if not copies:
                self._ledgers.give(now_ns, file)
                del self._mapped[name]
        self._keep_promise(entry)
        self._move(copy, Stimulus.UNLOAD, copy, after)
        del self._copies[copy]

    def _leak(self, entry: _Copy, now_ns: int) -> None:
        """Keep what an unload does not give back: of device DRAM, and of the first PD that it leaves."""
        first = next((context for context in entry.contexts if context.places), None)
        if first is None or not self.device.leak_bytes:
            return
        leaked = min(self.device.leak_bytes, first.context.shared_bytes)
        places: tuple[At, ...] = (("device", DRAM), ("pd", first.places[0]))
        for at in places:
            self._leaked[at] += leaked
            self._ledgers.take(now_ns, Taking(*at, LEAKED, leaked))

    def begin_execute(self, copy: str, user: str = ANYONE) -> None:
        """Note that a graph starts on a copy, of `user` if said; one of nobody named keeps every user from leaving.

        Raises
        ------
        IllegalTransition
            When there is no such copy or user.
        """
        entry = self._copies.get(copy)
        after = self._next(copy, Stimulus.BEGIN)
        assert entry is not None
        if user and user not in entry.users:
            self._refuse(copy, Stimulus.BEGIN, f"'{user}' is not attached")
        entry.executing[user] = entry.executing.get(user, 0) + 1
        entry.state = after

    def end_execute(self, copy: str, user: str = ANYONE) -> None:
        """Note that a graph of `user` ended on a copy.

        Raises
        ------
        IllegalTransition
            When none executes.
        """
        entry = self._copies.get(copy)
        last = entry is not None and sum(entry.executing.values()) == 1
        stimulus = Stimulus.LAST_END if last else Stimulus.END
        after = self._next(copy, stimulus)
        assert entry is not None
        count = entry.executing.pop(user, 0)
        if not count:
            self._refuse(copy, stimulus, f"no graph of '{user}' executes")
        if count > 1:
            entry.executing[user] = count - 1
        entry.state = after

    def held(self, ledger: LedgerName, place: str | None = None) -> int:
        """Return the bytes held now in "device", "host" or "pd", at one place or in all."""
        return self._ledgers.held(ledger, place)

    def peak(self, ledger: LedgerName) -> int:
        """Return the most bytes that a ledger ever held."""
        return self._ledgers.peak(ledger)

    def users(self, copy: str) -> tuple[str, ...]:
        """Return who is attached to a copy, in order."""
        return tuple(self._copies[copy].users) if copy in self._copies else ()

    def state(self, copy: str) -> State:
        """Return where a copy stands."""
        return self._copies[copy].state if copy in self._copies else State.ABSENT

    def contexts_loaded(self, process: int) -> int:
        """Return how many contexts a process holds on the device; one on several cores counts once."""
        held = (entry.contexts for entry in self._copies.values() if entry.process == process)
        return sum(bool(context.cores) for contexts in held for context in contexts)

    def core_reserved_bytes(self) -> list[int]:
        """Return the PD bytes held or promised on each core: what placement by load goes by."""
        reserved_bytes = [0] * self.device.cores
        for (process, core), count in self._open_pds().items():
            for pd in range(count):
                reserved_bytes[core] += self._room.taken(("pd", pd_place(process, core, pd)))
        return reserved_bytes

    def pds(self) -> dict[tuple[int, int], list[dict[str, int]]]:
        """Return what each PD holds (item to bytes), in order, for each process and core that has any."""
        return {
            (process, core): [self._ledgers.items("pd", pd_place(process, core, pd)) for pd in range(count)]
            for (process, core), count in sorted(self._open_pds().items())
        }

    def validate(self) -> None:
        """Check that ledgers, copies, users, promises and limits agree.

        Raises
        ------
        InvariantError
            When they do not.
        """
        self._ledgers.validate()
        owed: dict[At, Counter[str]] = {}
        for ledger, place, item, count_bytes in self._owed():
            owed.setdefault((ledger, place), Counter())[item] += count_bytes
        held: set[At] = {(ledger, place) for ledger in LIMITS for place in self._ledgers.places(ledger)}
        for at in held | owed.keys() | self._room.promised.keys():
            if +owed.get(at, Counter()) != Counter(self._ledgers.items(*at)):
                raise InvariantError(f"{at}: holds {self._ledgers.items(*at)}, accounted for are {owed.get(at)}")
            limit = getattr(self.device, LIMITS[at[0]])
            if limit is not None and self._room.taken(at) > limit:
                raise InvariantError(f"{at}: {self._room.taken(at)} B held or promised, limit {limit} B")
        promised = sum((entry.promise for entry in self._copies.values()), Counter[At]())
        if +promised != +self._room.promised or min(self._room.promised.values(), default=0) < 0:
            raise InvariantError(f"promised {self._room.promised}, copies account for {promised}")
        if max(self._open_pds().values(), default=0) > self.device.pd_count:
            raise InvariantError(f"more PDs than {self.device.pd_count} are open: {self._open_pds()}")
        for copy, entry in self._copies.items():
            _check(copy, entry)
            count = self.contexts_loaded(entry.process)
            if self.device.contexts_per_process is not None and count > self.device.contexts_per_process:
                raise InvariantError(f"process {entry.process}: holds {count} contexts")

    def _owed(self) -> Iterator[Taking]:
        """Walk everything that should be held, from the copies up."""
        for copy, entry in self._copies.items():
            yield from copy_takings(copy, entry.model, entry.contexts, self.device)
            yield from entry.loading
            for user, kv_bytes in entry.users.items():
                yield from user_takings(user, copy, entry.model, entry.contexts, kv_bytes)
        mapping = (entry.model for entry in self._copies.values() if entry.model.load == "mmap")
        yield from {mapped_file(model, context) for model in mapping for context in model.contexts}
        yield from (Taking(*at, LEAKED, count_bytes) for at, count_bytes in self._leaked.items())

    def _open_pds(self) -> dict[tuple[int, int], int]:
        """Return how many PDs are open, a process and core; one emptied below another stays."""
        count: dict[tuple[int, int], int] = {}
        for entry in self._copies.values():
            for loaded in entry.contexts:
                for core, pd in zip(loaded.cores, loaded.pds, strict=True):
                    count[loaded.process, core] = max(count.get((loaded.process, core), 0), pd + 1)
        return count

    def _keep_promise(self, entry: _Copy) -> None:
        """End a promise: its user came, or its copy went."""
        self._room.promised.subtract(entry.promise)
        self._room.promised = +self._room.promised
        entry.promise = Counter()

    def _next(self, copy: str, stimulus: Stimulus) -> State:
        return step(TRANSITIONS, f"copy '{copy}'", self.state(copy), stimulus, self._stories.get(copy, ()))

    def _move(self, copy: str, stimulus: Stimulus, by: str, after: State) -> None:
        entry = self._copies[copy]
        tell(self._stories.setdefault(copy, new_story()), stimulus, by, entry.state, after)
        entry.state = after

    def _refuse(self, copy: str, stimulus: Stimulus, why: str) -> NoReturn:
        refuse(f"copy '{copy}'", self.state(copy), stimulus, why, self._stories.get(copy, ()))


def _check(copy: str, entry: _Copy) -> None:
    """Check that the state of a copy is what its users and their graphs say."""
    implied = State.EXECUTING if entry.executing else State.USED if entry.users else State.IDLE
    if entry.state is not implied or not entry.executing.keys() <= entry.users.keys() | {ANYONE}:
        raise InvariantError(f"copy '{copy}' is {entry.state.value} with {entry.users}, executing {entry.executing}")
