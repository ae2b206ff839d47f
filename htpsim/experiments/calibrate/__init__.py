"""Calibrate a scenario from the files of real tools: service times, host gaps, memory, loading, each with its source.

``console``, ``profiles``, ``published`` and ``configs`` take what each kind of file holds; ``service`` decides what a
scenario draws a time from, ``leaf`` how it is told; ``llm`` and ``build`` put all files together, and ``document``
writes them down.
"""

from htpsim.experiments.calibrate.calibration import Calibration, calibrate
from htpsim.experiments.calibrate.leaf import Leaf
from htpsim.experiments.calibrate.service import ServiceModel, service_model

__all__ = ["Calibration", "Leaf", "ServiceModel", "calibrate", "service_model"]
