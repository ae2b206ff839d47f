"""What the loading of a run comes to: its steps in time, who uses what then, and the rows that it leaves in the log.

Where copies are unloaded and loaded again while the run goes on, whoever executes asks a `Keeper` for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

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


@dataclass(slots=True)
class Kept:
    """What came of asking a `Keeper`, or of a step of its own."""

    steps: list[tuple[int, int, int]] = field(default_factory=list)
    """(time, place in that instant, number) of the steps of the keeper that are to come"""
    renewed: list[int] = field(default_factory=list)
    """contexts that were loaded again, which the device takes for new"""
    contexts: int = 0
    """how many the device has had in all"""
    goes_on: int = -1
    """the thread that has what it waited for; -1: none has"""
    use: Used | None = None
    """what that thread uses from now on, where that has changed"""


class Keeper(Protocol):
    """Keeps copies in memory for those who hold them. Asked with the thread that asks, and its place in an instant."""

    @property
    def memory(self) -> list[MemoryEvent]:
        """Every change of what is held."""

    @property
    def loads(self) -> list[Load]:
        """The rows of the loads."""

    @property
    def failed(self) -> dict[str, str]:
        """Clients that did not start, or not go on, with the reason."""

    def hold(self, client: int, role: str, thread: int, place: int, now_ns: int) -> Kept:
        """Keep the copy of a client's model in memory, loaded again if it is not there, until it is let go of."""

    def let_go(self, client: int, role: str, thread: int, place: int, now_ns: int) -> Kept:
        """Let a copy be unloaded."""

    def step(self, number: int, now_ns: int) -> Kept:
        """Do a step of its own that is due."""

    def copies(self) -> list[Copy]:
        """Return a row for every context ever loaded."""

    def forget_rows(self) -> None:
        """Forget the rows so far, where nobody will want them."""


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
    keeper: Callable[[], Keeper] | None = None
    """makes who keeps copies in memory from then on, one a run; None where all stay until its end"""
