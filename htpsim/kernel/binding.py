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

import numpy as np

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
            # One that calls itself, which no rule does, finds its original; Numba will refuse that.
            self._bound[id(function)] = function, "itself"
            found = self._bound[id(function)] = self._made(function)
        return found

    def _made(self, function: types.FunctionType) -> tuple[Function, str]:
        names: dict[str, Any] = {"__builtins__": __builtins__, "__name__": function.__module__}
        reached = [function.__module__, function.__qualname__, *code_text(function.__code__), *_given(function)]
        for name in global_names(function.__code__):
            if (function.__module__, name) not in self.instead and name not in function.__globals__:
                continue
            value = self.instead.get((function.__module__, name), function.__globals__.get(name))
            if isinstance(value, types.FunctionType):
                value, digest = self._bind(value)
                reached.append(f"{name}={digest}")
            elif isinstance(value, Stand):
                value, text = value.value, value.text
                reached.append(f"{name}={text}")
            else:
                reached.append(f"{name}={value_text(value, function.__code__.co_names)}")
            names[name] = value
        copy = types.FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, function.__closure__
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
        digest = hashlib.sha256("\n".join(reached).encode()).hexdigest()
        return self.finish(copy, digest), digest


def _given(function: types.FunctionType) -> list[str]:
    """Return what a function has beside its code: defaults, and what it took from around it."""
    around = [cell.cell_contents for cell in function.__closure__ or ()]
    names = function.__code__.co_names
    return [value_text(each, names) for each in (function.__defaults__, function.__kwdefaults__, *around)]


def value_text(value: Any, names: tuple[str, ...] = (), within: tuple[Any, ...] = ()) -> str:
    """Return what tells a value from another, where code may be compiled for what is in it.

    Of a module or a class, that is what the code may read of it: what it has among `names`. `within` are the functions
    that the value was found in.

    Examples
    --------
    >>> import errno, math
    >>> value_text(math, ("pi", "sin", "nothing")) == value_text(math, ("pi",))
    False
    >>> value_text(errno, ("EPERM",))
    "module errno {'EPERM': 1}"
    """
    if isinstance(value, np.ndarray):  # its repr leaves out most of a long one
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, types.ModuleType | type):
        read = {name: getattr(value, name) for name in names if hasattr(value, name)}
        rest = {name: tuple(n for n in names if n != name) for name in read}
        inner = ", ".join(f"{name!r}: {value_text(each, rest[name], within)}" for name, each in read.items())
        return f"{'module' if isinstance(value, types.ModuleType) else 'class'} {value.__name__} {{{inner}}}"
    # One that the user compiled has an address for its repr, which says nothing of what it does.
    function = getattr(value, "py_func", value)
    if not isinstance(function, types.FunctionType):
        return repr(value)
    if function in within:
        return "itself"
    code, inside = function.__code__, (*within, function)
    known = (function.__globals__[name] for name in global_names(code) if name in function.__globals__)
    reached = (value_text(each, code.co_names, inside) for each in known)
    return " ".join((function.__qualname__, *code_text(code), *_given(function), *reached))


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
