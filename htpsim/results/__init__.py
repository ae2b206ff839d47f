"""Records, metrics, statistics of runs."""

from htpsim.results.log import RunLog
from htpsim.results.metric import Metric, Stats
from htpsim.results.metrics import summarise
from htpsim.results.run import RunResult
from htpsim.results.shares import water_fill
from htpsim.results.summary import Summary
from htpsim.results.write import run_directory, write_run

__all__ = ["Metric", "RunLog", "RunResult", "Stats", "Summary", "run_directory", "summarise", "water_fill", "write_run"]
