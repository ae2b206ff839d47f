"""What there is to choose from: the built-in policies with what their docstrings say about them."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Final

from htpsim.sched.policies import POLICIES
from htpsim.sched.policy import Policy

_HEADINGS: Final = ("Source", "Bound", "Premise", "Cost")
_PART: Final = re.compile(r"^(" + "|".join(_HEADINGS) + r"):\s*", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCard:
    """One policy as ``htpsim policies`` lists it."""

    name: str
    summary: str
    """One line."""
    rule: str
    """How it decides, in paragraphs; "" where the line above says all."""
    source: str
    bound: str
    premise: str
    """Under what the bound holds, and whether it is tight."""
    cost: str
    params: dict[str, tuple[int, str]]
    """Name -> (default, what it means)."""


def policies() -> list[PolicyCard]:
    """Return a card for every built-in policy, in order of name.

    >>> [card.name for card in policies()]
    ['drr', 'edf', 'eevdf', 'fifo', 'lottery', 'priority', 'quota', 'sfq', 'stride']
    """
    return [policy_card(POLICIES[name]) for name in sorted(POLICIES)]


def policy_card(policy: type[Policy]) -> PolicyCard:
    """Return the card of a policy, a user's included; what its docstring does not say is empty.

    >>> policy_card(POLICIES["fifo"]).summary
    'First called, first granted; weights do nothing.'
    """
    text = inspect.getdoc(policy) or ""
    parts = _PART.split(text)
    said = {heading: " ".join(body.split()) for heading, body in zip(parts[1::2], parts[2::2], strict=True)}
    first_paragraph, _, more = parts[0].partition("\n\n")
    paragraphs = (" ".join(paragraph.split()) for paragraph in more.split("\n\n"))
    return PolicyCard(
        name=policy.name,
        summary=" ".join(first_paragraph.split()),
        rule="\n\n".join(filter(None, paragraphs)),
        source=said.get("Source", ""),
        bound=said.get("Bound", ""),
        premise=said.get("Premise", ""),
        cost=said.get("Cost", ""),
        params=dict(policy.params),
    )
