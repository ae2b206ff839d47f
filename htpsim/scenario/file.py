"""A scenario file, loaded and validated with all its variants, and what it resolves to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from htpsim.errors import ScenarioError
from htpsim.scenario.assemble import assemble
from htpsim.scenario.build import Builder
from htpsim.scenario.checks import findings, warnings
from htpsim.scenario.complain import Layer, condense, place, sentences
from htpsim.scenario.document import find, read_chain, set_layer
from htpsim.scenario.outline import PARTS, Address, Assumption, Choice, Outline, Variant, choices, outline
from htpsim.scenario.overlay import merge
from htpsim.scenario.presets import Shelf
from htpsim.scenario.resolved import resolved_dict, without_none
from htpsim.scenario.sourced import SourcedValue
from htpsim.scenario.tables import document
from htpsim.scenario.wording import unknown_word
from htpsim.spec import Scenario


@dataclass(frozen=True, slots=True)
class ResolvedScenario:
    """One simulation, whole and valid."""

    scenario: Scenario
    sources: tuple[SourcedValue, ...]
    """Where its figures come from, as far as the file says."""

    warnings: tuple[str, ...]
    """What a reader of the results should know beforehand."""

    def to_toml_dict(self) -> dict[str, Any]:
        """Return every parameter in the form of a scenario file, without what is None."""
        plain: dict[str, Any] = without_none(resolved_dict(self.scenario))
        return plain


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """A scenario file whose base, variants, cases and options have each been found valid."""

    path: Path
    title: str
    question: str
    variants: dict[str, Variant]
    cases: dict[str, Variant]
    assumptions: dict[str, Assumption]
    base: Scenario
    sources: tuple[SourcedValue, ...]
    """Of the base."""

    _outline: Outline = field(repr=False, compare=False)
    _last: Layer = field(repr=False, compare=False)
    _shelf: Shelf = field(repr=False, compare=False)

    def resolve(
        self,
        variant: str | None = None,
        case: str | None = None,
        options: Sequence[str] = (),
        set_values: Sequence[str] = (),
    ) -> ResolvedScenario:
        """Return one simulation: the base, upon it a variant, a case, options, and last what was set by hand.

        Parameters
        ----------
        variant, case
            Names of ``[variants.*]`` and ``[cases.*]``; None for the base as it is.
        options
            Options of assumptions as "NAME.OPTION", for example "slots.core".
        set_values
            Assignments upon those that the file was loaded with.

        Raises
        ------
        ScenarioError
            When there is no such name, or the combination is not valid; one line for each problem.
        """
        last = self._last
        if set_values:
            last = Layer(last.label, (), merge(last.tree, set_layer(set_values, self.path.parent).tree))
        resolved, problems = _resolve(self.path, self._outline, last, self._shelf, variant, case, options)
        if resolved is None:
            raise ScenarioError(*problems)
        return resolved


def load(path_or_name: str | os.PathLike[str], *, set_values: Sequence[str] = ()) -> ScenarioFile:
    """Load a scenario file and validate it, with each of its variants, cases and options.

    Parameters
    ----------
    path_or_name
        The path of a ``.toml`` file, or the name of a shipped scenario.
    set_values
        Assignments that have the last word, such as ``"guard.slots_per=core"`` or ``"instances.weight=[4,2,1,1]"``.

    Raises
    ------
    ScenarioError
        One line for each problem: file, key, what was given, what was expected.
    """
    path = find(os.fspath(path_or_name))
    layers = read_chain(path)
    last = set_layer(set_values, path.parent)
    found = outline(layers, last)
    last = Layer(last.label, (), {key: value for key, value in last.tree.items() if key in PARTS})
    shelf = Shelf()
    problems = list(found.problems)
    base, complaints = _resolve(path, found, last, shelf, None, None, ())
    problems += complaints
    for choice in choices(found):
        problems += _faults(path, found, last, shelf, choice)
    if problems or base is None:
        raise ScenarioError(*dict.fromkeys(problems))
    return ScenarioFile(
        path=path,
        title=found.words.get(("title",), path.stem),
        question=found.words.get(("question",), ""),
        variants=found.named("variants"),
        cases=found.named("cases"),
        assumptions=found.options(),
        base=base.scenario,
        sources=base.sources,
        _outline=found,
        _last=last,
        _shelf=shelf,
    )


def from_tree(tree: dict[str, Any], where: str) -> Scenario:
    """Return the scenario of a tree that `resolved_dict` made; its name, which is not in there, is that of `where`.

    Raises
    ------
    ScenarioError
        One line for each problem.

    Examples
    --------
    >>> from_tree({"guard": {"slots": "two"}}, "runs/a")
    Traceback (most recent call last):
    htpsim.errors.ScenarioError: runs/a: guard.slots: ...
    """
    plain = {key: value for key, value in without_none(tree).items() if value != []}
    found, shelf, last = outline([Layer(where, (), plain)], Layer(where, (), {})), Shelf(), Layer(where, (), {})
    resolved, complaints = _resolve(Path(where), found, last, shelf, None, None, ())
    if resolved is None or found.problems:
        raise ScenarioError(*dict.fromkeys([*found.problems, *complaints]))
    return resolved.scenario


def _faults(path: Path, found: Outline, last: Layer, shelf: Shelf, choice: Choice) -> list[str]:
    """Return what is wrong with an overlay; what only the values set by hand break is left until it is asked for."""
    complaints = _resolve(path, found, last, shelf, *choice)[1]
    if complaints and last.tree:
        return _resolve(path, found, Layer(last.label, (), {}), shelf, *choice)[1] and complaints
    return complaints


def _addresses(variant: str | None, case: str | None, options: Sequence[str]) -> list[Address]:
    chosen: list[Address] = []
    if variant is not None:
        chosen.append(("variants", variant))
    if case is not None:
        chosen.append(("cases", case))
    return chosen + [("assumptions", *option.split(".", 1)) for option in options]


def _resolve(
    path: Path,
    found: Outline,
    last: Layer,
    shelf: Shelf,
    variant: str | None,
    case: str | None,
    options: Sequence[str],
) -> tuple[ResolvedScenario | None, list[str]]:
    """Return one simulation, or None and what is wrong with it, one line a problem."""
    chosen = _addresses(variant, case, options)
    missing = [address for address in chosen if address not in found.overlays]
    if missing:
        return None, [_unknown(path, address, found) for address in missing]
    layers = [*found.base, *(layer for address in chosen for layer in found.overlays[address]), last]
    assembled = assemble(layers, shelf)
    problems = list(assembled.problems)
    builder, scenario = Builder(shelf), None
    try:
        validated = document().model_validate(assembled.tree)
    except ValidationError as error:
        problems += sentences(error, assembled.tree)
    else:
        name = ".".join([path.stem, *(part for address in chosen for part in address[1:])])
        words = [found.words.get(("title",), "")]
        words += [found.words.get((*address, "title"), "") for address in chosen]
        scenario = builder.scenario(name, ": ".join(word for word in words if word), validated)
        problems += builder.problems or findings(scenario)
    if problems or scenario is None:
        return None, [f"{place(where, layers)}: {text}" for where, text in condense(problems, assembled.tree)]
    sources = assembled.sources(builder.sources)
    return ResolvedScenario(scenario, sources, tuple(warnings(scenario))), []


def _unknown(path: Path, address: Address, found: Outline) -> str:
    kind = {"variants": "variant", "cases": "case", "assumptions": "option"}[address[0]]
    known = [".".join(other[1:]) for other in found.overlays if other[0] == address[0]]
    asked = ".".join(address[1:])
    return f"{path}: {kind}: " + (
        unknown_word(asked, known) if known else f"got '{asked}', expected none: the file has none"
    )
