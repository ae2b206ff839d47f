"""What `htpsim.run`, `compare`, `sensitivity` and `tune` give in Python: results that plot and explore themselves.

Each function is the one of `htpsim.experiments`, signature and all. In a notebook it shows how far it is. What it
returns has `.plot`, with the functions of `htpsim.plot` that suit it, and where there is a file, `.explore()`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial, update_wrapper, wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from htpsim.errors import HtpsimError
from htpsim.experiments import compare as _compare
from htpsim.experiments import sensitivity as _sensitivity
from htpsim.experiments import single as _single
from htpsim.experiments import sweep as _sweep
from htpsim.experiments import tune as _tune
from htpsim.report import plot
from htpsim.report.explore import LENGTH, Explorer
from htpsim.report.notebook import telling
from htpsim.report.panel import Panel
from htpsim.report.picture import Picture

Given = ParamSpec("Given")
Of = TypeVar("Of")
Result = TypeVar("Result")
Shown = TypeVar("Shown")


class _Drawing(Generic[Given]):
    """A function of `htpsim.plot` as a method of what is drawn."""

    def __init__(self, draw: Callable[Concatenate[Any, Given], Picture]) -> None:
        self.draw = draw

    def __get__(self, plots: Plots, owner: type[Plots]) -> Callable[Given, Picture]:
        made = update_wrapper(partial(self.draw, plots._of), self.draw)
        del made.__wrapped__  # its signature is without what is drawn
        return made


class Plots:
    """The plots of one result."""

    def __init__(self, of: Any) -> None:
        self._of = of


class RunPlots(Plots):
    """The plots of a run or a comparison."""

    gantt = _Drawing(plot.gantt)
    policy_timeline = _Drawing(plot.policy_timeline)
    memory = _Drawing(plot.memory)
    ecdf = _Drawing(plot.ecdf)
    shares = _Drawing(plot.shares)
    blame = _Drawing(plot.blame)


class SensitivityPlots(Plots):
    """The plots of a sensitivity."""

    tornado = _Drawing(plot.tornado)


class TunedPlots(Plots):
    """The plots of what was tuned."""

    pareto = _Drawing(plot.pareto)


class Comparison(_compare.Comparison):
    """A comparison that plots and explores itself."""

    __slots__ = ()

    @property
    def plot(self) -> RunPlots:
        """Its plots: ``comparison.plot.gantt(variant="genie")``."""
        return RunPlots(self)

    def explore(self, *vary: str, case: str | None = None, length: str = LENGTH) -> Panel:
        """Show sliders that simulate the variants anew at every move; needs the extra `notebook`.

        Parameters
        ----------
        vary
            What to turn, as in `sweep`: "guard.slots=1,2,4", "device.evict=0us..400us"; by default the weights, the
            guard's policy and slots, and the parts of the ViT.
        case
            Of the comparison; by default its first.
        length
            Measured time of an answer.

        Raises
        ------
        HtpsimError
            When ipywidgets is not installed, or something in `vary` is wrong.
        """
        chosen = next(iter(self.cases)) if case is None else case
        variants = [name for name in self.variants if name in self.file.variants]
        known = chosen if chosen in self.file.cases or case is not None else None
        return Panel(
            Explorer.over(self.file, variants=variants, case=known, options=self.options, vary=vary, length=length)
        )


class Single(_single.Single):
    """A run that plots and explores itself."""

    __slots__ = ()

    @property
    def plot(self) -> RunPlots:
        """Its plots: ``single.plot.memory()``."""
        return RunPlots(self)

    def explore(self, *vary: str, length: str = LENGTH) -> Panel:
        """Show sliders that simulate it anew at every move; parameters as of `Comparison.explore`.

        Raises
        ------
        HtpsimError
            When ipywidgets is not installed, it came from no file, or something in `vary` is wrong.
        """
        if self.file is None:
            raise HtpsimError("explore: got a scenario made in Python, expected one that was run from a file")
        variants = [self.variant] if self.variant else []
        return Panel(
            Explorer.over(self.file, variants=variants, case=self.case, options=self.options, vary=vary, length=length)
        )


class Sensitivity(_sensitivity.Sensitivity):
    """A sensitivity that plots itself."""

    __slots__ = ()

    @property
    def plot(self) -> SensitivityPlots:
        """Its plots: ``found.plot.tornado("overall.itl.p99")``."""
        return SensitivityPlots(self)


class Tuned(_tune.Tuned):
    """What was tuned, plotting itself."""

    __slots__ = ()

    @property
    def plot(self) -> TunedPlots:
        """Its plots: ``tuned.plot.pareto()``."""
        return TunedPlots(self)


def _showing(call: Callable[Given, Result], made: type[Shown]) -> Callable[Given, Shown]:
    """Return a function that does the same, shows its progress in a notebook, and returns a `made`."""
    told = telling(call)

    @wraps(call)
    def shown(*args: Given.args, **kwargs: Given.kwargs) -> Shown:
        found = told(*args, **kwargs)
        return made(*(getattr(found, field.name) for field in fields(found) if field.init))  # type: ignore[arg-type]

    return shown


run = _showing(_single.run_one, Single)
compare = _showing(_compare.compare, Comparison)
sensitivity = _showing(_sensitivity.sensitivity, Sensitivity)
tune = _showing(_tune.tune, Tuned)
sweep = telling(_sweep.sweep)

__all__: Sequence[str] = [
    "Comparison",
    "Sensitivity",
    "Single",
    "Tuned",
    "compare",
    "run",
    "sensitivity",
    "sweep",
    "tune",
]
