"""The tables of a run as CSV, or as Parquet where its package is installed; a missing value stays missing in both."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from htpsim.errors import HtpsimError, unknown_name
from htpsim.formats.writers.extra import needed
from htpsim.formats.writers.whole import whole_file
from htpsim.results.run import RunResult

if TYPE_CHECKING:
    import pandas as pd

TABLES: Final = ("executes", "requests", "tokens", "slices", "memory", "loads", "copies")
"""The frames of a run, by the names that `RunResult` has for them."""

PARQUET: Final = ".parquet"


def table_frame(result: RunResult, table: str) -> pd.DataFrame:
    """Return a table by its name.

    Raises
    ------
    HtpsimError
        When there is no such table.

    Examples
    --------
    >>> from htpsim.sim import simulate
    >>> from htpsim.spec import Scenario
    >>> table_frame(RunResult(simulate(Scenario())), "slices").columns.tolist()
    ['execute', 'kind', 'start_ns', 'end_ns']
    """
    if table not in TABLES:
        raise HtpsimError(unknown_name("table", table, TABLES))
    frame: pd.DataFrame = getattr(result, table)
    return frame


def write_table(result: RunResult, path: str | os.PathLike[str], table: str = "executes") -> None:
    """Write one table of a run: Parquet where the name ends in ``.parquet``, else CSV.

    Parameters
    ----------
    result : RunResult
        A finished run.
    path : path
        Where to; it is replaced as a whole, or left as it was.
    table : str
        One of `TABLES`; "executes" has a row a graphExecute.

    Raises
    ------
    HtpsimError
        For another table, and for Parquet without its package.
    """
    write_frame(table_frame(result, table), path)


def write_frame(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a frame as `write_table` does.

    Raises
    ------
    HtpsimError
        For Parquet without its package.
    """
    if Path(path).suffix != PARQUET:
        with whole_file(path) as unfinished:
            frame.to_csv(unfinished, index=False, lineterminator="\n", encoding="utf-8")
        return
    needed("pyarrow", "parquet")
    with whole_file(path) as unfinished:
        frame.to_parquet(unfinished, engine="pyarrow", index=False)
