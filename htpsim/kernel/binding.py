"""Putting functions together: each function of the loop with the functions it calls bound anew.

The rules are plain functions that find each other, and the policy, among the globals of their modules. A `Binder` makes
a copy of a function whose globals are the copies of what it calls, so that another policy can stand in the place of the
one that is written there, and so that every one of them can be compiled on the way.
"""

from __future__ import annotations

import dis
import hashlib
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Function = Callable[..., Any]
Finish = Callable[[types.FunctionType, str], Function]


@dataclass(frozen=True, slots=True)
class Stand:
    """Something that is no function and stands in the place of one, with a text that tells it from others."""

    text: str
    value: Any = None


def as_it_is(function: types.FunctionType, digest: str) -> Function:
    """Return the function."""
    return function


class Binder:
    """Binds functions, each once.

    Parameters
    ----------
    instead : mapping
        What stands in the place of a global: (module, name) -> function, or anything else.
    finish : callable, optional
        What is made of each function once those that it calls are bound; by default nothing. It is also given a digest
        of the function and of everything that it reaches: its own code, its constants, and those of what it calls.

    Examples
    --------
    >>> from htpsim.kernel import guarding
    >>> from htpsim.sched import Edf
    >>> bound = Binder({(guarding.__name__, "pick"): Edf.pick}).bind(guarding.make_grant)
    >>> bound.__globals__["pick"].__qualname__
    'Edf.pick'
    """

    def __init__(self, instead: Mapping[tuple[str, str], Any], finish: Finish = as_it_is) -> None:
        self.instead = instead
        self.finish = finish
        self._bound: dict[int, tuple[Function, str]] = {}

    def bind(self, function: Function) -> Function:
        """Return a function with everything that it calls bound."""
        assert isinstance(function, types.FunctionType)
        return self._bind(function)[0]

    def digest(self, function: Function) -> str:
        """Return the digest of a function and of everything that it reaches."""
        assert isinstance(function, types.FunctionType)
        return self._bind(function)[1]

    def _bind(self, function: types.FunctionType) -> tuple[Function, str]:
        found = self._bound.get(id(function))
        if found is None:
            found = self._bound[id(function)] = self._made(function)
        return found

    def _made(self, function: types.FunctionType) -> tuple[Function, str]:
        names: dict[str, Any] = {"__builtins__": __builtins__, "__name__": function.__module__}
        reached = [function.__module__, function.__qualname__, *code_text(function.__code__)]
        for name in global_names(function.__code__):
            value = self.instead.get((function.__module__, name), function.__globals__.get(name))
            if isinstance(value, types.FunctionType):
                value, digest = self._bind(value)
                reached.append(f"{name}={digest}")
            elif isinstance(value, Stand):
                value, text = value.value, value.text
                reached.append(f"{name}={text}")
            elif value is not None:
                reached.append(f"{name}={value!r}")
            if value is not None:
                names[name] = value
        copy = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
        digest = hashlib.sha256("\n".join(reached).encode()).hexdigest()
        return self.finish(copy, digest), digest


@lru_cache(maxsize=1024)
def global_names(code: types.CodeType) -> tuple[str, ...]:
    """Return the names that a function's code looks up among its globals, in order."""
    names = {str(i.argval) for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(global_names(constant))
    return tuple(sorted(names))


@lru_cache(maxsize=1024)
def code_text(code: types.CodeType) -> tuple[str, ...]:
    """Return what tells one function's code from another's, wherever the two stand."""
    text = [code.co_code.hex(), repr(code.co_names), repr(code.co_varnames)]
    for constant in code.co_consts:
        text += code_text(constant) if isinstance(constant, types.CodeType) else [repr(constant)]
    return tuple(text)
