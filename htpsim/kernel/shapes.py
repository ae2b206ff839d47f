"""What a scenario does not use: fields of the tables that keep one value through a run, for which code is compiled.

There are few shapes, because each is compiled for itself: *plain* is VLMs whose graphs take a core each, at one
priority, on cores of one speed; *shared* is that with DRAM bandwidth; *full* is everything. Each keeps records or not.
Where code is compiled for a fixed field, reading it costs nothing, what depends on it is decided beforehand, and what
is written to it is dropped; interpreted code reads and writes it like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from htpsim.device.records import FULL_RATE, NOBODY
from htpsim.spec.plan import ModelPlan, Plan

PLAIN, SHARED, FULL = "plain", "shared", "full"

_BEFORE: Final[dict[str, dict[str, int]]] = {
    "dev": dict.fromkeys(("gangs", "parallel", "powers", "throttles", "core_bandwidth"), 0),
    "st": dict.fromkeys(("whole_request", "gap_inside", "late_returns", "alternates", "changes"), 0),
    "users": {"instance": 1, "vit_on_host": 0, "own": 0},
    "threads": {"copy": NOBODY, "second": 0},
    "jobs": {"instance": 1, "qnn": 1},
}
_THROUGHOUT: Final[dict[str, dict[str, int]]] = {
    "dev": {"evicted": 0},
    "st": {"first_start": NOBODY, "starved_user": NOBODY, "goes_on": NOBODY},
    "cores": {"others": 0},
    "jobs": {"yield_asked": 0, "yield_due": 0, "evictions": 0, "held": 0, "switch_ns": 0, "top": FULL_RATE},
    "threads": {"holds": 0, "hold_call": NOBODY, "switch_ns": 0},
}


def _joined(*several: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    tables = dict.fromkeys(name for one in several for name in one)
    return {name: {k: v for one in several for k, v in one.get(name, {}).items()} for name in tables}


SET_BEFORE: Final = {
    PLAIN: _joined(_BEFORE, {"dev": {"shares": 0}}),
    SHARED: _joined(_BEFORE, {"dev": {"shares": 1}}),
    FULL: {},
}
"""What such a scenario has in its tables when the run begins."""
LEFT_ALONE: Final = {
    PLAIN: _joined(_THROUGHOUT, {"dev": {"rates_stale": 0}, "jobs": {"rate": FULL_RATE}}),
    SHARED: _THROUGHOUT,
    FULL: {},
}
"""What such a run therefore writes nothing else to."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What code is compiled for, beside the policy: which features there are, and whether records are kept."""

    features: str
    keeps: bool

    @property
    def name(self) -> str:
        """A word for it."""
        return f"{self.features}-{'kept' if self.keeps else 'told'}"

    def fixed(self, table: str) -> Mapping[str, int]:
        """Return the fields of a table that keep one value, with that value."""
        kept = self._kept() if table == "st" else {}
        return kept | SET_BEFORE[self.features].get(table, {}) | LEFT_ALONE[self.features].get(table, {})

    def _kept(self) -> dict[str, int]:
        """Return how the tables of records are not used: there is room for one in each, always."""
        unused = ["slice"] if self.features != FULL else []
        if not self.keeps:
            unused = ["row", "slice"]
        rooms = {name: n for each in unused for name, n in ((f"{each}s", 0), (f"{each}_room", 1))}
        return {"keeps": int(self.keeps), **rooms}


def shape_of(plan: Plan, *, keeps: bool) -> Shape:
    """Return the shape of a scenario, with its records kept or not.

    Examples
    --------
    >>> from htpsim.spec import Device, Scenario
    >>> from htpsim.spec.plan import make_plan
    >>> shape_of(make_plan(Scenario()), keeps=True).name
    'plain-kept'
    >>> shape_of(make_plan(Scenario(device=Device(dram_bandwidth=1))), keeps=True).name
    'shared-kept'
    >>> shape_of(make_plan(Scenario(device=Device(power_up_ns=5))), keeps=False).name
    'full-told'
    """
    features = FULL
    if _is_simple(plan):
        features = PLAIN if plan.scenario.device.dram_bandwidth is None else SHARED
    return Shape(features, keeps)


def _is_simple(plan: Plan) -> bool:
    """Tell whether there are VLMs only, whose graphs take a core each and never yield, on cores of one speed."""
    scenario = plan.scenario
    device, guard = scenario.device, scenario.guard
    models = [model for client in plan.clients for model in client.models]
    if scenario.clients or device.pge or device.core_dram_bandwidth or device.background_off_ns:
        return False
    if device.dram_bandwidth is not None and device.dram_bandwidth <= device.background_bandwidth:
        return False
    if device.power_up_ns or device.power_up_warm_ns or device.throttle_after_ns is not None:
        return False
    if device.rpc_return_ns or (device.rpc_polling_ns is not None and device.rpc_wake_ns):
        return False
    if guard.scope == "request" or guard.gap_inside or scenario.runtime.make_room != "never":
        return False
    if any(i.vit_thread != "same" or i.vit_residency != "stays" for i in scenario.instances):
        return False
    return len({model.level for model in models}) < 2 and not any(_is_special(model) for model in models)


def _is_special(model: ModelPlan) -> bool:
    return model.on_host or model.switches or any(graph.width > 1 or not graph.qnn for graph in model.all_graphs)


def differs(arrays: Mapping[str, Any], counts: Mapping[str, int], shape: Shape) -> list[str]:
    """Return the fields whose values in the tables of a run are not those that its shape fixes: none, ever.

    `counts` are the records of tables that may have fewer than there is room for.
    """
    return [
        f"{table}.{field}"
        for table, fields in SET_BEFORE[shape.features].items()
        for field, value in fields.items()
        if (arrays[table][field][: counts.get(table)] != value).any()
    ]
