"""How plots look: colours that the colour-blind can tell apart, type that reads from the back of a room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OKABE_ITO: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6D1F")
"""Okabe and Ito's palette, its yellow darkened so that it shows on white."""
LINES: Final = ("-", "--", "-.", ":")
GUARD_WAIT: Final = "#D9D9D9"
DEVICE_WAIT: Final = "#7F7F7F"
EVICTED: Final = "#111111"
INK: Final = "#222222"
FAINT: Final = "#8A8A8A"
SLIDE: Final = (12.8, 7.2)
"""Inches: 16 to 9."""
DPI: Final = 150
RASTER_FROM: Final = 2000
"""Shapes from which a drawing is rasterised, so that a vector file stays small."""

_RC: Final[Any] = {
    "font.size": 14,
    "font.family": "DejaVu Sans",
    "axes.titlesize": 16,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 14,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": "#E6E6E6",
    "legend.frameon": True,
    "legend.facecolor": "white",
    "legend.edgecolor": "none",
    "legend.framealpha": 0.9,
    "legend.fontsize": 13,
    "lines.linewidth": 2.2,
    "hatch.linewidth": 1.0,
    "figure.constrained_layout.h_pad": 0.15,
    "figure.constrained_layout.w_pad": 0.15,
    "svg.hashsalt": "htpsim",
}


def colour(index: int) -> str:
    """Return the colour of a client or variant by its index.

    >>> colour(0), colour(7) == colour(0)
    ('#0072B2', True)
    """
    return OKABE_ITO[index % len(OKABE_ITO)]


def line(index: int) -> str:
    """Return the line style by index, so that lines on top of each other both show.

    >>> line(0), line(1)
    ('-', '--')
    """
    return LINES[index % len(LINES)]


def lighter(hex_colour: str, part: float) -> tuple[float, float, float]:
    """Mix a colour with white; `part` 1 keeps it, 0 is white.

    >>> lighter("#000000", 0.25)
    (0.75, 0.75, 0.75)
    """
    r, g, b = (int(hex_colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return 1 - part * (1 - r), 1 - part * (1 - g), 1 - part * (1 - b)


@contextmanager
def styled() -> Iterator[None]:
    """Have the type, colours and widths of the report in force."""
    import matplotlib as mpl

    with mpl.rc_context(_RC):
        yield


def new_figure(size: tuple[float, float]) -> Figure:
    """Return a figure that no window and no pyplot knows of.

    Parameters
    ----------
    size
        Width and height [inches].
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


@contextmanager
def slide(path: str | Path, *, rows: int = 1, columns: int = 1, heights: Sequence[float] = ()) -> Iterator[list[Axes]]:
    """Give the axes of a figure the size of a slide, and save it to `path` on leaving.

    Parameters
    ----------
    path
        File to write; its ending decides the format.
    rows, columns
        How many axes.
    heights
        Relative heights of the rows.
    """
    with styled():
        figure = new_figure(SLIDE)
        grid = {"height_ratios": list(heights)} if heights else None
        axes = figure.subplots(rows, columns, squeeze=False, gridspec_kw=grid)
        yield [ax for row in axes for ax in row]
        save(figure, Path(path))


def save(figure: Figure, path: Path) -> None:
    """Save without a date or a version in the file, so that the same plot is the same bytes."""
    metadata: dict[str, Any] = {".png": {"Software": None}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
    figure.savefig(path, metadata=metadata.get(path.suffix))
