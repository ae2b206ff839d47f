"""What several vision-language models do to one Hexagon Tensor Processor, simulated event by event.

The names below are loaded when first used, so that ``import htpsim`` costs nothing.

>>> import htpsim
>>> sorted(set(htpsim.__all__) & {"compare", "load", "read", "run", "simulate"})
['compare', 'load', 'read', 'run', 'simulate']
"""

from __future__ import annotations

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from htpsim.errors import HtpsimError as HtpsimError
    from htpsim.experiments.calibrate import Calibration as Calibration
    from htpsim.experiments.calibrate import calibrate as calibrate
    from htpsim.experiments.engine import simulate as simulate
    from htpsim.experiments.fit import Fits as Fits
    from htpsim.experiments.fit import fit as fit
    from htpsim.experiments.score import Score as Score
    from htpsim.experiments.score import score as score
    from htpsim.experiments.sweep import Sweep as Sweep
    from htpsim.experiments.sweep import open_sweep as open_sweep
    from htpsim.formats import read as read
    from htpsim.report import plot as plot
    from htpsim.report.shown import Comparison as Comparison
    from htpsim.report.shown import Sensitivity as Sensitivity
    from htpsim.report.shown import Single as Single
    from htpsim.report.shown import Tuned as Tuned
    from htpsim.report.shown import compare as compare
    from htpsim.report.shown import run as run
    from htpsim.report.shown import sensitivity as sensitivity
    from htpsim.report.shown import sweep as sweep
    from htpsim.report.shown import tune as tune
    from htpsim.results.run import RunResult as RunResult
    from htpsim.scenario import ScenarioFile as ScenarioFile
    from htpsim.scenario import load as load
    from htpsim.spec import Scenario as Scenario

    __version__: str

_HOMES: Final = {
    "Calibration": ("htpsim.experiments.calibrate", "Calibration"),
    "Comparison": ("htpsim.report.shown", "Comparison"),
    "Fits": ("htpsim.experiments.fit", "Fits"),
    "HtpsimError": ("htpsim.errors", "HtpsimError"),
    "RunResult": ("htpsim.results.run", "RunResult"),
    "Scenario": ("htpsim.spec", "Scenario"),
    "ScenarioFile": ("htpsim.scenario", "ScenarioFile"),
    "Score": ("htpsim.experiments.score", "Score"),
    "Sensitivity": ("htpsim.report.shown", "Sensitivity"),
    "Single": ("htpsim.report.shown", "Single"),
    "Sweep": ("htpsim.experiments.sweep", "Sweep"),
    "Tuned": ("htpsim.report.shown", "Tuned"),
    "calibrate": ("htpsim.experiments.calibrate", "calibrate"),
    "compare": ("htpsim.report.shown", "compare"),
    "fit": ("htpsim.experiments.fit", "fit"),
    "load": ("htpsim.scenario", "load"),
    "open_sweep": ("htpsim.experiments.sweep", "open_sweep"),
    "plot": ("htpsim.report", "plot"),
    "read": ("htpsim.formats", "read"),
    "run": ("htpsim.report.shown", "run"),
    "score": ("htpsim.experiments.score", "score"),
    "sensitivity": ("htpsim.report.shown", "sensitivity"),
    "simulate": ("htpsim.experiments.engine", "simulate"),
    "sweep": ("htpsim.report.shown", "sweep"),
    "tune": ("htpsim.report.shown", "tune"),
}
"""Public name -> module and name in it."""

__all__ = [
    "Calibration",
    "Comparison",
    "Fits",
    "HtpsimError",
    "RunResult",
    "Scenario",
    "ScenarioFile",
    "Score",
    "Sensitivity",
    "Single",
    "Sweep",
    "Tuned",
    "calibrate",
    "compare",
    "fit",
    "load",
    "open_sweep",
    "plot",
    "read",
    "run",
    "score",
    "sensitivity",
    "simulate",
    "sweep",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return metadata.version("htpsim")
    if name not in _HOMES:
        from htpsim.errors import nearest

        close = nearest(name, _HOMES)
        raise AttributeError(f"module 'htpsim' has no '{name}'" + (f"; did you mean '{close}'?" if close else ""))
    module, own = _HOMES[name]
    return getattr(import_module(module), own)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
