"""Whether a load or a new user fits, decided before anything is taken.

These are the rules of room: which limit applies to which bytes, which PD takes a context, what is counted against what
is free. They read the ledgers and change nothing; `htpsim.memory.memory` carries a plan out, and documents the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn

from htpsim.errors import CapacityError, ScenarioError
from htpsim.memory.ledger import LedgerName, Ledgers, Taking
from htpsim.spec import Context, Device, Model
from htpsim.units import format_bytes

DRAM: Final = "dram"
HOST: Final = "host"
LIMITS: Final[Mapping[LedgerName, str]] = {
    "device": "dram_budget_bytes",
    "host": "host_budget_bytes",
    "pd": "pd_bytes",
}
"""The field of `Device` that limits each place of a ledger."""

At = tuple[LedgerName, str]


@dataclass(frozen=True, slots=True)
class LoadedContext:
    """One context of a loaded copy, and where it lies."""

    name: str
    """Of copy and context; what the ledgers call it."""
    copy: str
    model: str
    context: Context
    process: int
    cores: tuple[int, ...]
    pds: tuple[int, ...]
    """The PD that holds it on each of `cores`, counted from 0 a process and core."""

    @property
    def places(self) -> tuple[str, ...]:
        """The PDs as the ledgers call them."""
        return tuple(pd_place(self.process, core, pd) for core, pd in zip(self.cores, self.pds, strict=True))


@dataclass(slots=True)
class Room:
    """What is free: the limit less what is held and what is promised."""

    device: Device
    ledgers: Ledgers
    promised: Counter[At] = field(default_factory=Counter)

    def taken(self, at: At) -> int:
        """Return the bytes held or promised at a place."""
        return self.ledgers.held(*at) + self.promised[at]


@dataclass(slots=True)
class Plan:
    """What a step would take, as far as it fits."""

    room: Room
    planned: Counter[At] = field(default_factory=Counter)
    """Bytes counted on so far by place, promises included; negative where a promise is called in."""
    contexts: list[LoadedContext] = field(default_factory=list)
    mapped: dict[str, Taking] = field(default_factory=dict)
    """Files to be mapped that are not mapped yet, by name."""
    models: dict[str, str] = field(default_factory=dict)
    """The model whose contexts a PD holds, by place of the PD."""

    def free(self, at: At) -> int | None:
        """Return the bytes free at a place; None when it has no limit."""
        limit: int | None = getattr(self.room.device, LIMITS[at[0]])
        return None if limit is None else limit - self.room.taken(at) - self.planned[at]

    def fits(self, at: At, asked_bytes: int) -> bool:
        """Say whether a place has room."""
        free = self.free(at)
        return free is None or asked_bytes <= free

    def count_on(self, who: str, at: At, asked_bytes: int) -> None:
        """Count on room at a place, for `who`.

        Raises
        ------
        CapacityError
            When there is not as much.
        """
        if not self.fits(at, asked_bytes):
            limit, free = getattr(self.room.device, LIMITS[at[0]]), self.free(at) or 0
            refuse_room(f"{who}: no room in {at[1]}", LIMITS[at[0]], limit, asked_bytes, limit - free)
        self.planned[at] += asked_bytes


def plan_load(
    room: Room,
    copy: str,
    model: Model,
    process: int,
    cores: tuple[int, ...],
    contexts_loaded: int,
    mapped: Mapping[str, Taking],
    models: Mapping[str, str],
) -> Plan:
    """Return where the contexts of a copy go.

    Parameters
    ----------
    room : Room
        What is free now.
    copy, model, process, cores
        What is loaded, for which process, on which cores; on none, for CPU or GPU, it takes host DRAM only.
    contexts_loaded : int
        Contexts that the process holds already.
    mapped : mapping
        Files that are mapped already, by name.
    models : mapping
        The model in each PD that is in use, by place.

    Raises
    ------
    CapacityError
        For the first context that does not fit.
    ScenarioError
        When a file is mapped already with another size.
    """
    plan = Plan(room, models=dict(models))
    kv_bytes = kv_shares(model, model.kv_bytes)
    if not cores:
        plan_host(plan, copy, model, process, mapped)
        return plan
    plan.count_on(f"model '{model.name}', reserve of '{copy}'", ("device", DRAM), room.device.model_reserve_bytes)
    for index, (context, context_kv_bytes) in enumerate(zip(model.contexts, kv_bytes, strict=True)):
        who = f"model '{model.name}', context {index} '{context.name}' of copy '{copy}'"
        _check_limits(room.device, who, context, contexts_loaded + index)
        _count_on_host(plan, who, copy, model, context, mapped)
        asked_bytes = context.reserved_bytes + context.load_bytes + context_kv_bytes
        plan.count_on(who, ("device", DRAM), asked_bytes)
        pds = tuple(_first_fit(plan, who, model.name, process, core, asked_bytes) for core in cores)
        plan.contexts.append(
            LoadedContext(f"{copy}/{context.name}", copy, model.name, context, process, tuple(cores), pds)
        )
    if not model.contexts:
        plan.count_on(f"model '{model.name}', KV cache on '{copy}'", ("device", DRAM), model.kv_bytes)
    return plan


def plan_host(plan: Plan, copy: str, model: Model, process: int, mapped: Mapping[str, Taking]) -> None:
    """Count on what a copy for CPU or GPU takes: host DRAM for its files and its spill-fill, no device, no PD."""
    for index, context in enumerate(model.contexts):
        who = f"model '{model.name}', context {index} '{context.name}' of copy '{copy}'"
        _count_on_host(plan, who, copy, model, context, mapped)
        plan.count_on(who, ("host", HOST), context.spill_fill_bytes + context.io_bytes)
        plan.contexts.append(LoadedContext(f"{copy}/{context.name}", copy, model.name, context, process, (), ()))


def plan_user(room: Room, user: str, model: Model, takings: Collection[Taking], promise: Mapping[At, int]) -> None:
    """Check that a user's takings fit, of which its copy was promised `promise` already.

    Raises
    ------
    CapacityError
        When one does not.
    """
    plan = Plan(room, Counter({at: -count_bytes for at, count_bytes in promise.items()}))
    for taking in takings:
        plan.count_on(
            f"model '{model.name}', user '{user}', {taking.item}", (taking.ledger, taking.place), taking.count_bytes
        )


def kv_shares(model: Model, kv_bytes: int) -> tuple[int, ...]:
    """Return the part of a KV cache that lies with each context of a model.

    Contexts that hold decode graphs take equal parts, the first of them the remainder as well; without any, all do.

    >>> from htpsim.spec import Graph, constant
    >>> parts = tuple(Context(name=name) for name in "abc")
    >>> decode = tuple(Graph(name=f"ar1_{name}", context=name, service=constant(1)) for name in "bc")
    >>> kv_shares(Model(name="llm", role="llm", contexts=parts, decode=decode), 7)
    (0, 4, 3)
    """
    names = {graph.context for graph in model.decode}
    holders = [context.name in names for context in model.contexts]
    if not any(holders):
        holders = [True] * len(holders)
    part, remainder = divmod(kv_bytes, max(1, sum(holders)))
    first = holders.index(True) if holders else 0
    return tuple(part * held + remainder * (index == first) for index, held in enumerate(holders))


def copy_takings(copy: str, model: Model, contexts: Collection[LoadedContext], device: Device) -> list[Taking]:
    """Return what a copy holds apart from mapped files: its reserve, its contexts, and heap copies of what was read."""
    on_host = all(not loaded.cores for loaded in contexts) and bool(contexts)
    takings = [] if on_host else [Taking("device", DRAM, f"{copy} reserve", device.model_reserve_bytes)]
    for loaded in contexts:
        if keeps_file(model):
            takings.append(Taking("host", HOST, f"{loaded.name} read", loaded.context.binary_bytes))
        if on_host:
            takings.append(Taking("host", HOST, loaded.name, loaded.context.spill_fill_bytes))
            continue
        takings.append(Taking("device", DRAM, loaded.name, loaded.context.shared_bytes))
        takings += [Taking("pd", place, loaded.name, loaded.context.shared_bytes) for place in loaded.places]
    return takings


def loading_takings(copy: str, model: Model, contexts: Collection[LoadedContext]) -> list[Taking]:
    """Return what a copy holds only while it is being loaded: buffers of what is read, and the peak of its init."""
    takings = []
    files = [loaded.context.binary_bytes for loaded in contexts]
    if model.load == "read" and model.read_budget_bytes is not None:
        takings.append(Taking("host", HOST, f"{copy} read buffer", min(model.read_budget_bytes, max(files, default=0))))
    for loaded in contexts:
        if model.load == "read" and model.read_budget_bytes is None and not model.file_kept:
            takings.append(Taking("host", HOST, f"{loaded.name} read", loaded.context.binary_bytes))
        if loaded.cores:
            item, count_bytes = f"{loaded.name} init", loaded.context.load_bytes
            takings.append(Taking("device", DRAM, item, count_bytes))
            takings += [Taking("pd", place, item, count_bytes) for place in loaded.places]
    return takings


def keeps_file(model: Model) -> bool:
    """Tell whether what was read of a file stays in host memory."""
    return model.load == "read" and model.file_kept and model.read_budget_bytes is None


def user_takings(
    user: str, copy: str, model: Model, contexts: Collection[LoadedContext], kv_bytes: int
) -> list[Taking]:
    """Return what a user holds on a copy: I/O and KV cache of each context, in its memory and its PDs."""
    takings = []
    for loaded, share_bytes in zip(contexts, kv_shares(model, kv_bytes), strict=True):
        for what, count_bytes in (("I/O", loaded.context.io_bytes), ("KV", share_bytes)):
            item = f"{user} {what} on {loaded.name}"
            at: At = ("device", DRAM) if loaded.cores else ("host", HOST)
            takings.append(Taking(*at, item, count_bytes))
            takings += [Taking("pd", place, item, count_bytes) for place in loaded.places]
    if not contexts:
        takings.append(Taking("device", DRAM, f"{user} KV on {copy}", kv_bytes))
    return takings


def mapped_file(model: Model, context: Context) -> Taking:
    """Return what mapping the file of a context takes: one page-cache copy, whoever maps it."""
    return Taking("host", HOST, f"{model.name}/{context.name} mapped", context.binary_bytes)


def pd_place(process: int, core: int, pd: int) -> str:
    """Return what the ledgers call a PD."""
    return f"process {process} core {core} pd {pd}"


def refuse_room(problem: str, name: str, limit: int, asked: int, held: int) -> NoReturn:
    """Raise the CapacityError that names the limit, what is asked, held and free, in bytes and in words."""
    figures = {f"device.{name}": limit, "asked": asked, "held": held, "free": limit - held}
    worded = [f"{what} {count:,} B ({format_bytes(count)})" for what, count in figures.items()]
    raise CapacityError(f"{problem}: {', '.join(worded)}")


def _check_limits(device: Device, who: str, context: Context, contexts_loaded: int) -> None:
    """Check what limits a context by itself: one mapping, and the number a process may hold."""
    limit = device.mapping_limit_bytes
    if limit is not None and context.weights_bytes > limit:
        refuse_room(f"{who}: weights exceed one mapping", "mapping_limit_bytes", limit, context.weights_bytes, 0)
    count = device.contexts_per_process
    if count is not None and contexts_loaded >= count:
        raise CapacityError(
            f"{who}: the process holds as many contexts as it may: device.contexts_per_process {count}, "
            f"asked 1, held {contexts_loaded}, free {max(0, count - contexts_loaded)}"
        )


def _count_on_host(
    plan: Plan, who: str, copy: str, model: Model, context: Context, mapped: Mapping[str, Taking]
) -> None:
    """Count on host DRAM for the file of a context, unless its pages are in the cache already."""
    if model.load == "read":
        budget = model.read_budget_bytes
        if budget is None or context == max(model.contexts, key=lambda context: context.binary_bytes):
            plan.count_on(who, ("host", HOST), min(context.binary_bytes, budget or context.binary_bytes))
        return
    file = mapped_file(model, context)
    known = mapped.get(file.item)
    if known is None:
        plan.count_on(who, ("host", HOST), file.count_bytes)
        plan.mapped[file.item] = file
    elif known != file:
        raise ScenarioError(
            f"{who}: its file has {file.count_bytes} B, but a model of that name is mapped with {known.count_bytes} B; "
            "models with one name must be the same files"
        )


def _first_fit(plan: Plan, who: str, model: str, process: int, core: int, asked_bytes: int) -> int:
    """Return the first PD of a process on a core that has room; one that is not open yet is an empty one.

    Under the rule "by-model" a PD in use takes no other model's contexts.
    """
    device = plan.room.device
    pds: list[At] = [("pd", pd_place(process, core, pd)) for pd in range(device.pd_count)]
    open_to_it = [at for at in pds if device.pd_rule == "any" or plan.models.get(at[1], model) == model]
    for at in open_to_it:
        if plan.fits(at, asked_bytes):
            plan.models[at[1]] = model
            plan.planned[at] += asked_bytes
            return pds.index(at)
    who += (
        f": a context is never split, and of the {len(pds)} PDs (device.pd_count) of process {process} on core {core}"
    )
    if not open_to_it:
        raise CapacityError(
            f"{who} each holds another model (device.pd_rule by-model): device.pd_count {len(pds)}, asked 1, "
            f"held {len(pds)}, free 0"
        )
    emptiest = max(plan.free(at) or 0 for at in open_to_it)
    refuse_room(
        f"{who} none has room; in the emptiest", "pd_bytes", device.pd_bytes, asked_bytes, device.pd_bytes - emptiest
    )
