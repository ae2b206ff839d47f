"""Open what a command wrote: the run in a run directory, with its scenario."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from htpsim.results.read import field_of, read_json, read_log
from htpsim.results.run import RunResult
from htpsim.scenario import from_tree


def open_run(directory: str | os.PathLike[str]) -> RunResult:
    """Return the run that ``htpsim run --out`` wrote, or one of the runs that ``htpsim compare --out`` did.

    Nothing is simulated: the rows are those in the directory.

    Parameters
    ----------
    directory
        A run directory of one scenario, or a folder under ``runs`` of a comparison's.

    Raises
    ------
    HtpsimError
        When it is no run directory, or a file in it is damaged; names file and line.
    """
    folder = Path(directory)
    path = folder / "scenario.json"
    scenario = from_tree(field_of(path, read_json(path), "scenario", dict), str(path))
    summary = folder / "summary.json"
    name = field_of(summary, read_json(summary), "scenario", str)
    return RunResult(read_log(folder, replace(scenario, name=name)))
