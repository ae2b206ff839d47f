"""Statistics in the form that qnn-profile-viewer prints, so that simulated and measured tables stand side by side.

``formats.qnn_viewer`` reads it back. A device's log has an IPS of the whole run; it is left out here, because graphs
of several threads overlap and their number a second is no inverse of anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

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
    graphs = list(graph_profiles(result, client))
    yield TITLE
    yield RULE
    yield what(log)
    yield from ("", "Init Stats:", RULE)
    if log.ready_ns > 0:
        yield f"    {NETRUN}: {number_us(log.ready_ns)} us"
    for title, reduce in STATISTICS if graphs else ():
        yield from ("", f"Execute Stats ({title}):", RULE)
        for graph in graphs:
            yield f"Graph {graph.index} ({graph.name}):"
            yield from (f"    {_labelled(event, graph, device, reduce)}" for event in events_of(device, graph.rows))


def _labelled(event: QnnEvent, graph: GraphProfile, device: Device, reduce: Reduce) -> str:
    """Return one statistic of one event; a mean is exact to the nanosecond, that of a count to the thousandth."""
    values = [event.value(row, device) for row in graph.rows]
    label = event.name if event.number is None else f"Backend ({event.name})"
    if event.unit == "us":
        return f"{label}: {number_us(reduce(values))} us"
    return f"{label}: {number_us(reduce([value * NS_PER_US for value in values]))} {event.unit}"
