"""Statistics in the form that qnn-profile-viewer prints, so that simulated and measured tables stand side by side.

``formats.qnn_viewer`` reads it back. A device's log has an IPS of the whole run; it is left out here, because graphs
of several threads overlap and their number a second is no inverse of anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from htpsim.formats.samples import mean_ns
from htpsim.formats.writers.qnn_events import (
    NETRUN,
    GraphProfile,
    QnnEvent,
    events_of,
    graph_profiles,
    number_us,
    what,
)
from htpsim.results.run import RunResult
from htpsim.spec import Device
from htpsim.units import NS_PER_US

TITLE: Final = "Qnn Init/Prepare/Finalize/De-Init/Execute/Lib-Load Statistics:"
IPS: Final = "NetRun IPS (includes IO and misc. time)"
RULE: Final = "------------------------------------------------------------"

Reduce = Callable[[Sequence[int]], int]


def _mean(values: Sequence[int]) -> int:
    counts: dict[int, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return mean_ns(counts)


STATISTICS: Final[tuple[tuple[str, Reduce], ...]] = (("Average", _mean), ("Min", min), ("Max", max))


def viewer_lines(result: RunResult, client: str | None = None) -> Iterator[str]:
    """Yield the lines of a viewer's log, without line ends.

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
    >>> list(viewer_lines(RunResult(simulate(Scenario()))))[0]
    'Qnn Init/Prepare/Finalize/De-Init/Execute/Lib-Load Statistics:'
    """
    log, device = result.log, result.log.scenario.device
    graphs = [
        Printed(graph.index, graph.name, [_labelled(event, graph, device) for event in events_of(device, graph.rows)])
        for graph in graph_profiles(result, client)
    ]
    yield from log_lines(what(log), log.ready_ns, graphs)


class Printed(NamedTuple):
    """One graph of a log: what it prints, each with its unit and all its values."""

    number: int
    name: str
    events: list[tuple[str, str, list[int]]]
    """label, unit as printed, values [ns], or counts"""


def log_lines(said: str, ready_ns: int, graphs: Sequence[Printed], ips: float | None = None) -> Iterator[str]:
    """Yield the lines of a log of any figures.

    Parameters
    ----------
    said
        What the figures are, on a line below the title.
    ready_ns
        What loading took; 0: nothing was loaded.
    graphs
        In the order of their numbers; none without a value.
    ips
        Inferences a second over the whole run, where it is known.

    Examples
    --------
    >>> list(log_lines("of a doctest", 0, [Printed(0, "vit", [("NetRun", "us", [2_000, 4_000])])]))[9:11]
    ['Graph 0 (vit):', '    NetRun: 3 us']
    """
    yield TITLE
    yield RULE
    yield said
    yield from ("", "Init Stats:", RULE)
    if ready_ns > 0:
        yield f"    {NETRUN}: {number_us(ready_ns)} us"
    if ips is not None:
        yield from ("", "Execute Stats (Overall):", RULE, f"    {IPS}: {ips:.4f} inf/sec")
    for title, reduce in STATISTICS if graphs else ():
        yield from ("", f"Execute Stats ({title}):", RULE)
        for graph in graphs:
            yield f"Graph {graph.number} ({graph.name}):"
            yield from (f"    {label}: {_reduced(values, unit, reduce)} {unit}" for label, unit, values in graph.events)


def _labelled(event: QnnEvent, graph: GraphProfile, device: Device) -> tuple[str, str, list[int]]:
    label = event.name if event.number is None else f"Backend ({event.name})"
    return label, event.unit, [event.value(row, device) for row in graph.rows]


def _reduced(values: Sequence[int], unit: str, reduce: Reduce) -> str:
    """Return one statistic of one event; a mean is exact to the nanosecond, that of a count to the thousandth."""
    return number_us(reduce(values if unit == "us" else [value * NS_PER_US for value in values]))
