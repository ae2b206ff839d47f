"""From the name in a scenario to a policy class: a built-in one, or the user's own as ``module:Class``."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, cast

from htpsim.errors import ScenarioError, nearest, unknown_name
from htpsim.sched.policies import POLICIES
from htpsim.sched.policy import Policy

_FUNCTIONS = ("wake", "pick", "charge", "timer")
_TABLES = ("name", "params", "lane_fields", "account_fields")


def policy_class(name: str) -> type[Policy]:
    """Return the policy called `name`, or the class that ``module:Class`` names.

    Raises
    ------
    ScenarioError
        When there is none, or the class lacks a function or table of the interface.

    Examples
    --------
    >>> policy_class("sfq").name
    'sfq'
    """
    if ":" not in name:
        if name not in POLICIES:
            raise ScenarioError(
                unknown_name("guard.policy", name, POLICIES) + " (or a class of your own: module:Class)"
            )
        return POLICIES[name]
    module_name, _, class_name = name.partition(":")
    try:
        found: Any = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ScenarioError(f"guard.policy: got '{name}', expected an importable module:Class ({error})") from error
    missing = [part for part in _FUNCTIONS + _TABLES if not hasattr(found, part)]
    if missing:
        raise ScenarioError(f"guard.policy: class {name} lacks {', '.join(missing)} of the policy interface")
    return cast("type[Policy]", found)


def policy_params(policy: type[Policy], given: Sequence[tuple[str, int]]) -> dict[str, int]:
    """Return the policy's parameters with `given` ones set.

    >>> policy_params(policy_class("quota"), [("period_ns", 5)])["period_ns"]
    5
    """
    values = {name: default for name, (default, _) in policy.params.items()}
    for name, value in given:
        if name not in values:
            close = nearest(name, values)
            hint = f"; did you mean '{close}'?" if close else ""
            known = ", ".join(values) or "none"
            raise ScenarioError(
                f"guard.params.{name}: policy {policy.name} has no such parameter (it has: {known}){hint}"
            )
        values[name] = value
    return values
