"""How a client reaches what it executes: loaded copies, its use of one, each graph of it, a slot held for longer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from htpsim.memory.placement import Key
from htpsim.memory.turns import Turns
from htpsim.sim.clock import Instant
from htpsim.sim.guards import Lane
from htpsim.spec.plan import GraphPlan, ModelPlan


@dataclass(slots=True)
class Bound:
    """A loaded context on the device."""

    copy: int
    """number of the context: the device's and the log's"""
    core: int
    mask: int
    """bit mask of the cores its graphs take"""
    width: int
    pd: int


@dataclass(slots=True)
class LoadedCopy:
    """A copy of a model and where it lies."""

    name: str
    key: Key | None
    """what the registry files it under; None for one that is its loader's own"""
    core: int
    process: int
    plan: ModelPlan
    bound: list[Bound]
    """its contexts"""
    users: list[str] = field(default_factory=list)
    holders: list[int] = field(default_factory=list)
    """threads that use it now, by their place in an instant, so that it cannot be unloaded"""
    used_ns: int = 0
    """when the last of them let go of it"""
    turns: Turns | None = None
    """None where all who use it can at once, and it never switches"""
    in_line: dict[str, tuple[Instant, int]] = field(default_factory=dict)
    """who waits for a turn, and at which place of an instant it goes on"""


@dataclass(slots=True)
class Use:
    """One client's use of one model."""

    client: int
    name: str
    """of the client"""
    process: int
    plan: ModelPlan
    copy: LoadedCopy
    account: int
    """position among the accounts of the process"""
    weight: int
    graphs: list[Call] = field(default_factory=list)
    prefill_sets: list[list[Call]] = field(default_factory=list)
    """a set for each context length"""
    decode_sets: list[list[Call]] = field(default_factory=list)


@dataclass(slots=True)
class Call:
    """A graph as one client calls it: everything about its graphExecutes that is always the same."""

    use: Use
    graph: GraphPlan
    bound: Bound
    lane: Lane | None
    """where it calls the guard; None past it"""
    account: int
    about: tuple[int, ...]
    """(graph, copy, core, path, level, weight, account): columns of its rows"""
    free: list[int] = field(default_factory=list)
    """records that are not in use"""


@dataclass(slots=True)
class Hold:
    """A guard slot that outlives one graphExecute: across a gap, or for a whole request."""

    call: Call | None = None
    """the first guarded call, which took it and whose account is charged for all; None when it is not held"""
    cost_ns: int = 0
    rows: list[int] = field(default_factory=list)
    """positions of the rows whose release it is"""


Job = Any
"""The record of one graphExecute."""
