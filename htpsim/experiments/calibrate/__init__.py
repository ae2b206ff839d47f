"""Calibrate a scenario from the files of real tools: service times, host gaps, memory, loading, each with its source.

``console``, ``profiles``, ``published`` and ``configs`` take what each kind of file holds; ``service`` decides what a
scenario draws a time from; ``build`` puts all files together, ``document`` writes them down.
"""

from htpsim.experiments.calibrate.build import Leaf
from htpsim.experiments.calibrate.calibration import Calibration, calibrate
from htpsim.experiments.calibrate.service import ServiceModel, service_model

__all__ = ["Calibration", "Leaf", "ServiceModel", "calibrate", "service_model"]
