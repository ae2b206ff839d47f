"""The one family of errors that htpsim raises on purpose, and their exit codes.

Every message says where, what was given and what was expected, and offers the nearest valid name where
there is one. Each class can be rebuilt from its ``args`` alone, because SimPy re-creates exceptions so.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

_NAME_MAX: Final = 200
"""Longer names are cut: no name is so long, and comparing takes its square."""


class HtpsimError(Exception):
    """Base of all errors raised on purpose; ``exit_code`` is what the command line returns for it."""

    exit_code = 2


class ScenarioError(HtpsimError):
    """A scenario file or a specification is wrong. ``args`` holds one line for every problem found.

    >>> str(ScenarioError("device.cores: got 0, expected at least 1"))
    'device.cores: got 0, expected at least 1'
    """

    @property
    def problems(self) -> tuple[str, ...]:
        """One line a problem, in the order of the file."""
        return tuple(str(a) for a in self.args)

    def __str__(self) -> str:
        return "\n".join(self.problems)


class FormatError(HtpsimError):
    """A file could not be read as the format it claims to be; the message names file and line."""


class CapacityError(HtpsimError):
    """Something does not fit: names the limit, what was asked, what is held and what is free."""


class IllegalTransition(HtpsimError):
    """A state machine was asked for a step that its table does not have; its state is unchanged."""

    exit_code = 3


class InvariantError(HtpsimError):
    """A rule that must always hold was broken: a fault of htpsim, or of a user's policy."""

    exit_code = 3


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return the valid name closest to `name`, or "" when none is close.

    >>> nearest("polcy", ["policy", "slots"])
    'policy'
    """
    found = difflib.get_close_matches(name[:_NAME_MAX], list(valid), n=1, cutoff=0.6)
    return found[0] if found else ""


def unknown_name(where: str, name: str, valid: Iterable[str]) -> str:
    """Word the complaint about a name that is not one of `valid`, with the nearest one that is.

    >>> unknown_name("guard.policy", "sfqq", ["fifo", "sfq"])
    "guard.policy: got 'sfqq', expected one of fifo, sfq; did you mean 'sfq'?"
    """
    names = sorted(valid)
    if len(name) > _NAME_MAX:
        name = name[: _NAME_MAX - 3] + "..."
    close = nearest(name, names)
    hint = f"; did you mean '{close}'?" if close else ""
    return f"{where}: got '{name}', expected one of {', '.join(names)}{hint}"
