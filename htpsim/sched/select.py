"""From the name in a scenario to a policy class: a built-in one, or the user's own as ``module:Class``."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from htpsim.errors import ScenarioError, nearest, unknown_name
from htpsim.sched.policies import POLICIES
from htpsim.sched.policy import ACCOUNT_FIELDS, LANE_FIELDS, Policy

_FUNCTIONS: Final = {
    "wake": ("lane", "accounts", "i", "now_ns"),
    "pick": ("lane", "accounts", "now_ns"),
    "charge": ("lane", "accounts", "i", "cost_ns", "now_ns"),
    "timer": ("lane", "accounts", "now_ns"),
}
_TABLES: Final = ("name", "params", "lane_fields", "account_fields")
_INT64: Final = (-(1 << 63), (1 << 63) - 1)


def policy_class(name: str) -> type[Policy]:
    """Return the policy called `name`, or the class that ``module:Class`` names.

    Raises
    ------
    ScenarioError
        When there is none, or the class does not have the form of the interface; one line for every fault.

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
    except Exception as error:  # importing a user's module may fail in any way
        raise ScenarioError(
            f"guard.policy: got '{name}', expected an importable module:Class ({type(error).__name__}: {error}); "
            "is the module's folder on PYTHONPATH?"
        ) from error
    faults = policy_faults(found)
    if faults:
        raise ScenarioError(*(f"guard.policy: class {name} {fault}" for fault in faults))
    return cast("type[Policy]", found)


def policy_faults(found: object) -> list[str]:
    """Return what keeps a class from being a policy, empty when nothing does.

    >>> class Half:
    ...     name, params, lane_fields, account_fields = "half", {}, (), ("weight",)
    ...     wake = pick = charge = staticmethod(lambda lane, accounts, now_ns: -1)
    >>> for fault in policy_faults(Half):
    ...     print(fault)
    lacks timer of the policy interface
    wake: takes 3 arguments, expected 4: (lane, accounts, i, now_ns)
    charge: takes 3 arguments, expected 5: (lane, accounts, i, cost_ns, now_ns)
    account_fields: 'weight' is the guard's own field; choose another name
    """
    missing = [part for part in (*_FUNCTIONS, *_TABLES) if not hasattr(found, part)]
    faults = [f"lacks {', '.join(missing)} of the policy interface"] if missing else []
    for function, arguments in _FUNCTIONS.items():
        if function not in missing:
            faults += _function_faults(function, getattr(found, function), arguments)
    if "params" not in missing:
        faults += _params_faults(getattr(found, "params"))  # noqa: B009 - any class may come here
    for table, own in (("params", LANE_FIELDS), ("lane_fields", LANE_FIELDS), ("account_fields", ACCOUNT_FIELDS)):
        if table not in missing:
            faults += _field_faults(table, getattr(found, table), own)
    return faults


def _function_faults(name: str, function: Any, arguments: tuple[str, ...]) -> list[str]:
    wanted = f"expected {len(arguments)}: ({', '.join(arguments)})"
    if not callable(function):
        return [f"{name}: got {function!r}, expected a static function of {', '.join(arguments)}"]
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return []
    try:
        signature.bind(*arguments)
    except TypeError:
        return [f"{name}: takes {len(signature.parameters)} arguments, {wanted}"]
    return []


def _params_faults(params: object) -> list[str]:
    if not isinstance(params, Mapping):
        return [f"params: got {params!r}, expected a dict of name: (default, text)"]
    faults = []
    for name, entry in params.items():
        right = isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], int)
        if not right:
            faults.append(f"params: '{name}' is {entry!r}, expected (default, text) with a whole number as default")
    return faults


def _field_faults(table: str, names: Any, own: tuple[str, ...]) -> list[str]:
    if isinstance(names, str):
        return [f"{table}: got the text {names!r}, expected a tuple of names; a tuple of one is written ('{names}',)"]
    if not isinstance(names, Iterable):
        return [] if table == "params" else [f"{table}: got {names!r}, expected a tuple of names"]
    faults = []
    for name in names:
        if not (isinstance(name, str) and name.isidentifier()):
            faults.append(f"{table}: {name!r} is not a name that a field can have")
        elif name in own:
            faults.append(f"{table}: '{name}' is the guard's own field; choose another name")
    return faults


def policy_params(policy: type[Policy], given: Sequence[tuple[str, int]]) -> dict[str, int]:
    """Return the policy's parameters with `given` ones set.

    Raises
    ------
    ScenarioError
        When the policy has no such parameter, or not with such a value; one line for every fault.

    Examples
    --------
    >>> policy_params(policy_class("quota"), [("period_ns", 5)])["period_ns"]
    5
    """
    values = {name: default for name, (default, _) in policy.params.items()}
    limits: Mapping[str, tuple[int, int]] = getattr(policy, "limits", {})
    faults = []
    for name, value in given:
        if name not in values:
            close = nearest(name, values)
            hint = f"; did you mean '{close}'?" if close else ""
            known = ", ".join(values) or "none"
            faults.append(f"guard.params.{name}: policy {policy.name} has no such parameter (it has: {known}){hint}")
            continue
        least, greatest = limits.get(name, _INT64)
        if not least <= value <= greatest:
            faults.append(f"guard.params.{name}: got {value}, policy {policy.name} expects {least} to {greatest}")
        values[name] = value
    if faults:
        raise ScenarioError(*faults)
    return values
