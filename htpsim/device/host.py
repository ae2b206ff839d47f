"""The way back: how long the answer of a graphExecute takes to its host."""

from __future__ import annotations

from typing import Any

from htpsim.device.records import NEVER


def return_ns(dev: Any, job: Any) -> int:
    """Return how long the answer of a finished job takes to its host, in ns.

    A host that polls has it at once; one that has polled for ``rpc_polling`` since the call sleeps, and must be woken.
    """
    asleep = dev.rpc_polling_ns != NEVER and job.finished_ns - job.arrival_ns > dev.rpc_polling_ns
    return int(dev.rpc_return_ns + dev.rpc_wake_ns if asleep else dev.rpc_return_ns)
