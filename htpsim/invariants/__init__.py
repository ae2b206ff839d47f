"""What must hold on any trace, simulated or recorded on a device: the trace, the rules, the story of a violation."""

from htpsim.invariants.check import RULES, check_trace
from htpsim.invariants.explain import Explanation, explain
from htpsim.invariants.report import Report, Violation
from htpsim.invariants.rule import Rule
from htpsim.invariants.story import story
from htpsim.invariants.trace import (
    VERSION,
    Account,
    Call,
    DeviceFacts,
    Event,
    GuardFacts,
    MemoryEvent,
    Parts,
    RequestEvent,
    Trace,
    UseEvent,
    merge,
)

__all__ = [
    "RULES",
    "VERSION",
    "Account",
    "Call",
    "DeviceFacts",
    "Event",
    "Explanation",
    "GuardFacts",
    "MemoryEvent",
    "Parts",
    "Report",
    "RequestEvent",
    "Rule",
    "Trace",
    "UseEvent",
    "Violation",
    "check_trace",
    "explain",
    "merge",
    "story",
]
