"""What one can turn of a scenario, and what its variants come to at each position, on the same draws.

`htpsim.report.panel` shows it in a notebook; nothing here needs one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from htpsim.errors import ScenarioError, unknown_name
from htpsim.experiments.engine import at_hand, simulate
from htpsim.experiments.sweep.axes import parse_axis
from htpsim.results.run import RunResult
from htpsim.results.summary import Summary
from htpsim.scenario import ScenarioFile
from htpsim.sched import POLICIES
from htpsim.spec import Scenario
from htpsim.units import parse_time

CONFIGURED: Final = "as configured"
WEIGHTS: Final = "instances.weight"
WEIGHT_MOST: Final = 16
STEPS: Final = 21
"""Stops of a slider over a range."""
LENGTH: Final = "20s"
"""Measured time of an answer, unless told otherwise: short enough for a slider, in either engine."""


@dataclass(frozen=True, slots=True)
class Knob:
    """Something to turn: a key of the scenario and the values it takes, the first of which leaves it as it is."""

    key: str
    values: tuple[str, ...]
    member: int | None = None
    """which of the instances, for a weight; None where the key is set as a whole"""
    label: str = ""

    @property
    def ordered(self) -> bool:
        """Whether the values are numbers, so that a slider suits them."""
        return all(value.lstrip("-")[:1].isdigit() for value in self.values[1:])


@dataclass(frozen=True, slots=True)
class Answer:
    """What the variants come to at one position of the knobs."""

    results: Mapping[str, RunResult]
    engine: str
    seconds: float
    """wall-clock time that it took"""

    @property
    def summaries(self) -> dict[str, Summary]:
        """One summary a variant."""
        return {name: result.summary() for name, result in self.results.items()}


@dataclass(frozen=True, slots=True)
class Explorer:
    """A scenario file, some of its variants, and what can be turned.

    >>> from htpsim.scenario import load
    >>> explorer = Explorer.over(load("four_vlms"), vary=["guard.slots=1,2"], length="1s")
    >>> [knob.key for knob in explorer.knobs]
    ['guard.slots']
    >>> sorted(explorer.ask({"guard.slots": "1"}).results)
    ['four_vlms']
    """

    file: ScenarioFile
    variants: tuple[str, ...]
    case: str | None
    options: tuple[str, ...]
    knobs: tuple[Knob, ...]
    length_ns: int

    @classmethod
    def over(
        cls,
        file: ScenarioFile,
        *,
        variants: Sequence[str] = (),
        case: str | None = None,
        options: Sequence[str] = (),
        vary: Sequence[str] = (),
        length: str = LENGTH,
    ) -> Explorer:
        """Return an explorer.

        Parameters
        ----------
        file
            The scenario file.
        variants, case, options
            Which of those that the file offers.
        vary
            What to turn, as in `sweep`: "guard.slots=1,2,4", "device.evict=0us..400us"; by default the weights, the
            guard's policy and slots, and the parts of the ViT.
        length
            Measured time of an answer.

        Raises
        ------
        ScenarioError
            When a name, a key or a value is wrong, one line a problem.
        """
        length_ns = _length_ns(length)
        plain = cls(file, tuple(variants), case, tuple(options), (), length_ns)
        base = plain.scenario(plain.names[0], {})
        knobs = tuple(_asked(text) for text in vary) if vary else tuple(_usual(plain, base))
        made = replace(plain, knobs=knobs)
        problems = [problem for knob in knobs for problem in made.problems_of(knob)] if vary else []
        if problems:
            raise ScenarioError(*dict.fromkeys(problems))
        return made

    @property
    def names(self) -> tuple[str, ...]:
        """The variants, or the file's own name where it has none."""
        return self.variants or (self.file.path.stem,)

    def assignments(self, positions: Mapping[str, str]) -> list[str]:
        """Return the assignments that a position of the knobs makes; a knob is named by its label, or its key."""
        by_name = {knob.label or knob.key: knob for knob in self.knobs}
        faults = [unknown_name("knob", name, by_name) for name in positions if name not in by_name]
        if faults:
            raise ScenarioError(*faults)
        turned = {name: value for name, value in positions.items() if value != CONFIGURED}
        weights = [
            (knob, turned.get(name, knob.values[0])) for name, knob in by_name.items() if knob.member is not None
        ]
        made = [f"{by_name[name].key}={value}" for name, value in turned.items() if by_name[name].member is None]
        if any(value != knob.values[0] for knob, value in weights):
            made.append(f"{WEIGHTS}=[{','.join(value for _, value in weights)}]")
        return made

    def scenario(self, variant: str, positions: Mapping[str, str]) -> Scenario:
        """Return one variant at a position of the knobs, as long as an answer is."""
        name = variant if variant in self.file.variants else None
        found = self.file.resolve(name, self.case, self.options, self.assignments(positions)).scenario
        return replace(found, run=replace(found.run, duration_ns=self.length_ns, replications=1))

    def ask(self, positions: Mapping[str, str]) -> Answer:
        """Simulate every variant at a position of the knobs.

        Raises
        ------
        ScenarioError
            When the combination cannot be run.
        """
        began = time.perf_counter()
        scenarios = {name: self.scenario(name, positions) for name in self.names}
        results = {
            name: RunResult(simulate(one, engine="kernel" if at_hand(one) else "reference"))
            for name, one in scenarios.items()
        }
        for result in results.values():
            result.summary()
        engines = dict.fromkeys(result.log.engine for result in results.values())
        return Answer(results, " and ".join(engines), time.perf_counter() - began)

    def problems_of(self, knob: Knob) -> list[str]:
        """Return why values of a knob cannot be run."""
        found: list[str] = []
        for value in knob.values[1:]:
            try:
                self.scenario(self.names[0], {knob.label or knob.key: value})
            except ScenarioError as error:
                found += error.problems
        return found


def _length_ns(length: str) -> int:
    try:
        found = parse_time(length)
    except ValueError as error:
        raise ScenarioError(f"length: got '{length}', expected a time such as '20s'") from error
    if found <= 0:
        raise ScenarioError(f"length: got '{length}', expected more than nothing")
    return found


def _asked(text: str) -> Knob:
    axis = parse_axis(text)
    values = axis.grid() if axis.values or axis.steps else tuple(
        dict.fromkeys(axis.at(i / (STEPS - 1)) for i in range(STEPS))
    )  # fmt: skip
    return Knob(axis.key, (CONFIGURED, *values))


def _usual(explorer: Explorer, base: Scenario) -> list[Knob]:
    """Return the knobs that one reaches for first, as far as the scenario has them."""
    spread = [str(weight) for weight in range(1, WEIGHT_MOST + 1)]
    weights = [
        Knob(WEIGHTS, (str(one.weight), *(w for w in spread if w != str(one.weight))), i, f"weight of {one.name}")
        for i, one in enumerate(base.instances)
    ]
    others = [_asked(f"guard.policy={','.join(POLICIES)}"), _asked("guard.slots=1,2,3,4"),
              _asked("guard.slots_per=process,core")]  # fmt: skip
    models = dict.fromkeys(one.vit.name for one in base.instances if one.vit)
    others += [_asked(f"models.{name}.split=1,2,4,8") for name in models]
    made: list[Knob] = []
    if weights and not replace(explorer, knobs=tuple(weights)).problems_of(weights[0]):
        made += weights
    for knob in others:
        fit = [
            v
            for v in knob.values[1:]
            if not replace(explorer, knobs=(knob,)).problems_of(replace(knob, values=("", v)))
        ]
        if len(fit) > 1:
            made.append(replace(knob, values=(CONFIGURED, *fit)))
    return made
