"""The row that each graphExecute leaves in the log, in the order of ``Execute``."""

from __future__ import annotations

from typing import Any

from htpsim.device.records import DONE, NEVER
from htpsim.results.columns import Execute
from htpsim.results.log import Row


def row(job: Any, returned_ns: int) -> Row:
    """Return the row of a graphExecute that returned."""
    request, stage, step, token = job.place
    graph, copy, core, path, level, weight, account = job.about
    called_ns = job.called_ns
    granted_ns = job.granted_ns
    submitted_ns = job.submitted_ns
    finished_ns = job.finished_ns
    overhead_ns = job.overhead_ns
    return (
        job.execute, job.client, request, stage, step, graph, copy, core, path, level, weight, account, token,
        called_ns, granted_ns, submitted_ns, job.started_ns, finished_ns, returned_ns, returned_ns,
        granted_ns - called_ns, overhead_ns, submitted_ns - granted_ns - overhead_ns,
        job.wait_ns, job.acquired_ns, job.run_ns, job.evict_ns, job.restore_ns,
        returned_ns - finished_ns, job.evictions, job.solo_ns,
    )  # fmt: skip


def open_row(job: Any) -> Row:
    """Return the row of one that the end of the run cut short, with only the parts that have ended."""
    granted, submitted = job.granted_ns != NEVER, job.submitted_ns != NEVER
    told = Execute(*row(job, NEVER))._replace(rpc_return_ns=0)
    if not granted:
        told = told._replace(guard_wait_ns=0)
    if not submitted:  # the device has not seen it: the rest is of the record's last graphExecute
        parts = ("guard_overhead_ns", "rpc_ns", "device_wait_ns", "acquire_ns", "run_ns", "evict_ns", "restore_ns")
        told = told._replace(started_ns=NEVER, evictions=0, **dict.fromkeys(parts, 0))
    if not submitted or job.state != DONE:
        told = told._replace(finished_ns=NEVER)
    return tuple(told)


def on_its_way(job: Any) -> bool:
    """Tell whether a graphExecute is neither waiting for the guard nor on the device."""
    return bool(job.granted_ns != NEVER and (job.submitted_ns == NEVER or job.state == DONE))
