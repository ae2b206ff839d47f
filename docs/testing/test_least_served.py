"""All that it takes to test a policy: random calls and grants, and runs of whole scenarios, held to every rule."""

from hypothesis import given

from htpsim.invariants import Trace, check_trace
from htpsim.testing import backlogged_traces, guard_machine, traces

POLICY = "least_served:LeastServed"

TestItsGuard = guard_machine(POLICY).TestCase


@given(traces(POLICY) | backlogged_traces(POLICY))
def test_no_rule_is_broken(trace: Trace) -> None:
    """Check every rule that applies, on runs with ties, evictions, gangs and failed loads."""
    check_trace(trace).require()
