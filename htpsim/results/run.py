"""One finished run: its log, its frames, its summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from htpsim.errors import HtpsimError, unknown_name
from htpsim.results import frames
from htpsim.results.blame import Blame
from htpsim.results.log import RunLog
from htpsim.results.metrics import summarise
from htpsim.results.samples import MEASURES
from htpsim.results.statistics import Interval, quantile_interval
from htpsim.results.summary import Summary
from htpsim.results.tables import Tables
from htpsim.results.write import run_directory, write_run

if TYPE_CHECKING:
    import pandas as pd


class RunResult:
    """What a run left behind, in the form one works with.

    Frames are made when first asked for and kept. Times are integer nanoseconds, memory integer bytes.
    """

    def __init__(self, log: RunLog) -> None:
        self.log = log

    @cached_property
    def tables(self) -> Tables:
        """The rows as integer columns."""
        return Tables(self.log)

    @cached_property
    def executes(self) -> pd.DataFrame:
        """One row a graphExecute."""
        return frames.executes_frame(self.tables)

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row a request or job."""
        return frames.requests_frame(self.tables)

    @cached_property
    def tokens(self) -> pd.DataFrame:
        """One row a token, with the gap to the one before it."""
        return frames.tokens_frame(self.tables)

    @cached_property
    def slices(self) -> pd.DataFrame:
        """One row a stretch on a core, of graphExecutes that were evicted."""
        return frames.slices_frame(self.tables)

    @cached_property
    def memory(self) -> pd.DataFrame:
        """One row a change of memory, with what is held after it."""
        return frames.memory_frame(self.tables)

    @cached_property
    def loads(self) -> pd.DataFrame:
        """One row a load."""
        return frames.loads_frame(self.tables)

    @cached_property
    def copies(self) -> pd.DataFrame:
        """One row a loaded context."""
        return frames.copies_frame(self.tables)

    @cached_property
    def blame(self) -> Blame:
        """What every graphExecute waited for, and on whose account."""
        return Blame(self.tables)

    @cached_property
    def _summary(self) -> Summary:
        return summarise(self.log, self.tables)

    def summary(self) -> Summary:
        """Return the figures over the measured window."""
        return self._summary

    def samples(self, measure: str) -> pd.DataFrame:
        """Return the samples behind a latency: columns client and value_ns.

        Parameters
        ----------
        measure
            "ttft", "itl", "tpot", "vit", "vit_image", "prefill", "job" or "worst_gap".

        Raises
        ------
        HtpsimError
            When there is no such measure; the message has the nearest one.
        """
        if measure not in MEASURES:
            raise HtpsimError(unknown_name("measure", measure, MEASURES))
        return frames.samples_frame(self.tables, MEASURES[measure](self.tables))

    def quantile_interval(self, measure: str, percent: float, client: str | None = None) -> Interval | None:
        """Return the 95 % interval of a quantile between two of its samples; None where there are too few.

        It takes the samples for independent: first tokens of different requests nearly are, the gaps between the
        tokens of one answer are not, and their interval is then too narrow. Several replications make no such claim.

        Parameters
        ----------
        measure
            As in `samples`.
        percent
            Which quantile, such as 99.
        client
            Samples of this one only.

        Raises
        ------
        HtpsimError
            When there is no such measure or client.
        """
        found = self.samples(measure)
        if client is not None:
            if client not in self.log.clients:
                raise HtpsimError(unknown_name("client", client, self.log.clients))
            found = found[found["client"] == client]
        return quantile_interval(np.sort(found["value_ns"].to_numpy()), percent)

    def to_dataframe(self) -> pd.DataFrame:
        """Return the frame of graphExecutes."""
        return self.executes

    def write(
        self, directory: str | Path, *, scenario: Mapping[str, object] | None = None, command: Sequence[str] = ()
    ) -> None:
        """Write a run directory: whole, or not at all.

        Parameters
        ----------
        directory
            Missing, empty, or an earlier run directory, which is replaced.
        scenario
            The resolved scenario as it was read; without it, the specification.
        command
            The command line, for the provenance.

        Raises
        ------
        HtpsimError
            When the directory holds something that htpsim did not write there.
        """
        with run_directory(directory, command, engine=self.log.engine) as folder:
            write_run(folder, self, scenario)

    def __repr__(self) -> str:
        log = self.log
        name = f"{log.scenario.name!r}, seed {log.scenario.run.seed}, replication {log.replication}"
        return f"<RunResult {name}: {len(log.executes):,} graphExecutes, {len(log.requests):,} requests>"

    def _repr_html_(self) -> str:
        summary = self.summary()
        columns = {
            "TTFT p50": "ttft.p50",
            "ITL p50": "itl.p50",
            "ITL p99": "itl.p99",
            "ViT p50": "vit.p50",
            "tokens/s": "tokens_per_s",
            "guard wait": "guard_wait.mean",
            "device wait": "device_wait.mean",
        }
        rows = [("all", "overall"), *((name, f"clients.{name}") for name in summary.clients)]
        head = "".join(f"<th>{escape(title)}</th>" for title in ["client", *columns])
        body = "".join(
            f"<tr><th>{escape(name)}</th>"
            + "".join(
                f'<td title="{escape(m.why)}">{escape(str(m))}</td>'
                for m in (summary.metric(f"{prefix}.{path}") for path in columns.values())
            )
            + "</tr>"
            for name, prefix in rows
        )
        notes = "".join(f"<li>{escape(note)}</li>" for note in summary.notes)
        return f"<p>{escape(repr(self))}</p><table><thead><tr>{head}</tr></thead>{body}</table><ul>{notes}</ul>"
