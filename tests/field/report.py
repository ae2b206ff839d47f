"""One published report, what of it htpsim gives, and what must come out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from htpsim.results.run import RunResult
from htpsim.results.summary import Summary
from htpsim.scenario import ScenarioFile, load
from htpsim.sim import simulate
from tests.scenarios.support import SCENARIOS, number

Kind = Literal["fitted", "predicted"]


@cache
def loaded(scenario: str, settings: tuple[str, ...] = ()) -> ScenarioFile:
    """Load a file of scenarios/field once."""
    return load(SCENARIOS / "field" / f"{scenario}.toml", set_values=settings)


@cache
def result(scenario: str, variant: str | None, settings: tuple[str, ...]) -> RunResult:
    """Run one variant once, its state machines validated after every action."""
    return RunResult(simulate(loaded(scenario, settings).resolve(variant).scenario, check=True))


@dataclass(frozen=True, slots=True)
class Runs:
    """The variants of one scenario, each run when it is first asked for."""

    scenario: str
    settings: tuple[str, ...] = ()

    def __call__(self, variant: str) -> Summary:
        return result(self.scenario, variant, self.settings).summary()

    def number(self, variant: str, path: str) -> float:
        """Return a metric that must have a value."""
        return number(self(variant), path)

    def ms(self, variant: str, path: str) -> float:
        """Return a time in milliseconds."""
        return self.number(variant, path) / 1e6

    def s(self, variant: str, path: str) -> float:
        """Return a time in seconds."""
        return self.number(variant, path) / 1e9

    def rate(self, variant: str, client: str, statistic: str = "mean") -> float:
        """Return the tokens a second of a client while it decodes: 1 / its time between tokens."""
        return 1 / self.s(variant, f"clients.{client}.itl.{statistic}")

    def busy(self, variant: str) -> float:
        """Return for how many percent of the time the only core is busy."""
        return 100 * self.number(variant, "cores.core 0.utilisation")

    def jobs_ms(self, variant: str) -> list[float]:
        """Return what each job took, in their order."""
        found = result(self.scenario, variant, self.settings).samples("job")
        return (found["value_ns"] / 1e6).tolist()

    def held_gb(self, variant: str, ledger: str) -> float:
        """Return what a ledger holds at the end, in GB."""
        return self(variant).memory[ledger].steady_bytes / 1e9

    def peak_gb(self, variant: str, ledger: str) -> float:
        """Return the most that a ledger ever held, in GB."""
        return self(variant).memory[ledger].peak_bytes / 1e9

    def loads(self, variant: str, role: str, model: str = "") -> int:
        """Return how many loads ended in a role, such as "owner", "unloaded" or "failed"."""
        return sum(load.role == role and model in {"", load.model} for load in self(variant).loads)

    def failed(self, variant: str) -> str:
        """Return who did not start, in order, or "all load"."""
        return ", ".join(f"{name} fails" for name in self(variant).failed) or "all load"

    def why(self, variant: str, client: str, *words: str) -> str:
        """Return those of `words` that the message of a failed load has, in their order."""
        message = self(variant).failed[client]
        return ", ".join(word for word in words if word in message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of a report."""

    what: str
    """What was measured."""
    published: float | str | None = None
    """None where the report has no number for it."""
    said: Callable[[Runs], float | str]
    """What htpsim says, from its runs."""
    answer: float | str
    """What it must say, by arithmetic from what the scenario states."""
    exact: float = 1e-9
    """How close to `answer` it must be; the default leaves room for the last digits of a float."""
    within: float = 0.0
    """How far off the published number it may be, as a share of that."""
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One report of the field and the scenario that rebuilds it."""

    number: str
    scenario: str
    source: str
    """Where it was published; the second line of the scenario file begins with it."""
    remark: str = ""
    """What a reader of the table should know."""
    settings: tuple[str, ...] = ()
    """What is set for the test, to keep it short."""
    figures: tuple[Figure, ...]

    @property
    def runs(self) -> Runs:
        return Runs(self.scenario, self.settings)
