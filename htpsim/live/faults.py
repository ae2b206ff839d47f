"""Faults that can be staged on the testbed: what goes wrong, for whom and when.

===============  =====================================================================================================
``graph``        the graph at that place of a request fails while it runs
``load``         a session of that instance, of the model that is named or of any, cannot be loaded
``dies``         the thread dies while it holds its slot; the slot is given back by its scope
``dies-holding`` the same where nothing gives the slot back: a guard that is not used through a scope
``destroy``      the instance is destroyed while its models are being loaded; it ends as soon as they are
``cancel``       the request is cancelled; it ends with the token that it is about to yield
===============  =====================================================================================================

The outcome of each is the same in the reference engine, where a test stages it with the engine's own means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from htpsim.errors import ScenarioError, unknown_name
from htpsim.results.columns import STAGES

STAGED: Final = "staged fault"
"""What a fault says of itself."""
DIED: Final = "its thread died holding the guard"
DESTROYED: Final = "destroyed while its models were being loaded"
KINDS: Final = ("graph", "load", "dies", "dies-holding", "destroy", "cancel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that goes wrong."""

    kind: str
    instance: str
    request: int = 0
    stage: str = "decode"
    step: int = 0
    model: str = ""
    """of a load; any by default"""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ScenarioError(unknown_name("fault", self.kind, KINDS))
        if self.stage not in STAGES:
            raise ScenarioError(unknown_name("fault: stage", self.stage, STAGES))


class GraphFailed(Exception):
    """A graph failed while it ran."""


class ThreadDied(Exception):
    """The thread of an instance died."""


class FaultPlan:
    """The faults of one run.

    Examples
    --------
    >>> plan = FaultPlan([Fault(kind="cancel", instance="vlm0", step=3)])
    >>> plan.strikes("cancel", "vlm0", (0, 2, 3)), plan.strikes("cancel", "vlm0", (0, 2, 4))
    (True, False)
    """

    def __init__(self, faults: Sequence[Fault] = ()) -> None:
        self._placed = {(f.kind, f.instance, f.request, STAGES.index(f.stage), f.step) for f in faults}
        self._loads = {(f.kind, f.instance, f.model) for f in faults}
        self.any = bool(faults)

    def strikes(self, kind: str, instance: str, place: tuple[int, int, int]) -> bool:
        """Tell whether a fault happens at (request, stage, step)."""
        return self.any and (kind, instance, *place) in self._placed

    def load(self, instance: str, model: str) -> None:
        """Fail a load that is to fail.

        Raises
        ------
        OSError
            As a session's loader might.
        """
        if self._loads & {("load", instance, model), ("load", instance, "")}:
            raise OSError(STAGED)

    def destroyed(self, instance: str) -> bool:
        """Tell whether an instance is destroyed while it loads."""
        return ("destroy", instance, "") in self._loads
