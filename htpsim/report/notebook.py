"""How far it is, in a notebook: one line under the cell, which goes when it is done."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from html import escape
from inspect import signature
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


def telling(call: Callable[Given, Result]) -> Callable[Given, Result]:
    """Return a function that does the same, and shows its progress in a notebook unless told to tell another."""

    @wraps(call)
    def told(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        given = signature(call).bind(*args, **kwargs)
        if given.arguments.get("progress") is not None or not _in_notebook():
            return call(*args, **kwargs)
        with _Bar(call.__name__.removesuffix("_one")) as bar:
            return call(*args, **{**kwargs, "progress": bar})  # type: ignore[arg-type]

    return told


class _Bar:
    """One line under a cell that says how far it is, and goes when it is done."""

    def __init__(self, title: str) -> None:
        from IPython.display import display

        self.title = title
        self.handle = display(self._line(0, 0, ""), display_id=True)  # type: ignore[no-untyped-call]

    def __enter__(self) -> _Bar:
        return self

    def __call__(self, done: float, total: int, what: str) -> None:
        self.handle.update(self._line(done, total, what))

    def __exit__(self, *fault: object) -> None:
        self.handle.update(_Line("", ""))

    def _line(self, done: float, total: int, what: str) -> _Line:
        text = f"{self.title} {int(done)} of {total}: {what}" if total else f"{self.title} ..."
        bar = f"<progress value='{done:.3f}' max='{max(total, 1)}'></progress> "
        return _Line(text, bar)


class _Line:
    """A line of progress, in words and with a bar."""

    def __init__(self, text: str, bar: str) -> None:
        self.text, self.bar = text, bar

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"{self.bar}<small>{escape(self.text)}</small>" if self.text else ""


def _in_notebook() -> bool:
    """Tell whether a notebook's kernel runs this; IPython is asked only where somebody has loaded it."""
    shell = sys.modules.get("IPython")
    found = shell.get_ipython() if shell is not None else None
    return found is not None and type(found).__name__ == "ZMQInteractiveShell"
