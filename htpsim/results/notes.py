"""What a reader of a summary must be told, in sentences."""

from __future__ import annotations

from typing import Final

from htpsim.results.metric import Stats
from htpsim.results.saturation import OVERLOADED, STABLE
from htpsim.results.summary import Summary

OPEN_SHARE_TOLD: Final = 0.05
"""Share of open requests from which the bias of leaving them out is told."""

SHORTFALL_TOLD: Final = 0.05
"""Distance below its water-filled share from which a client's shortfall is told."""


def notes(summary: Summary) -> list[str]:
    """Return the sentences that follow from the figures themselves."""
    told = [f"{name} starved: {client.starved}" for name, client in summary.clients.items() if client.starved]
    told += [f"{name} did not start: {reason}" for name, reason in summary.failed.items()]
    told += _saturated(summary)
    told += _cold_starts(summary)
    told += _emptiness(summary)
    told += _left_out(summary)
    if summary.guard.bypassed.value:
        told.append(f"{summary.guard.bypassed.value:,} calls on path genie carried no handle and went past the guard")
    weights = {client.device.weight for client in summary.clients.values() if client.device.weight is not None}
    if len(weights) > 1 and summary.guard.weights_without_effect:
        told.append(f"weights had no effect: {summary.guard.weights_without_effect}")
    elif len(weights) > 1:
        told += _fell_short(summary)
    if summary.setup["policy"] == "quota":
        told.append("the figures rest on the quota's own choices (period, carry-over, borrowing), which are assumed")
    return told


def _cold_starts(summary: Summary) -> list[str]:
    """Return who met a cold core, and how much longer that took."""
    told = []
    for name, client in summary.clients.items():
        cold, warm = client.costs.get("cold"), client.costs.get("warm")
        if isinstance(cold, Stats) and isinstance(warm, Stats) and cold.mean.n:
            what = "TTFT" if client.kind == "instance" else "latency"
            told.append(
                f"{name}: {cold.mean.n:,} of {cold.mean.n + warm.mean.n:,} requests found their core powered down: "
                f"{what} p50 {cold.p50} and p99 {cold.p99}, of the others {warm.p50} and {warm.p99}"
            )
    return told


def _fell_short(summary: Summary) -> list[str]:
    """Return who was farthest below the share that its weight should give it, if anybody was."""
    gaps = [
        (c.device.fair_share.value - c.device.share.value, name)
        for name, c in summary.clients.items()
        if c.device.fair_share.value is not None and c.device.share.value is not None
    ]
    gap, name = max(gaps, default=(0.0, ""))
    if gap <= SHORTFALL_TOLD:
        return []
    device, choices = summary.clients[name].device, summary.guard.choices
    return [
        f"weights fell short: {name} got {device.share} of the device time where {device.fair_share} would be its "
        f"water-filled share; weights act only among calls in line, and {choices} of the grants had a choice"
    ]


def _saturated(summary: Summary) -> list[str]:
    """Return who does not keep up with its arrivals: its latencies say how long the run was, and little else."""
    return [
        f"{name} is {client.saturation}"
        + ("; its latencies grow with the length of the run" if client.saturation.startswith(OVERLOADED) else "")
        for name, client in summary.clients.items()
        if client.saturation != STABLE
    ]


def _emptiness(summary: Summary) -> list[str]:
    counts = summary.overall.counts
    if not counts.arrived:
        return ["nothing arrived: no client has work, or the run ended before its first arrival"]
    if not summary.overall.requests_per_s.n:
        return ["no request or job finished in the measured window: most figures are n/a; a longer duration is needed"]
    return []


def _left_out(summary: Summary) -> list[str]:
    told = []
    for name, client in summary.clients.items():
        still, ended = client.open_requests.n, client.ttft.mean.n if client.kind == "instance" else client.job.mean.n
        if still > 1 and still > OPEN_SHARE_TOLD * (still + ended):
            what = "without a first token" if client.kind == "instance" else "unfinished"
            told.append(
                f"{name}: {still:,} requests were {what} when the run ended, the oldest {client.open_age} old; "
                f"the means leave them out and are too low"
            )
    return told
