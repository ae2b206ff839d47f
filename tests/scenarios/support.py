"""What the tests of the shipped scenarios share: one run of one of them, every state machine checked as it goes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import htpsim
from htpsim.results.run import RunResult
from htpsim.results.summary import Summary
from htpsim.scenario import load
from htpsim.sim import simulate

SCENARIOS = Path(htpsim.__file__).parents[1] / "scenarios"

ONE_BY_ONE = {
    "vit_legacy": "legacy",
    "vit_legacy_one_copy": "legacy_one_copy",
    "vit_genie": "genie",
    "vit_genie_registry": "genie_registry",
    "vit_legacy_llm_high": "legacy_llm_high",
    "vit_genie_split": "genie_vit_split",
}
"""File of one variant of vit_migration by itself -> that variant."""


def run(name: str, variant: str | None = None, *, set_values: Sequence[str] = (), replication: int = 0) -> RunResult:
    """Run one replication of a shipped scenario with its state machines validated after every action."""
    resolved = load(SCENARIOS / f"{name}.toml", set_values=set_values).resolve(variant)
    return RunResult(simulate(resolved.scenario, replication, check=True))


def summary(name: str, variant: str | None = None, *, set_values: Sequence[str] = ()) -> Summary:
    """Return the figures of one run of a shipped scenario."""
    return run(name, variant, set_values=set_values).summary()


def job_ms(summary: Summary, client: str, statistic: str = "mean") -> float:
    """Return a statistic of the latency of a client's jobs in milliseconds."""
    return number(summary, f"clients.{client}.job.{statistic}") / 1e6


def number(summary: Summary, path: str) -> float:
    """Return a metric that must have a value."""
    metric = summary.metric(path)
    assert metric.value is not None, metric.why
    return metric.value
