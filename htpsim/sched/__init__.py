"""The guard of a process: its states (``guard``) and the policies that choose (``policies``)."""

from htpsim.sched.policies import POLICIES, Fifo, Priority, Quota, Sfq
from htpsim.sched.policy import Policy
from htpsim.sched.select import policy_class

__all__ = ["POLICIES", "Fifo", "Policy", "Priority", "Quota", "Sfq", "policy_class"]
