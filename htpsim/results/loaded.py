"""What the loading of a run comes to: its steps in time, who uses what then, and the rows that it leaves in the log."""

from __future__ import annotations

from dataclasses import dataclass, field

from htpsim.results.columns import Copy, Load, MemoryEvent
from htpsim.spec.plan import ModelPlan


@dataclass(slots=True)
class LoadStep:
    """One step: something that a loading thread or the device's loads do at an instant."""

    at_ns: int
    place: int
    """rank within the instant"""
    brings: list[int] = field(default_factory=list)
    """steps that are scheduled by this one"""
    ends: int = -1
    """client whose loading ends with it, well or not"""


@dataclass(frozen=True, slots=True)
class Where:
    """Where a loaded context lies on the device."""

    copy: int
    """number of the context: the device's and the log's"""
    core: int
    mask: int
    """bit mask of the cores its graphs take"""
    width: int
    pd: int


@dataclass(frozen=True, slots=True)
class Used:
    """One client's use of one model."""

    plan: ModelPlan
    contexts: tuple[Where, ...]
    account: int
    """position among the accounts of its process"""
    weight: int
    copy: str
    """name of the copy"""


@dataclass(slots=True, kw_only=True)
class Loaded:
    """The loading of a run, whole. It does not depend on what executes meanwhile, so it can be known beforehand."""

    ready_ns: int
    """all loads have ended"""
    steps: list[LoadStep]
    """the first ones are those with which the clients begin, in their order, at time 0"""
    uses: list[list[Used]]
    """of each client; empty for one that does not start"""
    contexts: int
    memory: list[MemoryEvent]
    loads: list[Load]
    copies: list[Copy]
    failed: dict[str, str]
    """clients that did not start, with the reason"""
