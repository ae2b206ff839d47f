"""What a sweep is: the file, its points, replications and figures, and by what one tells it from another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

from htpsim.errors import ScenarioError
from htpsim.experiments.sweep.axes import CHOICES, Axis, Point
from htpsim.scenario import ResolvedScenario, ScenarioFile
from htpsim.scenario.quantities import write


@dataclass(frozen=True, slots=True)
class Run:
    """One replication of one point."""

    point: int
    replication: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """A sweep, before anything is run."""

    file: ScenarioFile
    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    replications: int
    metrics: tuple[str, ...]
    """dotted paths in a summary"""
    variant: str | None = None
    case: str | None = None
    options: tuple[str, ...] = ()

    def without_points(self) -> SweepPlan:
        """Return what a worker needs: everything but the points, of which it is given some."""
        return replace(self, points=())

    def resolve(self, point: Point) -> ResolvedScenario:
        """Return the scenario of a point.

        Raises
        ------
        ScenarioError
            When the values do not go together.
        """
        return self.resolve_values(dict(zip([axis.key for axis in self.axes], point, strict=True)))

    def resolve_values(self, values: dict[str, str]) -> ResolvedScenario:
        """Return the scenario with these values of its keys."""
        variant, case = values.get("variant", self.variant), values.get("case", self.case)
        options = [*self.options, *([values["option"]] if "option" in values else [])]
        settings = [f"{key}={value}" for key, value in values.items() if key not in CHOICES]
        return self.file.resolve(variant, case, options, settings)

    def refuse_unfit(self) -> None:
        """Try every value of a list and both ends of a range, and tell all that fail.

        One that fails alone may need another axis beside it, so it is tried with the first values of the others too.

        Raises
        ------
        ScenarioError
            One line for each problem.
        """
        problems: list[str] = []
        first = {axis.key: axis.at(0.0) for axis in self.axes}
        for axis in self.axes:
            for value in axis.values or (axis.at(0.0), axis.at(1.0)):
                alone = self._faults({axis.key: value})
                if alone and self._faults({**first, axis.key: value}):
                    problems += alone
        if problems:
            raise ScenarioError(*dict.fromkeys(problems))

    def _faults(self, values: dict[str, str]) -> tuple[str, ...]:
        try:
            self.resolve_values(values)
        except ScenarioError as error:
            return error.problems
        return ()

    def described(self) -> dict[str, Any]:
        """Return what decides the results, in plain values."""
        chosen = [i for i, axis in enumerate(self.axes) if axis.key in CHOICES]
        bases = {tuple(point[i] for i in chosen): {self.axes[i].key: point[i] for i in chosen} for point in self.points}
        resolved = {key: self.resolve_values(values) for key, values in bases.items()}
        run = next(iter(resolved.values())).scenario.run
        return {
            "version": metadata.version("htpsim"),
            "scenario": self.file.path.name,
            "content": _digest([[key, one.to_toml_dict()] for key, one in sorted(resolved.items())]),
            "variant": self.variant,
            "case": self.case,
            "options": list(self.options),
            "axes": [axis.key for axis in self.axes],
            "points": len(self.points),
            "values": _digest(list(self.points)),
            "replications": self.replications,
            "duration": str(write(run.duration_ns, "ns")),
            "seed": run.seed,
            "metrics": list(self.metrics),
        }


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def all_runs(points: int, replications: int) -> Sequence[Run]:
    """Return every run, replication by replication, so that an interrupted sweep has looked everywhere once.

    >>> [(run.point, run.replication) for run in all_runs(2, 2)]
    [(0, 0), (1, 0), (0, 1), (1, 1)]
    """
    return [Run(point, replication) for replication in range(replications) for point in range(points)]
