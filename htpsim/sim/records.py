"""The record of one graphExecute in the reference engine: what the rules need of it, and what the log will say."""

from __future__ import annotations

from typing import Any, Final

from htpsim.device.records import JOB_FIELDS
from htpsim.sched.policy import CALL_FIELDS
from htpsim.spec.records import record_class

OWN_FIELDS: Final = (
    "client", "request", "stage", "step", "graph", "copy", "core", "path", "weight", "account", "token",
    "called_ns", "granted_ns", "submitted_ns", "finished_ns", "overhead_ns", "rpc_ns", "solo_ns",
    "use",  # the client's use of the model: process and account of its guard
    "scheduled_ns",  # instant for which its timer was last scheduled
    "lane",  # the guard lane it holds or waits in, or None
    "hold",  # the thread releases the guard itself, later than the return
    "returned",  # the event its thread waits on
)  # fmt: skip

Job: type[Any] = record_class("Job", (*JOB_FIELDS, *CALL_FIELDS, *OWN_FIELDS))


class JobPool:
    """Records for graphExecutes in flight; a position is used again after its return."""

    def __init__(self) -> None:
        self.jobs: list[Any] = []
        self.free: list[int] = []

    def take(self) -> int:
        """Return the position of a record that nobody uses."""
        if self.free:
            return self.free.pop()
        self.jobs.append(Job())
        return len(self.jobs) - 1

    def give_back(self, j: int) -> None:
        """Let the position be used again."""
        self.free.append(j)
