"""Which assumption moves an answer, and which turns it round: every assumed parameter over its range, one at a time.

The parameters, their ranges and their marks are those that the specification declares (`htpsim.spec.param`); nothing is
listed here. Each is tried in shorter runs on the same draws as the configured one. Where a number turns the sign of a
difference round, halving the range says from which value on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from htpsim.errors import ScenarioError, unknown_name
from htpsim.experiments.change import refuse_unpaired
from htpsim.experiments.runner import Progress, Task, run_tasks
from htpsim.experiments.sign_grid import METRICS, REPLICATIONS, Difference, difference_of, shortened_ns
from htpsim.experiments.sweep.work import absent
from htpsim.experiments.tidy import html_table
from htpsim.results.summary import Summary
from htpsim.scenario import ScenarioFile, load
from htpsim.scenario.keys import toml_key
from htpsim.scenario.quantities import write
from htpsim.spec import Scenario, parameters

if TYPE_CHECKING:
    import pandas as pd

CONFIGURED: Final = ""
"""The value of a setting that changes nothing."""
COLUMNS: Final = {
    "key": "parameter that was changed, as a key of the scenario",
    "value": "what it was changed to",
    "mark": "what its default rests on",
    "variant": "variant that is compared with the first",
    "metric": "which figure",
    "configured": "difference from the first variant as configured, as a share of the first's figure",
    "changed": "the same with the value changed",
    "move": "changed - configured",
    "flips": "whether the sign turns round",
}
"""Columns of the table of effects."""
HALVINGS: Final = 5
"""Steps in which the value that turns a sign round is searched: to a thirty-second of the range."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One parameter at one other value."""

    key: str
    """as in a scenario file; "" as configured"""
    value: str
    """as in a scenario file"""
    mark: str = ""
    text: str = ""
    """what the parameter means, and why its default"""
    number: int | float | None = None
    """the value as the specification holds it, where it is a number with a unit"""
    unit: str = ""

    @property
    def assignment(self) -> list[str]:
        """The assignment that makes it so."""
        return [f"{self.key}={self.value}"] if self.key else []

    def __str__(self) -> str:
        return f"{self.key} = {self.value.strip(chr(34))}" if self.key else "as configured"


@dataclass(frozen=True, slots=True)
class Effect:
    """What one setting does to one metric of one variant."""

    setting: Setting
    variant: str
    metric: str
    configured: Difference
    changed: Difference
    """of the metric from the first variant; of a single scenario, from the configured run"""

    @property
    def move(self) -> float | None:
        """By how much the difference moves, as a share of the first variant's figure."""
        if self.changed.share is None or self.configured.share is None:
            return None
        return self.changed.share - self.configured.share

    @property
    def flips(self) -> bool:
        """Whether better becomes worse, or worse better."""
        return self.configured.sign * self.changed.sign < 0


@dataclass(frozen=True, slots=True)
class Threshold:
    """Between which two values of a number a sign turns round."""

    key: str
    variant: str
    metric: str
    keeps: str
    """last value tried at which it has not turned, though the difference may be too small to tell"""
    turns: str
    """first value tried at which it has"""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What every assumption does to every answer."""

    title: str
    first: str
    """what the others are compared with; "" for a single scenario, which is compared with itself as configured"""
    variants: tuple[str, ...]
    effects: tuple[Effect, ...]
    refused: dict[str, str]
    """setting -> why the scenario cannot be run so"""
    thresholds: tuple[Threshold, ...]
    duration_ns: int
    replications: int

    def of(self, metric: str, variant: str) -> list[Effect]:
        """Return the effects on one answer, the strongest first."""
        mine = [e for e in self.effects if (e.metric, e.variant) == (metric, variant) and e.move is not None]
        return sorted(mine, key=lambda e: (-abs(e.move or 0.0), str(e.setting)))

    def flips(self) -> list[Effect]:
        """Return what turns an answer round."""
        return [effect for effect in self.effects if effect.flips]

    def to_dataframe(self) -> pd.DataFrame:
        """Return a row an effect; configured, changed and move are shares of the first variant's figure."""
        import pandas as pd

        rows = [
            (e.setting.key, e.setting.value.strip('"'), e.setting.mark, e.variant, e.metric, e.configured.share,
             e.changed.share, e.move, e.flips)
            for e in self.effects
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def __repr__(self) -> str:
        keys = len({effect.setting.key for effect in self.effects})
        return f"<Sensitivity of {self.title!r}: {keys} parameters, {len(self.flips())} signs turn round>"

    def _repr_html_(self) -> str:
        rows = [
            [str(e.setting), e.variant, e.metric, *(f"{100 * x:+.1f} %" if x is not None else "" for x in
             (e.configured.share, e.changed.share)), "turns round" if e.flips else ""]
            for variant in self.variants for metric in METRICS for e in self.of(metric, variant)[:5]
        ]  # fmt: skip
        return html_table(self.title, ["", "variant", "metric", "configured", "so", ""], rows)


def settings_of(scenario: Scenario) -> Iterator[Setting]:
    """Yield every other value worth trying of every parameter that has some, as a scenario file writes it.

    >>> [str(s) for s in settings_of(Scenario()) if s.key == "guard.slots_per"]
    ['guard.slots_per = core']
    """
    seen: set[tuple[str, str]] = set()
    models = {m.name: m for i in scenario.instances for m in (i.vit, i.llm) if m}
    models |= {client.model.name: client.model for client in scenario.clients}
    owners: list[tuple[str, Any]] = [(part, getattr(scenario, part)) for part in ("device", "guard", "registry")]
    owners += [(f"models.{name}", model) for name, model in models.items()]
    for prefix, owner in owners:
        for name, facts, value in parameters(owner, prefix):
            for other in facts.vary:
                key, text = toml_key(name, facts.unit), _written(other, facts.unit)
                own = name.count(".") == prefix.count(".") + 1
                if own and other != value and (key, text) not in seen:
                    seen.add((key, text))
                    number = other if isinstance(other, int | float) and not isinstance(other, bool) else None
                    yield Setting(key, text, facts.mark, facts.text, number, facts.unit)


def _written(value: object, unit: str) -> str:
    """Write a value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and unit:
        written = write(value, unit)
        return f'"{written}"' if isinstance(written, str) else str(written)
    return f'"{value}"' if isinstance(value, str) else str(value)


def sensitivity(
    path_or_name: str | os.PathLike[str],
    *,
    variants: Sequence[str] | None = None,
    case: str | None = None,
    options: Sequence[str] = (),
    set_values: Sequence[str] = (),
    only: Sequence[str] = (),
    workers: int | None = None,
    progress: Progress | None = None,
) -> Sensitivity:
    """Vary every parameter that is not known, one at a time.

    Parameters
    ----------
    path_or_name
        A scenario file, or the name of a shipped one.
    variants
        The first is what the others are compared with; by default the first of the file and the next whose figures
        differ from its. One alone, or a file without any, is compared with itself as configured.
    case, options, set_values
        As in `run`, throughout.
    only
        Keys to vary, such as "guard.slots"; all by default.
    workers
        Processes to use; the results do not depend on it.
    progress
        Told how far it is.

    Raises
    ------
    ScenarioError
        When the file or a name is wrong; one line a problem.

    Examples
    --------
    >>> found = sensitivity("vit_migration", only=["guard.slots"], set_values=["run.duration=20s"], workers=1)
    >>> sorted({str(effect.setting) for effect in found.effects})
    ['guard.slots = 1', 'guard.slots = 2']
    """
    file = load(path_or_name, set_values=set_values)
    lab = _Lab(file, tuple(file.variants if variants is None else variants), case, tuple(options), workers, progress)
    if variants is None and len(file.variants) > 2:
        lab = replace(lab, variants=lab.two_apart())
    chosen = lab.variants
    base = lab.scenario(chosen[0] if chosen else None, Setting("", CONFIGURED))
    refuse_unpaired({name: lab.scenario(name, Setting("", CONFIGURED)) for name in chosen} or {"": base})
    wanted = list(settings_of(base))
    known = {setting.key for setting in wanted}
    faults = [unknown_name("--only", key, known) for key in only if key not in known]
    if faults:
        raise ScenarioError(*faults)
    return lab.ask([setting for setting in wanted if not only or setting.key in only])


@dataclass(frozen=True, slots=True)
class _Lab:
    """Runs settings and compares them."""

    file: ScenarioFile
    variants: tuple[str, ...]
    case: str | None
    options: tuple[str, ...]
    workers: int | None
    progress: Progress | None

    def scenario(self, variant: str | None, setting: Setting) -> Scenario:
        """Return a variant under a setting, shortened."""
        full = self.file.resolve(variant, self.case, self.options, setting.assignment).scenario
        run = full.run
        few = min(REPLICATIONS, run.replications)
        return replace(full, run=replace(run, duration_ns=shortened_ns(run.duration_ns), replications=few))

    def two_apart(self) -> tuple[str, str]:
        """Return the first variant and the next that differs from it as configured; the second where none does."""
        configured = Setting("", CONFIGURED)
        found, _ = replace(self, progress=None).run([configured])
        first, *others = self.variants
        runs = {variant: found.get((str(configured), variant), []) for variant in self.variants}
        for other in others:
            paired = len(runs[other]) == len(runs[first])
            if paired and any(difference_of(runs[first], runs[other], metric).sign for metric in METRICS):
                return first, other
        return first, others[0]

    def run(self, settings: Sequence[Setting]) -> tuple[dict[tuple[str, str], list[Summary]], dict[str, str]]:
        """Return summaries by (setting, variant), and the settings that cannot be run."""
        tasks, refused = [], {}
        for setting in settings:
            try:
                mine = [(variant, self.scenario(variant or None, setting)) for variant in self.variants or ("",)]
            except ScenarioError as error:
                refused[str(setting)] = error.problems[0]
                continue
            tasks += [
                Task((str(setting), variant), one, r) for variant, one in mine for r in range(one.run.replications)
            ]
        found: dict[tuple[str, str], list[Summary]] = {}
        for outcome in run_tasks(tasks, self.workers, self.progress):
            setting_name, variant = outcome.key
            found.setdefault((setting_name, variant), []).append(outcome.summary)
        return found, refused

    def ask(self, settings: Sequence[Setting]) -> Sensitivity:
        """Return the effects of all settings, and where numbers turn a sign round."""
        configured = Setting("", CONFIGURED)
        found, refused = self.run([configured, *settings])
        refused |= self._left_out(found, settings)
        tried = [setting for setting in settings if str(setting) not in refused]
        effects = tuple(effect for setting in tried for effect in self._effects(found, configured, setting))
        base = self.scenario(self.variants[0] if self.variants else None, configured)
        thresholds = tuple(self._thresholds(effects, base))
        alone = len(self.variants) < 2
        return Sensitivity(
            self.file.title, "" if alone else self.variants[0], self.variants[1:] or self.variants or ("",), effects,
            refused, thresholds, base.run.duration_ns, base.run.replications,
        )  # fmt: skip

    def _left_out(self, found: dict[tuple[str, str], list[Summary]], settings: Sequence[Setting]) -> dict[str, str]:
        """Return the settings under which somebody does not start who does as configured, or the reverse.

        The figures of fewer instances are no effect of the setting on those there were.
        """
        left_out = {}
        for setting in settings:
            for variant in self.variants or ("",):
                before, after = (found.get((str(s), variant), []) for s in (Setting("", CONFIGURED), setting))
                for one, other in zip(before, after, strict=False):
                    if one.failed.keys() != other.failed.keys():
                        left_out[str(setting)] = absent(other) or f"as configured, {absent(one)}"
        return left_out

    def _effects(
        self, found: dict[tuple[str, str], list[Summary]], configured: Setting, setting: Setting
    ) -> Iterator[Effect]:
        """Yield what a setting does: to differences between variants, or to the one scenario there is."""
        first, *others = self.variants or ("",)
        for metric in METRICS:
            if not others:
                none = Difference((0.0,) * len(found[str(configured), first]))
                moved = difference_of(found[str(configured), first], found[str(setting), first], metric)
                yield Effect(setting, first, metric, none, moved)
            for variant in others:
                before, after = (
                    difference_of(found[str(s), first], found[str(s), variant], metric) for s in (configured, setting)
                )
                yield Effect(setting, variant, metric, before, after)

    def _thresholds(self, effects: Sequence[Effect], base: Scenario) -> Iterator[Threshold]:
        """Yield where a number turns a sign round."""
        values = {toml_key(name, facts.unit): value for part in ("device", "guard", "registry")
                  for name, facts, value in parameters(getattr(base, part), part)}  # fmt: skip
        for effect in effects:
            number, start = effect.setting.number, values.get(effect.setting.key)
            if effect.flips and isinstance(number, int) and effect.setting.unit and isinstance(start, int):
                yield self._threshold(effect, start, number)

    def _threshold(self, effect: Effect, keeps: int, turns: int) -> Threshold:
        """Halve the stretch between a value that keeps the sign and one that turns it."""
        setting = effect.setting

        def sign(value: int) -> int:
            tried = replace(setting, value=_written(value, setting.unit))
            found, _ = self.run([tried])
            first, other = (found.get((str(tried), variant), []) for variant in (self.variants[0], effect.variant))
            return difference_of(first, other, effect.metric).sign

        for _ in range(HALVINGS):
            middle = (keeps + turns) // 2
            if middle in (keeps, turns):
                break
            if sign(middle) * effect.configured.sign < 0:
                turns = middle
            else:
                keeps = middle
        written = [_written(value, setting.unit).strip('"') for value in (keeps, turns)]
        return Threshold(setting.key, effect.variant, effect.metric, *written)
