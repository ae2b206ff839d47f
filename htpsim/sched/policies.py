"""The built-in policies by name."""

from __future__ import annotations

from htpsim.sched.basic import Fifo, Priority
from htpsim.sched.budget import Quota
from htpsim.sched.fair import Drr, Eevdf, Sfq, Stride
from htpsim.sched.lottery import Lottery
from htpsim.sched.policy import Policy
from htpsim.sched.realtime import Edf

__all__ = ["POLICIES", "Drr", "Edf", "Eevdf", "Fifo", "Lottery", "Priority", "Quota", "Sfq", "Stride"]

POLICIES: dict[str, type[Policy]] = {
    "drr": Drr,
    "edf": Edf,
    "eevdf": Eevdf,
    "fifo": Fifo,
    "lottery": Lottery,
    "priority": Priority,
    "quota": Quota,
    "sfq": Sfq,
    "stride": Stride,
}
"""Read only; in order of name."""
