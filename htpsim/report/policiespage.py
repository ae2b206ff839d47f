"""The reference of guard policies: rule, parameters, source, bound, premise, cost of each, from its own docstring."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from htpsim.results.guard_use import WEIGHTLESS_POLICIES
from htpsim.scenario.quantities import write
from htpsim.sched.catalogue import PolicyCard, policies
from htpsim.sched.policies import POLICIES

_HEAD: Final = """\
# Guard policies

This page is written by the code (`htpsim.report.policiespage`); a test holds it to that.

A policy says which waiting call is granted when a guard has a free slot; none can interrupt a graph that runs, or
know what the next one will take. Which rule the fork has is not public: each of these is published, and the choice is
an assumption. `guard.policy = "NAME"` takes one, `guard.params = { KEY = VALUE }` sets its parameters; a policy of
your own is named `"module:Class"` ([how to write one](../policies/README.md)). What each promises is
tested on generated traces, and where it says *tight*, a trace comes within a tenth of it.

| policy | in a line | looks at weights |
| --- | --- | --- |
"""


def page() -> str:
    """Return the whole page.

    >>> page().splitlines()[0]
    '# Guard policies'
    """
    cards = policies()
    lines = [f"| [`{card.name}`](#{card.name}) | {card.summary} | {_weights(card)} |" for card in cards]
    text = _HEAD + "\n".join([*lines, "", *(line for card in cards for line in _card(card))])
    return text.replace("``", "`").rstrip() + "\n"


def _weights(card: PolicyCard) -> str:
    return "no" if card.name in WEIGHTLESS_POLICIES else "yes"


def _card(card: PolicyCard) -> Iterator[str]:
    yield from (f"## {card.name}", "", card.summary, "")
    if card.rule:
        yield from (card.rule, "")
    facts = {"Source": card.source, "Bound": card.bound, "Premise": card.premise, "Cost": card.cost}
    yield from (f"- **{name}**: {text}" for name, text in facts.items() if text)
    yield ""
    if not card.params:
        yield from ("It has no parameters.", "")
        return
    yield from ("| parameter | default | range | meaning |", "| --- | --- | --- | --- |")
    limits = getattr(POLICIES[card.name], "limits", {})
    for name, (default, text) in card.params.items():
        unit = "ns" if name.endswith("_ns") else ""
        least, most = (str(write(value, unit)) for value in limits[name])
        yield f"| `{name.removesuffix('_ns')}` | `{write(default, unit)}` | {least} to {most} | {text} |"
    yield ""
