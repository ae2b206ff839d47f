"""A figure that shows itself in a notebook, in the style of the report, and saves itself without a date in the file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from htpsim.report.style import SLIDE, new_figure, save, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NOTEBOOK_DPI: Final = 64
"""Dots per inch in a notebook: 820 pixels wide."""


class Picture:
    """One figure with one Axes.

    >>> picture = Picture()
    >>> picture.ax.get_title()
    ''
    """

    def __init__(self) -> None:
        self.figure: Figure
        self.ax: Axes
        with styled():
            self.figure = new_figure(SLIDE)
            self.ax = self.figure.subplots()

    @contextmanager
    def style(self) -> Iterator[Axes]:
        """Give the Axes, with the type and colours of the report in force."""
        with styled():
            yield self.ax

    def save(self, path: str | Path) -> Path:
        """Save at the size of a slide; the ending (.png, .svg, .pdf) decides the format.

        Returns
        -------
        Path
            The file written.
        """
        with styled():
            save(self.figure, Path(path))
        return Path(path)

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with styled():
            self.figure.savefig(buffer, format="png", dpi=NOTEBOOK_DPI, metadata={"Software": None})
        return buffer.getvalue()

    def __repr__(self) -> str:
        return f"<Picture {self.ax.get_title(loc='left') or self.ax.get_title()!r}>"
