"""Runs, comparisons, and what they are held to."""

from htpsim.experiments.compare import Comparison
from htpsim.experiments.single import Single

__all__ = ["Comparison", "Single"]
