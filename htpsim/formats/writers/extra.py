"""Packages that only some writers need: imported when asked for, with a way out when they are not installed."""

from __future__ import annotations

import importlib
from typing import Any

from htpsim.errors import HtpsimError


def needed(module: str, extra: str) -> Any:
    """Import a module of an optional package.

    Raises
    ------
    HtpsimError
        When it is not installed; the message has the command that installs it.

    Examples
    --------
    >>> needed("no_such_package.protos", "perfetto")
    Traceback (most recent call last):
    htpsim.errors.HtpsimError: no_such_package: got no such package, expected it: pip install htpsim[perfetto]
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise HtpsimError(f"{package}: got no such package, expected it: pip install htpsim[{extra}]") from error
