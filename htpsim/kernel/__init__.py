"""The compiled engine: a second event loop around the same rules, over tables of records."""

from htpsim.kernel.engine import NeedsReference, prepare, simulate, tally
from htpsim.kernel.supports import unsupported

__all__ = ["NeedsReference", "prepare", "simulate", "tally", "unsupported"]
