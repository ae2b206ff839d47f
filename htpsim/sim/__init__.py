"""The reference engine: the SimPy shell around ``sched``, ``device`` and ``memory``."""

from htpsim.sim.engine import Simulation, simulate

__all__ = ["Simulation", "simulate"]
