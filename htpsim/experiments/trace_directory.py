"""Bring back the run behind a run directory: simulated anew, and only if that gives the records in it.

A run directory has the rows that tables need, not every stretch on a core. The same scenario and seed give the same
bytes, so the rest is found by running it again; where the records then differ, another version of htpsim made them,
and what would be shown beside them would be another run's.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from htpsim.errors import HtpsimError
from htpsim.results.run import RunResult
from htpsim.results.write import PROVENANCE, records_csv
from htpsim.scenario import from_tree
from htpsim.sim import simulate

BYTES_MAX = 64 * 2**20
"""Of a scenario.json or summary.json; the largest known are a hundredth of it."""


def run_of_directory(directory: str | os.PathLike[str]) -> RunResult:
    """Return the run that was written to a directory by ``htpsim run --out``, or to a folder of a comparison's runs.

    Raises
    ------
    HtpsimError
        When it is no run directory, or this version of htpsim gives other records.
    """
    folder = Path(directory)
    written = _read(folder, "scenario.json")
    summary = _read(folder, "summary.json")
    tree = written.get("scenario")
    replication = summary.get("replication")
    if not isinstance(tree, dict) or not isinstance(replication, int) or isinstance(replication, bool):
        raise HtpsimError(
            f"{folder}: got no scenario that can be run again, expected the folder of one run (htpsim run --out, or "
            "one of the runs of htpsim compare --out)"
        )
    scenario = from_tree(tree, str(folder / "scenario.json"))
    name = summary.get("scenario")
    result = RunResult(simulate(replace(scenario, name=name) if isinstance(name, str) else scenario, replication))
    try:
        recorded = (folder / "records.csv").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise HtpsimError(f"{folder / 'records.csv'}: cannot be read, expected the records of the run") from error
    if records_csv(result) != recorded:
        raise HtpsimError(
            f"{folder}: got records that this version of htpsim does not give again, expected those of the run; "
            f"make it anew with the command in {PROVENANCE}"
        )
    return result


def _read(folder: Path, name: str) -> dict[str, Any]:
    """Return a JSON object of the directory."""
    path = folder / name
    try:
        if path.stat().st_size > BYTES_MAX:
            raise HtpsimError(f"{path}: got a file of {path.stat().st_size} bytes, expected at most {BYTES_MAX}")
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise HtpsimError(f"{folder}: got no {name} in it, expected a run directory (htpsim run --out)") from error
    except (OSError, ValueError, RecursionError) as error:
        raise HtpsimError(f"{path}: got {error}, expected the JSON of a run directory") from error
    if not isinstance(value, dict):
        raise HtpsimError(f"{path}: got no JSON object, expected that of a run directory")
    return value
