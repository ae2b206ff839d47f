"""One scenario in both engines."""

from __future__ import annotations

from dataclasses import fields

from htpsim.errors import HtpsimError
from htpsim.kernel import NeedsReference
from htpsim.kernel import simulate as kernel
from htpsim.results import RunLog
from htpsim.sim import simulate as reference
from htpsim.sim.loads import load_alone
from htpsim.spec import Scenario
from htpsim.spec.plan import make_plan


def run_kernel(scenario: Scenario, replication: int = 0, *, compiled: bool = False) -> RunLog | None:
    """Return the kernel's log; None where it leaves the run to the reference engine."""
    plan = make_plan(scenario)
    try:
        return kernel(plan, load_alone(plan), replication, compiled=compiled)
    except NeedsReference:
        return None


def differences(scenario: Scenario, replication: int = 0, *, compiled: bool = False) -> list[str]:
    """Return the parts of the log that differ."""
    ours = run_kernel(scenario, replication, compiled=compiled)
    try:
        theirs = reference(scenario, replication)
    except HtpsimError:
        return [] if ours is None else ["the reference engine refuses the run"]
    if ours is None:
        return ["the kernel leaves the run to the reference engine"]
    names = [f.name for f in fields(RunLog) if f.name != "engine"]
    return [name for name in names if list_of(getattr(ours, name)) != list_of(getattr(theirs, name))]


def list_of(value: object) -> object:
    """Return rows as plain lists of tuples, and anything else as it is."""
    return (
        [tuple(row) for row in value] if isinstance(value, list) and value and not isinstance(value[0], str) else value
    )
