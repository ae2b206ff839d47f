"""What is simulated: frozen dataclasses in field terms, without I/O."""

from htpsim.spec.device import ARCHITECTURES, NORMAL, PRIORITIES, Device
from htpsim.spec.distribution import Distribution, constant, exponential, table
from htpsim.spec.model import Context, Graph, Model
from htpsim.spec.param import MARKS, Param, describe, param, parameters
from htpsim.spec.scenario import Guard, Registry, Run, Runtime, Scenario
from htpsim.spec.work import Arrivals, Instance, OtherClient

__all__ = [
    "ARCHITECTURES",
    "MARKS",
    "NORMAL",
    "PRIORITIES",
    "Arrivals",
    "Context",
    "Device",
    "Distribution",
    "Graph",
    "Guard",
    "Instance",
    "Model",
    "OtherClient",
    "Param",
    "Registry",
    "Run",
    "Runtime",
    "Scenario",
    "constant",
    "describe",
    "exponential",
    "param",
    "parameters",
    "table",
]
