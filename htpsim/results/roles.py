"""What each kind of model got from guard and registry, as measured: the capability matrix is made of this."""

from __future__ import annotations

from typing import Final

import numpy as np

from htpsim.results.columns import PATH_GENIE, PATHS, STAGE_DECODE, STAGE_JOB, STAGE_PREFILL, STAGE_VIT
from htpsim.results.metric import ratio
from htpsim.results.occupancy import Occupancy, scenario_models
from htpsim.results.summary import CopyCount, RoleSummary
from htpsim.results.tables import Tables
from htpsim.spec import PRIORITIES

STAGES_OF: Final = {"vit": (STAGE_VIT,), "llm": (STAGE_PREFILL, STAGE_DECODE), "other": (STAGE_JOB,)}


def role_summaries(tables: Tables, held: Occupancy, counts: list[CopyCount]) -> dict[str, RoleSummary]:
    """Return for each role that occurs its copies, what of its device time passed a guard, and its QNN priorities."""
    models = {model.name: model.role for model in scenario_models(tables.log.scenario)}
    return {role: _summary(tables, held, counts, role) for role in STAGES_OF if role in models.values()}


def model_copies(counts: list[CopyCount], role: str) -> int:
    """Return how many copies of the role's models were loaded; one of several contexts counts once."""
    copies: dict[str, int] = {}
    for count in counts:
        if count.role == role:
            copies[count.model] = max(copies.get(count.model, 0), count.copies)
    return sum(copies.values())


def _summary(tables: Tables, held: Occupancy, counts: list[CopyCount], role: str) -> RoleSummary:
    log, x = tables.log, tables.executes
    roles = {model.name: model.role for model in scenario_models(log.scenario)}
    loads = [load for load in log.loads if load.role != "failed" and roles.get(load.model) == role]
    stretch = np.isin(x["stage"][held.row], STAGES_OF[role])
    guarded = stretch & (x["path"][held.row] == PATH_GENIE)
    device_ns, guarded_ns = int(held.length_ns[stretch].sum()), int(held.length_ns[guarded].sum())
    calls = tables.returned & np.isin(x["stage"], STAGES_OF[role])
    n = int(np.count_nonzero(calls))
    return RoleSummary(
        instances=len({load.client for load in loads}),
        copies=model_copies(counts, role),
        copy_bytes=sum(count.reserved_bytes for count in counts if count.role == role),
        registry=any(load.role == "borrower" for load in loads),
        device_ns=device_ns,
        guarded_share=ratio(guarded_ns, device_ns, n, "no device time in the window"),
        paths=[PATHS[path] for path in np.unique(x["path"][calls]).tolist()],
        priorities=[PRIORITIES[level] for level in np.unique(x["level"][calls]).tolist()],
        weights=np.unique(x["weight"][calls & (x["path"] == PATH_GENIE)]).tolist(),
    )
