"""Key figures after a query, in every wording: two lines of genie-t2t-run, old and new, and a service's summary.

Init Time: 6549034 us                                                                    [KPIS] of 1.1.0
Prompt Processing Time: 196067 us, Prompt Processing Rate : 86.707710 toks/sec
Token generation: 353360439 us, 0.464115 tokens/s                                        1.0.0, no [KPIS]
Num Prompt Tokens: 26, Text Length: 130                                                  a service
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from htpsim.formats.genie_console.data import Number, Query
from htpsim.formats.tokenrates import ALL, WITHOUT_FIRST, definition, of_version, tokens_of
from htpsim.formats.values import Value
from htpsim.units import NS_PER_S, TIME_UNITS

_TIME: Final = frozenset({"us", "ms", "s"})
_RATE: Final = frozenset({"toks/sec", "tokens/s", "tokens/sec", "tok/s"})
_COUNT: Final = frozenset({""})
_LABELS: Final = {
    "init time": ("init", _TIME),
    "time to first token": ("ttft", _TIME),
    "prompt processing time": ("prompt_time", _TIME),
    "prompt processing": ("prompt_time", _TIME),
    "prompt processing rate": ("prompt_rate", _RATE),
    "num prompt tokens": ("prompt_tokens", _COUNT),
    "token generation time": ("generation_time", _TIME),
    "token generation": ("generation_time", _TIME),
    "token generation rate": ("generation_rate", _RATE),
    "num generated tokens": ("generated_tokens", _COUNT),
    "token acceptance rate": ("acceptance_rate", frozenset({"", "toks/iteration"})),
}
_FOLLOWS: Final = {"prompt_time": "prompt_rate", "generation_time": "generation_rate"}
"""In old logs the rate follows the time without a label."""

_START: Final = re.compile(r"(Init|Prompt|Token|Time|Num)\b[A-Za-z ]{2,30}:")
_PART: Final = re.compile(
    r"(?:(?P<label>[A-Za-z][A-Za-z ]{2,30}?) ?: ?)?(?P<number>\d{1,18}(?:\.\d{1,9})?) ?(?P<unit>\S*)", re.ASCII
)


@dataclass(slots=True)
class KpiReader:
    """Gathers figures into queries."""

    version: str | None = None
    queries: list[Query] = field(default_factory=list)
    found: dict[str, Number] = field(default_factory=dict)
    line: int = 0

    def open(self, line: int) -> None:
        """Begin the figures of another query."""
        self.close()
        self.line = line

    def is_figure(self, text: str) -> bool:
        """Say whether a line begins as one of these does."""
        start = _START.match(text)
        return start is not None and text[: start.end() - 1].strip().lower() in _LABELS

    def take(self, number: int, text: str) -> str | None:
        """Read a line of figures; return what was expected where it cannot be read."""
        read: dict[str, Number] = {}
        previous = ""
        for part in text.split(", "):
            found = _PART.fullmatch(part.strip())
            if found is None:
                return "figures such as 'Init Time: 6549034 us'"
            label = (found["label"] or "").strip().lower()
            if label and label not in _LABELS:
                continue
            name, units = _LABELS[label] if label else (_FOLLOWS.get(previous, ""), _RATE)
            if found["unit"] not in units or not name:
                return f"{label or 'a rate'} with its unit, {' or '.join(sorted(units)) or 'none'}"
            digits = found["number"]
            read[name] = Value(float(digits) if "." in digits else int(digits), found["unit"], number)
            previous = name
        if self.found.keys() & read.keys():
            self.open(number)
        self.line = self.line or number
        self.found |= read
        return None

    def close(self) -> None:
        """End the figures of a query."""
        if self.found:
            self.queries.append(self._query())
        self.found = {}
        self.line = 0

    def _query(self) -> Query:
        found = self.found
        spent, tokens, rate = (found.get(name) for name in ("generation_time", "generated_tokens", "generation_rate"))
        seconds = _seconds(spent)
        rule = None
        if rate and rate.value and seconds and tokens and tokens.value:
            rule = definition(int(tokens.value), seconds, rate.value)
        rule = rule or of_version(self.version)
        prompt_s = _seconds(found.get("prompt_time"))
        prompt_rate = found.get("prompt_rate")
        return Query(
            line=self.line,
            **found,
            rate_rule=rule if rate else None,
            derived_prompt_tokens=(
                tokens_of(prompt_rate.value, prompt_s, ALL)
                if prompt_rate and prompt_s and "prompt_tokens" not in found
                else None
            ),
            derived_generated_tokens=tokens_of(rate.value, seconds, rule) if rate and seconds and not tokens else None,
            token_time_ns=_token_time(rate, tokens, seconds, rule),
        )


def _seconds(value: Number | None) -> float | None:
    return None if value is None else value.value * TIME_UNITS[value.unit] / NS_PER_S


def _token_time(rate: Number | None, tokens: Number | None, seconds: float | None, rule: str | None) -> int | None:
    """Return the time of one token [ns]: one over the rate, else time over tokens by the rule of the version."""
    if rate is not None and rate.value > 0:
        return round(NS_PER_S / rate.value)
    if tokens is None or not seconds or rule is None:
        return None
    count = tokens.value - (rule == WITHOUT_FIRST)
    return round(seconds * NS_PER_S / count) if count > 0 else None
