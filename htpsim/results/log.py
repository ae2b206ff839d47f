"""What an engine hands over when it stops: raw rows in the layout of ``columns``, and the names they index."""

from __future__ import annotations

from dataclasses import dataclass, field

from htpsim.results.columns import Copy, Load, MemoryEvent
from htpsim.spec import Scenario

Row = tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class RunLog:
    """The raw record of one run; rows are plain tuples in the field order of the classes in ``columns``."""

    scenario: Scenario
    replication: int
    engine: str
    ready_ns: int = 0
    """all loads have ended"""
    start_ns: int = 0
    """measured window begins: ready plus warm-up"""
    end_ns: int = 0
    """measured window ends, inclusive"""
    clients: list[str] = field(default_factory=list)
    """instances, then other clients"""
    graphs: list[str] = field(default_factory=list)
    """"model/graph"."""
    accounts: list[str] = field(default_factory=list)
    """guard accounts: "process 0/vlm0", "process 0/unregistered vlm0" ..."""
    executes: list[Row] = field(default_factory=list)
    """rows of Execute, in order of return; those in flight at the end follow, in order of call"""
    requests: list[Row] = field(default_factory=list)
    """rows of Request, by client and number"""
    slices: list[Row] = field(default_factory=list)
    """rows of Slice"""
    memory: list[MemoryEvent] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """instances that did not start, with the reason"""
    notes: list[str] = field(default_factory=list)
    """what a reader must know: a fallback taken, a warning of the specification"""
