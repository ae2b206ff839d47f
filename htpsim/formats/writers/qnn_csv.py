"""Every execution as rows of a QNN profiling CSV, by graph; ``formats.qnn_csv`` reads it back.

An eighth column, which tools that read seven pass over, has the event's number in QNN's headers.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Final

from htpsim.formats.profilerows import COLUMNS
from htpsim.formats.writers.qnn_events import NETRUN, QnnEvent, events_of, graph_profiles, number_us, what
from htpsim.results.run import RunResult
from htpsim.units import NS_PER_US

NUMBER: Final = "Event Number"
UNITS: Final = {"us": "US", "count": "COUNT"}


def csv_lines(result: RunResult, client: str | None = None) -> Iterator[str]:
    """Yield the lines of a CSV, without line ends.

    Parameters
    ----------
    result : RunResult
        A finished run.
    client : str, optional
        Only what this one called.

    Raises
    ------
    HtpsimError
        When there is no such client.

    Examples
    --------
    >>> from htpsim.sim import simulate
    >>> from htpsim.spec import Scenario
    >>> for line in csv_lines(RunResult(simulate(Scenario()))):
    ...     print(line)
    source,"simulated, not measured: scenario scenario, seed 1, replication 0"
    Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier,Event Number
    """
    log, device = result.log, result.log.scenario.device
    yield csv_line("source", what(log))
    yield csv_line(*COLUMNS, NUMBER)
    if log.ready_ns > 0:
        yield csv_line(log.ready_ns // NS_PER_US, "INIT", number_us(log.ready_ns), "US", "NETRUN", "ROOT", "null", "")
    for graph in graph_profiles(result, client):
        events = events_of(device, graph.rows)
        for row in graph.rows:
            for event in events:
                value = event.value(row, device)
                digits = number_us(value) if event.unit == "us" else value
                identifier, source = _labelled(event, f"Graph {graph.index}: {graph.name}")
                number = "" if event.number is None else event.number
                yield csv_line(
                    row.returned_ns // NS_PER_US, "EXECUTE", digits, UNITS[event.unit], source, "ROOT", identifier,
                    number,
                )  # fmt: skip


def _labelled(event: QnnEvent, graph: str) -> tuple[str, str]:
    """Return the identifier of an event and who timed it: the tool's own row names the graph."""
    return (graph, "NETRUN") if event.name == NETRUN else (event.name, "BACKEND")


def csv_line(*fields: object) -> str:
    """Return fields as a line of a CSV, without its end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(fields)
    return text.getvalue()
