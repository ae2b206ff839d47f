"""Tools to test a policy, a registry or a device of your own: see ``docs/testing-your-policy.md``.

Needs hypothesis, which is installed with ``pip install htpsim[test]``.
"""

from htpsim.testing.device import DeviceMachine, device_machine
from htpsim.testing.guard import GuardMachine, guard_machine
from htpsim.testing.registry import RegistryMachine, registry_machine
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
    "DeviceMachine",
    "GuardMachine",
    "RegistryMachine",
    "backlogged_scenarios",
    "backlogged_traces",
    "device_machine",
    "devices",
    "guard_machine",
    "instances",
    "random_backlogged",
    "random_scenario",
    "registry_machine",
    "scenarios",
    "trace_scenario",
    "traces",
]
