"""What was measured on this machine: its arithmetic, and the preset that a scenario takes from it.

Nothing here runs a model: `htpsim.live` does, and hands over the times.
"""

from htpsim.experiments.measured.latency import Latency, latency
from htpsim.experiments.measured.measurement import Machine, Measured, Measurement, Model
from htpsim.experiments.measured.preset import preset

__all__ = ["Latency", "Machine", "Measured", "Measurement", "Model", "latency", "preset"]
