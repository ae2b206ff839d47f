"""A stand-in for the change the page proposes: a process, its registry, and ViT models that open, execute and close.

It does what it is told, as C++ would, checks nothing, and writes down what it does. Whether that was right is for the
rules of `htpsim.invariants` to say, which know nothing of it. A fault is a subclass that overrides one step.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from htpsim.invariants import Call, Event, MemoryEvent, Trace, UseEvent

SHARED = (("weights", 100), ("run list", 8), ("spill-fill", 4), ("VTCM backup", 2))
"""What the owner of a copy holds, with its bytes."""
IO_BYTES = 5


class LoadFailedError(Exception):
    """A context could not be created."""


@dataclass(slots=True)
class Copy:
    """One loaded copy as the registry knows it."""

    name: str
    count: int = 0
    loader: str = ""
    waiting: list[str] = field(default_factory=list)
    loading: bool = True


class Runtime:
    """One process: a registry, and models named after their users. Each step takes one nanosecond."""

    def __init__(self, contexts: int = 1) -> None:
        self.trace = Trace(source="stand-in")
        self.contexts = contexts
        self.now_ns = 0
        self.copies: dict[str, Copy] = {}
        """by key"""
        self.opened: dict[str, Copy] = {}
        """by user"""
        self.running: dict[str, int] = {}
        """number of the graphExecute that is out, by user"""
        self.loads = 0

    # -- QnnNspImageModel::initializeModel

    def open(self, key: str, user: str) -> str:
        """Ask the registry for the model of `key`; return what the user is to do: load, wait or share."""
        copy = self.copies.get(key)
        if copy is None:
            copy = self.copies[key] = Copy(f"{key} {self.loads}", loader=user)
            self.loads += 1
            return "load"
        if copy.loading:
            self.joins_a_load(copy, user)
            return "wait"
        self.join(copy, user)
        return "share"

    def joins_a_load(self, copy: Copy, user: str) -> None:
        """Wait for the load of another."""
        copy.waiting.append(user)

    def loaded(self, key: str) -> None:
        """Create the contexts, and let the loader and whoever waits have the copy."""
        copy = self.copies[key]
        for context in range(self.contexts):
            self.take_context(copy, context)
        copy.loading = False
        for user in (copy.loader, *copy.waiting):
            self.join(copy, user)

    def failed(self, key: str) -> None:
        """Create all contexts but the last, which does not fit, and undo the load."""
        copy = self.copies[key]
        for context in range(self.contexts - 1):
            self.take_context(copy, context)
        self.undo(key, copy)

    def undo(self, key: str, copy: Copy) -> None:
        """Free the contexts that were created, in reverse, and leave no entry."""
        for context in reversed(range(self.contexts - 1)):
            self.give_context(copy, context)
        del self.copies[key]

    def join(self, copy: Copy, user: str) -> None:
        """setQnnModel, describe the graphs without loading, and register I/O of one's own."""
        copy.count += 1
        self.opened[user] = copy
        self.use("attach", copy, user)
        self.use("count", copy, users=copy.count)
        self.move(copy, "I/O", IO_BYTES, user)

    # -- QnnNspGraph::execute

    def begin(self, user: str) -> None:
        """Send a graph of `user` to the device."""
        self.begin_on(self.opened[user], user)

    def begin_on(self, copy: Copy, user: str) -> None:
        """Send a graph of `user` on a copy to the device."""
        number = len(self.trace.calls)
        self.trace.calls[number] = Call(
            execute=number, thread=user, client=user, context=f"{copy.name}/vit", path="qnn"
        )
        self.running[user] = number
        for kind in ("call", "submit", "start", "run"):
            self.trace.events.append(Event(self.tick(), kind, number))

    def end(self, user: str) -> None:
        """Let the graph of `user` return."""
        number = self.running.pop(user)
        for kind in ("finish", "return"):
            self.trace.events.append(Event(self.tick(), kind, number))

    # -- ~QnnNspImageModel

    def close(self, user: str) -> None:
        """Destroy the model of `user`."""
        copy = self.opened.pop(user)
        self.wait_for_own_graph(user)
        self.deregister_io(copy, user)
        self.release(copy, user)

    def wait_for_own_graph(self, user: str) -> None:
        """Let one's own graph return before anything goes."""
        if user in self.running:
            self.end(user)

    def deregister_io(self, copy: Copy, user: str) -> None:
        """Give back one's own I/O."""
        self.move(copy, "I/O", -IO_BYTES, user)

    def release(self, copy: Copy, user: str) -> None:
        """Stop using the copy; the last one unloads it."""
        self.use("detach", copy, user)
        copy.count -= 1
        self.use("count", copy, users=copy.count)
        if copy.count == 0:
            self.unload(copy)

    def unload(self, copy: Copy) -> None:
        """Free the contexts, last first, and leave no entry."""
        self.use("unload", copy)
        for context in reversed(range(self.contexts)):
            self.give_context(copy, context)
        self.copies = {key: other for key, other in self.copies.items() if other is not copy}

    # -- what is written down

    def tick(self) -> int:
        self.now_ns += 1
        return self.now_ns

    def use(self, kind: str, copy: Copy, user: str = "", users: int = 0) -> None:
        self.trace.uses.append(UseEvent(self.tick(), kind, copy.name, user, users))

    def move(self, copy: Copy, what: str, count_bytes: int, user: str = "") -> None:
        item = f"{user} {what} on {copy.name}" if user else f"{copy.name} {what}"
        self.trace.memory.append(MemoryEvent(self.tick(), "device", "dram", item, count_bytes, copy.name, user))

    def take_context(self, copy: Copy, context: int) -> None:
        for what, count_bytes in SHARED:
            self.move(copy, f"{what} {context}", count_bytes)

    def give_context(self, copy: Copy, context: int) -> None:
        for what, count_bytes in reversed(SHARED):
            self.move(copy, f"{what} {context}", -count_bytes)

    def held_bytes(self) -> int:
        """Return what is held now."""
        return sum(event.delta_bytes for event in self.trace.memory)
