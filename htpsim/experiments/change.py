"""By how much a variant differs from the first one, replication by replication: both saw the same draws.

What two variants have in common (a long think time, a busy stretch) cancels in the difference of a pair, so its
interval is far narrower than the intervals of the two figures suggest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from htpsim.errors import ScenarioError
from htpsim.results.metric import Metric, missing
from htpsim.results.replications import Estimate, estimate
from htpsim.results.statistics import Interval, bootstrap_interval
from htpsim.results.summary import Summary
from htpsim.spec import Scenario


def _held(summary: Summary) -> Metric:
    held = summary.memory.get("device")
    return Metric(held.steady_bytes, 1, "bytes") if held else missing("nothing was loaded", "bytes")


def _at(path: str) -> Callable[[Summary], Metric]:
    return lambda summary: summary.metric(path)


HEADLINES: Final[dict[str, tuple[str, Callable[[Summary], Metric]]]] = {
    "overall.ttft.mean": ("TTFT mean", _at("overall.ttft.mean")),
    "overall.itl.p50": ("ITL p50", _at("overall.itl.p50")),
    "overall.itl.p99": ("ITL p99", _at("overall.itl.p99")),
    "overall.vit.mean": ("ViT mean", _at("overall.vit.mean")),
    "overall.tokens_per_s": ("tokens/s", _at("overall.tokens_per_s")),
    "memory.device.steady_bytes": ("memory", _held),
}
"""Path in a summary -> words for it and how to read it: what an answer is given in."""


@dataclass(frozen=True, slots=True)
class Change:
    """How a variant differs from the first one in one figure, as a share of it."""

    estimate: Estimate
    """mean over replications and half-width of its 95 % interval"""
    identical: bool
    """whether the two figures are equal in every replication"""
    bootstrap: Interval | None = None
    """95 % interval by the bootstrap, which takes no shape for granted; None below five replications"""

    @property
    def clear(self) -> bool | None:
        """Whether the interval leaves out zero; None where one replication, or no figure, cannot tell."""
        if self.estimate.mean is None or self.estimate.half_width is None:
            return None
        return not self.identical and abs(self.estimate.mean) > self.estimate.half_width


def refuse_unpaired(scenarios: Mapping[str, Scenario]) -> None:
    """Complain of variants whose replications do not pair off with those of the first: other draws, or another number.

    Parameters
    ----------
    scenarios
        By the name of the variant.

    Raises
    ------
    ScenarioError
        One line for each key that differs.
    """
    (name, first), *others = [(name, scenario.run) for name, scenario in scenarios.items()]
    faults = [
        f"variants.{other}.run.{key}: got {mine}, expected {wanted} as in '{name}': replications are compared in pairs"
        for other, run in others
        for key, mine, wanted in (
            ("replications", run.replications, first.replications),
            ("seed", run.seed, first.seed),
        )
        if mine != wanted
    ]
    if faults:
        raise ScenarioError(*faults)


def change(first: Sequence[Summary], other: Sequence[Summary], pick: Callable[[Summary], Metric]) -> Change:
    """Return the change of one figure from `first` to `other`, whose replications pair off in their order."""
    pairs = [(pick(a), pick(b)) for a, b in zip(first, other, strict=True)]
    identical = all(a.value is not None and a.value == b.value for a, b in pairs)
    shares = [_share(a, b) for a, b in pairs]
    values = [share.value for share in shares if share.value is not None]
    return Change(estimate(shares), identical, bootstrap_interval(values) if len(values) == len(shares) else None)


def _share(first: Metric, other: Metric) -> Metric:
    if first.value is None or other.value is None:
        return missing(first.why if first.value is None else other.why, "share")
    if not first.value:
        return Metric(0.0, 1, "share") if not other.value else missing("the first variant has 0", "share")
    return Metric((other.value - first.value) / first.value, 1, "share")
