"""Sliders in a notebook, with a table and a plot that follow them; needs ipywidgets (extra `notebook`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from htpsim.errors import HtpsimError
from htpsim.experiments.change import HEADLINES
from htpsim.experiments.tidy import html_table
from htpsim.report import plots
from htpsim.report.explore import CONFIGURED, Answer, Explorer, Knob
from htpsim.report.picture import Picture
from htpsim.report.verdict import percent
from htpsim.results.metric import Metric
from htpsim.scenario.quantities import write

if TYPE_CHECKING:
    from ipywidgets import VBox


class Panel:
    """Knobs, a table that follows them, and a plot of the time between tokens."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.widgets = _widgets()
        self.controls = {knob.label or knob.key: self._control(knob) for knob in explorer.knobs}
        self.table, self.plot, self.said = self.widgets.HTML(), self.widgets.Image(format="png"), self.widgets.HTML()
        self.first = explorer.ask({})
        for control in self.controls.values():
            control.observe(lambda _: self.update(), names="value")
        self.update()

    @property
    def positions(self) -> dict[str, str]:
        """Where the knobs stand."""
        return {name: str(control.value) for name, control in self.controls.items()}

    def update(self) -> None:
        """Ask anew and show what comes of it; what cannot be run is said in its place."""
        try:
            answer = self.explorer.ask(self.positions)
        except HtpsimError as error:
            self.said.value = html_table("cannot be run", ["", ""], [["", line] for line in str(error).splitlines()])
            self.table.value, self.plot.layout.display = "", "none"  # those of another position would mislead
            return
        self.table.value = answer_table(answer, self.first)
        self.said.value = f"<small>{_how(self.explorer, answer)}</small>"
        self.plot.value, self.plot.layout.display = _itl(answer)._repr_png_(), None

    def box(self) -> VBox:
        """Return the widget that shows everything."""
        made: VBox = self.widgets.VBox([*self.controls.values(), self.table, self.said, self.plot])
        return made

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display(self.box())  # type: ignore[no-untyped-call]

    def _control(self, knob: Knob) -> Any:
        label = knob.label or knob.key
        if knob.member is not None:
            made = sorted(knob.values, key=int)
            return self._slider(made, knob.values[0], label)
        if knob.ordered:
            return self._slider(list(knob.values), CONFIGURED, label)
        return self.widgets.Dropdown(options=list(knob.values), value=CONFIGURED, description=label,
                                     style={"description_width": "14em"}, layout={"width": "40em"})  # fmt: skip

    def _slider(self, values: list[str], value: str, label: str) -> Any:
        return self.widgets.SelectionSlider(
            options=values, value=value, description=label, continuous_update=False,
            style={"description_width": "14em"}, layout={"width": "40em"},
        )  # fmt: skip


def _widgets() -> Any:
    try:
        import ipywidgets
    except ImportError:
        raise HtpsimError("explore: needs ipywidgets, which the extra 'notebook' brings: "
                          "pip install 'htpsim[notebook]'") from None  # fmt: skip
    return ipywidgets


def answer_table(answer: Answer, first: Answer) -> str:
    """Return the headline figures of an answer as an HTML table, each with its change from the first answer."""
    rows = []
    for name, summary in answer.summaries.items():
        before = first.summaries[name]
        rows.append([name, *(_cell(pick(summary), pick(before)) for _, pick in HEADLINES.values())])
    return html_table("", ["", *(words for words, _ in HEADLINES.values())], rows)


def _cell(now: Metric, before: Metric) -> str:
    if now.value is None or not before.value or now.value == before.value:
        return str(now)
    return f"{now} ({percent(now.value / before.value - 1)} %)"


def _how(explorer: Explorer, answer: Answer) -> str:
    length = write(explorer.length_ns, "ns")
    said = f"{length} simulated once, {answer.engine} engine, {answer.seconds:.2f} s"
    return f"{said}; in brackets the change from {CONFIGURED}"


def _itl(answer: Answer) -> Picture:
    picture = Picture()
    with picture.style():
        series = {name: result.samples("itl")["value_ns"].to_numpy() for name, result in answer.results.items()}
        plots.ecdf(picture.ax, series, "ITL", tail=True, log=True)
    return picture
