"""Write what a command found to a run directory: JSON, CSV, plots, and the page one reads first."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.console import RenderableType

from htpsim.errors import HtpsimError
from htpsim.experiments.compare import Comparison
from htpsim.experiments.sensitivity import Sensitivity
from htpsim.experiments.sign_grid import METRICS
from htpsim.experiments.single import Single
from htpsim.experiments.tune import Tuned
from htpsim.report import plot
from htpsim.report.cells import to_text
from htpsim.report.pages import comparison_dict, comparison_page, single_page
from htpsim.report.plots import file_name, save_compare_plots, save_run_plots
from htpsim.report.sensitivity import sensitivity_dict, sensitivity_page
from htpsim.report.tune import tuned_dict, tuned_page
from htpsim.results.run import RunResult
from htpsim.results.write import json_text, refuse_foreign, run_directory, write_run
from htpsim.scenario import ResolvedScenario, resolved_dict

PAGE: Final = "report.txt"
FILES: Final = {
    PAGE: ("both", "the page that the terminal shows, in full"),
    "summary.json": ("both", "of a run: the figures of replication 0; of a comparison: all that `--json` prints"),
    "replications.json": ("a run", "a list of summaries, one a replication"),
    "scenario.json": ("a run", "the scenario after everything was applied, sources and warnings included"),
    "records.csv": ("a run", "a row a graphExecute of replication 0"),
    "requests.csv": ("a run", "a row a request or job"),
    "slices.csv": ("a run", "a row a stretch on a core, of graphExecutes that were evicted"),
    "memory.csv": ("a run", "a row a change of memory"),
    "log.json": ("a run", "what the rows refer to: clients, graphs, accounts, copies, loads, the bounds of the window"),
    "provenance.json": ("both", "program, versions, machine, command, time, and the digest of every file"),
    "*.png": ("both", "plots; of a comparison with several cases in a folder a case"),
}
"""File of a run directory -> of what, and what it holds."""


def refuse_unfit(directory: Path) -> None:
    """Raise unless a run directory can be written there: asked before simulating, not after.

    Raises
    ------
    HtpsimError
        When something foreign stands there, it is the current directory, or its parent cannot be written to.
    """
    target = directory.absolute()
    refuse_foreign(target)
    if target.exists() and target.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise HtpsimError(f"{directory}: is the current directory or above it, expected one that can be replaced")
    above = next(parent for parent in target.parents if parent.exists())
    if not above.is_dir():
        raise HtpsimError(f"{directory}: {above} is a file, expected a directory to write the run to")
    if not os.access(above, os.W_OK | os.X_OK):
        raise HtpsimError(f"{directory}: {above} cannot be written to, expected a directory of your own")


def write_single(single: Single, directory: Path, command: Sequence[str]) -> None:
    """Write one scenario's run: records and plots of replication 0, summaries of all.

    Raises
    ------
    HtpsimError
        When `directory` holds something that htpsim did not write there.
    """
    with run_directory(directory, command, engine=single.log.engine) as folder:
        write_run(folder, single.result, scenario_dict(single.resolved))
        summaries = [summary.to_dict() for summary in single.summaries]
        _write(folder / "replications.json", json_text(summaries))
        save_run_plots(single.result, folder)
        _write_page(folder, single_page(single, whole=True))


def write_comparison(comparison: Comparison, directory: Path, command: Sequence[str]) -> None:
    """Write a comparison: its page, its plots a case, and a folder a variant with the records of replication 0.

    Raises
    ------
    HtpsimError
        When `directory` holds something that htpsim did not write there, or the comparison kept no logs.
    """
    if comparison.logs.keys() != comparison.resolved.keys():
        raise HtpsimError("comparison: got no logs to write, expected compare(..., keep_logs=True)")
    results = {key: RunResult(log) for key, log in comparison.logs.items()}
    engine = next((log.engine for log in comparison.logs.values()), "")
    with run_directory(directory, command, engine=engine) as folder:
        _write_page(folder, comparison_page(comparison, whole=True))
        _write(folder / "summary.json", json_text(comparison_dict(comparison)))
        for case in comparison.cases:
            plots = folder if len(comparison.cases) == 1 else folder / case
            plots.mkdir(exist_ok=True)
            save_compare_plots({v: results[case, v] for v in comparison.variants}, plots)
            for variant in comparison.variants:
                key = (case, variant)
                write_run(folder / "runs" / f"{case}.{variant}", results[key], scenario_dict(comparison.resolved[key]))


def write_sensitivity(found: Sensitivity, directory: Path, command: Sequence[str]) -> None:
    """Write what moves the answers: page, JSON, a row an effect, and a tornado an answer.

    Raises
    ------
    HtpsimError
        When `directory` holds something that htpsim did not write there.
    """
    with run_directory(directory, command) as folder:
        _write_page(folder, sensitivity_page(found))
        _write(folder / "sensitivity.json", json_text(sensitivity_dict(found)))
        _write(folder / "effects.csv", found.to_dataframe().to_csv(index=False, lineterminator="\n"))
        for variant in found.variants:
            for metric in METRICS:
                if found.of(metric, variant):
                    name = file_name(f"{variant} {metric.removeprefix('overall.')}".strip())
                    plot.tornado(found, metric, variant).save(folder / f"tornado-{name}.png")


def write_tuned(tuned: Tuned, directory: Path, command: Sequence[str]) -> None:
    """Write what tuning came to: page, JSON, a row a candidate, and the front against each bound.

    Raises
    ------
    HtpsimError
        When `directory` holds something that htpsim did not write there.
    """
    with run_directory(directory, command) as folder:
        _write_page(folder, tuned_page(tuned))
        _write(folder / "tuned.json", json_text(tuned_dict(tuned)))
        _write(folder / "candidates.csv", tuned.to_dataframe().to_csv(index=False, lineterminator="\n"))
        for i, demand in enumerate(tuned.bounds if tuned.candidates else ()):
            plot.pareto(tuned, i).save(folder / f"pareto-{file_name(demand.path)}.png")


def scenario_dict(resolved: ResolvedScenario) -> dict[str, Any]:
    """Return a resolved scenario with the sources of its figures, in JSON form."""
    return {
        "scenario": resolved_dict(resolved.scenario),
        "sources": [asdict(source) for source in resolved.sources],
        "warnings": list(resolved.warnings),
    }


def _write_page(folder: Path, page: RenderableType) -> None:
    _write(folder / PAGE, to_text(page))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
