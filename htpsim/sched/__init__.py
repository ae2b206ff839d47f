"""The guard of a process: its states (``guard``) and the policies that choose (``policies``)."""

from htpsim.sched.catalogue import PolicyCard, policies, policy_card
from htpsim.sched.lanes import open_lane
from htpsim.sched.policies import POLICIES, Drr, Edf, Eevdf, Fifo, Lottery, Priority, Quota, Sfq, Stride
from htpsim.sched.policy import Policy
from htpsim.sched.select import policy_class, policy_params
from htpsim.sched.watch import watched

__all__ = [
    "POLICIES",
    "Drr",
    "Edf",
    "Eevdf",
    "Fifo",
    "Lottery",
    "Policy",
    "PolicyCard",
    "Priority",
    "Quota",
    "Sfq",
    "Stride",
    "open_lane",
    "policies",
    "policy_card",
    "policy_class",
    "policy_params",
    "watched",
]
