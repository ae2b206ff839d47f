"""Which built-in policy explains a recorded trace; ``htpsim explain-policy``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

from htpsim.experiments.check import Row, declared
from htpsim.formats.trace import read_trace
from htpsim.invariants import Explanation, explain
from htpsim.invariants.explain import Fit
from htpsim.units import format_time


@dataclass(frozen=True, slots=True)
class ExplainReport:
    """How many of a trace's grants each policy would have made."""

    files: tuple[str, ...]
    explanation: Explanation

    @property
    def headline(self) -> str:
        """The answer in a sentence."""
        found = self.explanation
        if not found.fits:
            return f"{', '.join(self.files)}: {found.note}"
        best = found.fits[0]
        also = [fit.policy for fit in found.fits[1:] if fit.made == best.made]
        ties = f" (and {', '.join(also)})" if also else ""
        share = best.made / found.choices
        return (
            f"{best.policy}{ties} would have made {best.made} of the {found.choices} grants with a choice ({share:.1%})"
        )

    def rows(self) -> list[Row]:
        """Return a row a policy, the best first: (policy, parameters, grants made, share)."""
        choices = self.explanation.choices
        return [
            (fit.policy, params_of(fit), f"{fit.made} of {choices}", f"{fit.made / choices:.1%}")
            for fit in self.explanation.fits
        ]

    def unexplained_rows(self) -> list[Row]:
        """Return a row a grant that no policy would have made: (time in ns, graphExecute, account, who waited)."""
        return [
            (
                f"{grant.time_ns:,}",
                str(grant.execute),
                grant.account,
                ", ".join(f"{account} for {format_time(waited_ns)}" for account, waited_ns in grant.waiting),
            )
            for grant in self.explanation.unexplained
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, for ``--json``."""
        found = self.explanation
        return {
            "files": list(self.files),
            "grants": found.grants,
            "choices": found.choices,
            "note": found.note,
            "policies": [
                {"policy": fit.policy, "params": dict(fit.params), "ranks": fit.ranks, "made": fit.made}
                for fit in found.fits
            ],
            "unexplained": [
                {
                    "time_ns": grant.time_ns,
                    "execute": grant.execute,
                    "account": grant.account,
                    "waiting": dict(grant.waiting),
                }
                for grant in found.unexplained
            ],
        }


def params_of(fit: Fit) -> str:
    """Write the parameters that are not the default.

    >>> params_of(Fit("quota", (("period_ns", 10_000_000), ("unit", 1)), "", 3, frozenset()))
    'period 10 ms, unit 1'
    """
    said = [
        f"{name.removesuffix('_ns')} {format_time(value) if name.endswith('_ns') else value}"
        for name, value in fit.params
    ]
    if fit.ranks:
        said.append(f"rank = {fit.ranks}")
    return ", ".join(said) or "defaults"


def explain_policy(
    path: str | os.PathLike[str],
    *more: str | os.PathLike[str],
    slots: int | None = None,
    slots_per: Literal["process", "core"] | None = None,
    lenient: bool = False,
) -> ExplainReport:
    """Say how many of the grants in a trace file each built-in policy would have made.

    Parameters
    ----------
    path, more
        The files, one a process, in either form.
    slots, slots_per
        What is known of the guard and does not stand in the file.
    lenient : bool
        Leave out what does not fit the schema instead of refusing the file.

    Raises
    ------
    FormatError
        When a file cannot be read; names the line.
    """
    trace = declared(read_trace(path, *more, lenient=lenient), slots=slots, slots_per=slots_per)
    return ExplainReport(tuple(os.fspath(each) for each in (path, *more)), explain(trace))
