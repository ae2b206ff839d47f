"""Tools to test a policy, a registry or a device of your own: see ``docs/testing-your-policy.md``.

Needs hypothesis, which is installed with ``pip install htpsim[test]``.
"""

from htpsim.testing.scenarios import (
    backlogged_scenarios,
    backlogged_traces,
    devices,
    instances,
    random_backlogged,
    random_scenario,
    scenarios,
    trace_scenario,
    traces,
)

__all__ = [
    "backlogged_scenarios",
    "backlogged_traces",
    "devices",
    "instances",
    "random_backlogged",
    "random_scenario",
    "scenarios",
    "trace_scenario",
    "traces",
]
