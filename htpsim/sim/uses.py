"""How a client reaches what it executes: loaded copies, its use of one, a guard slot that it holds for longer."""

from __future__ import annotations

from dataclasses import dataclass, field

from htpsim.memory.placement import Key
from htpsim.sim.guards import Lane
from htpsim.spec.plan import ModelPlan


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


@dataclass(slots=True)
class Use:
    """One client's use of one model: how it is reached and where it is loaded."""

    client: int
    name: str
    """of the client"""
    process: int
    plan: ModelPlan
    copy: LoadedCopy
    account: int
    """position among the accounts of the process"""
    weight: int

    @property
    def core(self) -> int:
        """The core its copy lies on, or the first of several."""
        return self.copy.core


@dataclass(slots=True)
class Hold:
    """A guard slot that outlives one graphExecute: across a gap, or for a whole request."""

    lane: Lane | None = None
    """where it is held; None before the first grant and after the release"""
    use: Use | None = None
    """whose first guarded call took it: its account is charged for all"""
    cost_ns: int = 0
    rows: list[int] = field(default_factory=list)
    """positions of the rows whose release it is"""
