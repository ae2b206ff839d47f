"""The record of one graphExecute in the reference engine: what the rules need of it, and what the log will say."""

from __future__ import annotations

from typing import Any, Final

from htpsim.device.records import JOB_FIELDS
from htpsim.sched.policy import CALL_FIELDS
from htpsim.sim.uses import Call
from htpsim.spec.records import record_class

OWN_FIELDS: Final = (
    "call",  # whose graphExecute this is: the same as long as the record lives
    "client",
    "place",  # (request, stage, step, token)
    "about",  # columns of its row, see Call
    "solo_ns",
    "called_ns",
    "granted_ns",
    "submitted_ns",
    "overhead_ns",
    "switch_ns",  # time it first takes to switch graphs or adapter
    "hold",  # the thread releases the guard itself, later than the return
    "returned",  # the event its thread waits on; None when the record is not in use
)

Job: type[Any] = record_class("Job", (*JOB_FIELDS, *CALL_FIELDS, *OWN_FIELDS))


def new_job(call: Call) -> Any:
    """Return a record for the graphExecutes of `call`, with what never changes filled in."""
    job, bound, graph = Job(), call.bound, call.graph
    job.call, job.client = call, call.use.client
    job.context, job.core, job.cores, job.width, job.pd = bound.copy, bound.core, bound.mask, bound.width, bound.pd
    job.level = call.use.plan.level
    job.qnn = int(graph.qnn)
    job.vtcm_bytes, job.hvx, job.hmx = graph.vtcm_bytes, graph.hvx, graph.hmx
    return job
