"""What a function reaches decides its digest: a file of compiled code must not outlive what it was compiled from."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from htpsim.kernel.binding import Binder


def function(text: str, **around: Any) -> Callable[..., Any]:
    """Return the function `f` of a text."""
    names: dict[str, Any] = {"__name__": "some", **around}
    exec(text, names)
    found: Callable[..., Any] = names["f"]
    return found


def module(**values: int) -> types.ModuleType:
    made = types.ModuleType("constants")
    vars(made).update(values)
    return made


class Compiled:
    """Stands for a function that the user compiled: its repr tells nothing."""

    def __init__(self, py_func: Any) -> None:
        self.py_func = py_func

    def __repr__(self) -> str:
        return "compiled"


def closing_over(value: int) -> Callable[[], int]:
    return lambda: value


READS = "def f(): return c.LEAST"
TAKES = "def f(): return c[700]"
CALLS = "def f(): return g()"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (function("def f(x=1): return x"), function("def f(x=2): return x")),
        (function("def f(*, x=1): return x"), function("def f(*, x=2): return x")),
        (closing_over(1), closing_over(2)),
        (function("def f(): return c", c=1), function("def f(): return c", c=None)),
        (function(READS, c=module(LEAST=1)), function(READS, c=module(LEAST=2))),
        (function(READS, c=type("C", (), {"LEAST": 1})), function(READS, c=type("C", (), {"LEAST": 2}))),
        (function(TAKES, c=np.zeros(2_000)), function(TAKES, c=np.eye(1, 2_000, 700))),
        (function(CALLS, g=Compiled(closing_over(1))), function(CALLS, g=Compiled(closing_over(2)))),
        (function(CALLS, g=Compiled(function(TAKES, c=1))), function(CALLS, g=Compiled(function(TAKES, c=2)))),
    ],
    ids=[
        "default",
        "default by name",
        "closure",
        "None",
        "module",
        "class",
        "long array",
        "compiled",
        "reached from it",
    ],
)
def test_what_a_function_reaches_is_in_its_digest(one: Callable[..., Any], other: Callable[..., Any]) -> None:
    assert Binder({}).digest(one) == Binder({}).digest(one) != Binder({}).digest(other)


def test_what_a_module_has_besides_is_not() -> None:
    one, other = (function(READS, c=module(LEAST=1, MOST=most)) for most in (2, 3))

    assert Binder({}).digest(one) == Binder({}).digest(other)


@pytest.mark.parametrize(
    "text",
    ["def f(n=3): return n and n + f(n - 1)", "def f(*, n=6): return n", "def f(): return 6 if c is None else 0"],
    ids=["itself", "by name", "None"],
)
def test_a_bound_function_does_what_it_did(text: str) -> None:
    assert Binder({}).bind(function(text, c=None))() == 6


def test_so_does_one_with_something_around_it() -> None:
    assert Binder({}).bind(closing_over(7))() == 7


def test_two_that_call_each_other_have_a_digest() -> None:
    first = function("def f(n): return n and g(n - 1)")
    first.__globals__["g"] = Compiled(first)

    assert Binder({}).digest(first)
