"""Many points of a scenario: a grid, a list or a sample of its keys, run to the end through any interruption."""

from htpsim.experiments.sweep.drive import Sweep, open_sweep, sweep

__all__ = ["Sweep", "open_sweep", "sweep"]
