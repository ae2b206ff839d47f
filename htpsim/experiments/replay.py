"""The command that runs one replication again, exactly."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from htpsim.scenario.quantities import write
from htpsim.spec import Scenario

_OWN_OPTIONS = ("run.seed", "run.duration", "run.replications", "run.engine")
"""Assignments that the command spells as options, or that do not matter to one replication."""


def replay_command(
    scenario: Scenario,
    file: str,
    *,
    replication: int,
    variant: str | None = None,
    case: str | None = None,
    options: Sequence[str] = (),
    set_values: Sequence[str] = (),
    check: bool = False,
) -> str:
    """Return the command line that runs one replication of a scenario of a file again.

    Parameters
    ----------
    scenario
        As it was run: seed and measured time are taken from it.
    file
        Path or name of the scenario file, as it was given.
    replication
        Which repetition.
    variant, case, options, set_values
        As they were given.
    check
        Whether every state machine was validated after every action.

    Examples
    --------
    >>> replay_command(Scenario(), "my cars.toml", replication=2, variant="genie", set_values=["guard.slots=1"])
    "htpsim run 'my cars.toml' --variant genie --set guard.slots=1 --seed 1 --for 60s --replication 2"
    """
    words = ["htpsim", "run", file]
    words += ["--variant", variant] if variant is not None else []
    words += ["--case", case] if case is not None else []
    for option in options:
        words += ["--option", option]
    for assignment in set_values:
        if assignment.partition("=")[0].strip() not in _OWN_OPTIONS:
            words += ["--set", assignment]
    words += ["--seed", str(scenario.run.seed), "--for", str(write(scenario.run.duration_ns, "ns"))]
    words += ["--replication", str(replication)]
    return shlex.join(words + ["--check"] * check)
