"""From validated tables to the frozen spec dataclasses."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from htpsim.errors import HtpsimError, ScenarioError
from htpsim.scenario.configs import service_time
from htpsim.scenario.distributions import Profile, to_distribution
from htpsim.scenario.keys import Key, Shape, keys_of
from htpsim.scenario.presets import Shelf
from htpsim.scenario.quantities import write
from htpsim.scenario.sourced import Path, Problem, SourcedValue
from htpsim.scenario.tables import SPEC_OF
from htpsim.scenario.wording import unknown_word
from htpsim.spec import Guard, Instance, Model, OtherClient, Scenario
from htpsim.units import parse_time


class Builder:
    """Builds one scenario; what is wrong, and which figures were read from files, is kept in lists."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.problems: list[Problem] = []
        self.sources: list[SourcedValue] = []
        self._models: dict[str, Model] = {}
        self._known: list[str] = []

    def scenario(self, name: str, title: str, document: BaseModel) -> Scenario:
        """Return the scenario of a validated document; only meaningful while `problems` stays empty."""
        given: dict[str, Any] = {key: getattr(document, key) for key in document.model_fields_set}
        parts = {key: self._spec(spec, given.get(key), (key,)) for key, spec in SPEC_OF.items() if key in given}
        models = given.get("models") or {}
        self._known = list(models)
        users = [(Instance, "instances"), (OtherClient, "clients")]
        wanted = {
            named
            for spec, key in users
            for user in given.get(key) or ()
            for reference in _references(spec)
            if (named := getattr(user, reference.key)) is not None
        }
        for model_name, table in models.items():
            if model_name in wanted:
                self._models[model_name] = self._model(model_name, table)
        for spec, key in users:
            built = [self._spec(spec, user, (key, user.name)) for user in given.get(key) or ()]
            parts[key] = tuple(user for user in built if user is not None)
        return Scenario(name=name, title=title, **parts)

    def _model(self, name: str, table: Any) -> Model:
        built: Model = self._spec(Model, table, ("models", name), name=table.name or name)
        return built

    def _spec(self, spec: type, table: Any, path: Path, **fixed: Any) -> Any:
        """Return the dataclass of a table, or None where a reference in it leads nowhere."""
        values: dict[str, Any] = {}
        for key in keys_of(spec).values():
            if key.key not in table.model_fields_set or key.field in fixed:
                continue
            value = getattr(table, key.key)
            values[key.field] = None if value is None else self._value(key, value, (*path, key.key))
            if key.shape is Shape.REFERENCE and value is not None and values[key.field] is None:
                return None
        if "params" in values:
            values["params"] = _parameters(table.policy, values["params"])
        return spec(**values, **fixed)

    def _value(self, key: Key, value: Any, path: Path) -> Any:
        if key.shape is Shape.DISTRIBUTION:
            return to_distribution(value, lambda profile: self._measured(profile, path))
        if key.shape is Shape.TABLE:
            return self._spec(key.type, value, path)
        if key.shape is Shape.TABLES:
            return tuple(self._spec(key.type, item, (*path, item.name)) for item in value)
        if key.shape is Shape.REFERENCE:
            if value not in self._models:
                text = unknown_word(value, self._known)
                text = text if self._known else f"got '{value}', expected the name of a table [models.{value}]"
                self.problems.append((path, text))
            return self._models.get(value)
        return value

    def _measured(self, profile: Profile, path: Path) -> int:
        try:
            value_ns, source = self._shelf.once(service_time, profile)
        except ScenarioError as error:
            self.problems += [(path, text) for text in error.problems]
            return 1
        self.sources.append(SourcedValue(".".join(path), str(write(value_ns, "ns")), "measured", source))
        return value_ns


def _references(spec: type) -> list[Key]:
    return [key for key in keys_of(spec).values() if key.shape is Shape.REFERENCE]


def _parameters(policy: str, given: dict[str, int | str]) -> tuple[tuple[str, int], ...]:
    """Return a policy's parameters by their own names: ``period = "100ms"`` sets ``period_ns``."""
    from htpsim.sched import policy_class

    try:
        known = policy_class(policy or Guard().policy).params
    except HtpsimError:
        known = {}
    found = {}
    for key, value in given.items():
        name = f"{key}_ns" if key not in known and (f"{key}_ns" in known or isinstance(value, str)) else key
        found[name] = parse_time(value) if isinstance(value, str) else value
    return tuple(sorted(found.items()))
