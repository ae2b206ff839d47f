"""Write a run, or a trace that was read, in the form of another tool: one function, one table of forms."""

from __future__ import annotations

import os
from pathlib import Path
from types import MappingProxyType
from typing import Final

from htpsim.errors import HtpsimError, unknown_name
from htpsim.experiments.trace import trace_of
from htpsim.formats.trace import form_of as trace_form
from htpsim.formats.trace import write_trace
from htpsim.formats.writers.genie_profile import genie_lines
from htpsim.formats.writers.qnn_csv import csv_lines
from htpsim.formats.writers.qnn_viewer import viewer_lines
from htpsim.formats.writers.table import write_table
from htpsim.formats.writers.whole import write_text
from htpsim.invariants import Trace
from htpsim.results.run import RunResult

FORMS: Final = MappingProxyType(
    {
        "chrome": "Chrome trace JSON, for ui.perfetto.dev and chrome://tracing; htpsim reads it too",
        "lines": "the same events as JSON lines; htpsim reads them",
        "perfetto": "Perfetto's own format, smaller and faster to open",
        "qnn-viewer": "statistics by graph, as qnn-profile-viewer prints them",
        "qnn-csv": "every execution, in the columns of a QNN profiling CSV",
        "genie-profile": "loading and queries of each instance, as a Genie profile",
        "table": "one table of the run: CSV, or Parquet for .parquet",
    }
)
"""What each form is."""

TRACES: Final = ("chrome", "lines", "perfetto")
"""Those that are made of a trace, so that a recorded one will do."""

_BY_SUFFIX: Final = MappingProxyType(
    {
        ".json": "chrome",
        ".jsonl": "lines",
        ".ndjson": "lines",
        ".pftrace": "perfetto",
        ".perfetto-trace": "perfetto",
        ".txt": "qnn-viewer",
        ".csv": "qnn-csv",
        ".parquet": "table",
    }
)


def form_of(path: str | os.PathLike[str], form: str | None = None) -> str:
    """Return the form that is asked for, or that the end of a name says.

    Raises
    ------
    HtpsimError
        When there is no such form, or the name says none.

    Examples
    --------
    >>> form_of("run.pftrace"), form_of("run.csv"), form_of("run.csv", "table")
    ('perfetto', 'qnn-csv', 'table')
    """
    chosen = form or _BY_SUFFIX.get(Path(path).suffix)
    if chosen is None:
        raise HtpsimError(f"{path}: got a name that says no form, expected one ending in {', '.join(_BY_SUFFIX)}")
    if chosen not in FORMS:
        raise HtpsimError(unknown_name("form", chosen, FORMS))
    return trace_form(path, chosen) if chosen in TRACES else chosen


def export(
    run: RunResult | Trace,
    path: str | os.PathLike[str],
    form: str | None = None,
    *,
    client: str | None = None,
    table: str | None = None,
    replay: str = "",
) -> None:
    """Write a run in the form of another tool; the file is replaced as a whole, or left as it was.

    Parameters
    ----------
    run : RunResult or Trace
        A finished run, or a trace that was read; of a trace only traces can be made.
    path : path
        Where to.
    form : str, optional
        One of `FORMS`; by default what the name ends in.
    client : str, optional
        For the QNN forms: only what this instance or other client called.
    table : str, optional
        For tables: which one; by default "executes".
    replay : str
        For traces of a run: the command that makes it again.

    Raises
    ------
    HtpsimError
        When the form, client or table does not exist or fit, or needs a package that is not installed.
    """
    chosen = form_of(path, form)
    if client is not None and chosen not in ("qnn-viewer", "qnn-csv"):
        raise HtpsimError(f"client: got '{client}' for {chosen}, expected none: only the QNN forms are of one client")
    if table is not None and chosen != "table":
        raise HtpsimError(f"table: got '{table}' for {chosen}, expected none: only the form 'table' has one")
    if chosen in TRACES:
        write_trace(run if isinstance(run, Trace) else trace_of(run.log, replay), path, trace_form(path, chosen))
    elif isinstance(run, Trace):
        raise HtpsimError(f"{chosen}: got a trace, expected a run, which has more; of a trace: {', '.join(TRACES)}")
    elif chosen == "table":
        write_table(run, path, table or "executes")
    elif chosen == "genie-profile":
        write_text(genie_lines(run), path)
    else:
        write_text((viewer_lines if chosen == "qnn-viewer" else csv_lines)(run, client), path)
