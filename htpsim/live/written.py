"""The scenarios that predictions were made from, as files: every measured value with what it rests on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from htpsim.experiments.calibrate.document import toml_text
from htpsim.experiments.calibrate.leaf import Leaf
from htpsim.formats.writers.whole import write_text
from htpsim.live.solo import EXERCISED, Solo, calibrated
from htpsim.live.trials import Trials, kind_of
from htpsim.scenario import resolved_dict
from htpsim.scenario.resolved import without_none
from htpsim.spec import Scenario

_DEVICE = {
    "acquire": "next_graph",
    "power_up": "wake_core",
    "power_up_warm": "wake_core",
    "rpc_call": "submit",
    "rpc_return": "answer",
}


def calibrated_toml(scenario: Scenario, solo: Solo, about: str) -> str:
    """Return the scenario that the engines predict from as TOML.

    Parameters
    ----------
    scenario : Scenario
        As the testbed prepared it.
    solo : Solo
        What was seen of its instances alone.
    about : str
        On what machine and how it was measured.

    Examples
    --------
    >>> print(calibrated_toml(Scenario(), Solo(delays={"answer": [7, 9]}), "a desk").splitlines()[0])
    # Written by the testbed of htpsim: a desk
    """
    tree: dict[str, Any] = without_none(resolved_dict(calibrated(scenario, solo)))
    for key, delay in _DEVICE.items():
        tree["device"][key] = _leaf(tree["device"][key], delay, len(solo.delays.get(delay, ())))
    tree["guard"]["overhead"] = _leaf(tree["guard"]["overhead"], "hand_over", len(solo.delays.get("hand_over", ())))
    for name, model in tree["models"].items():
        for graphs in ("graphs", "prefill", "decode"):
            for graph in model[graphs]:
                count = len(solo.graphs.get(f"{name}/{graph['name']}", ()))
                if count:
                    graph["service"] = _leaf(graph["service"], "time on the core", count)
    head = [
        f"Written by the testbed of htpsim: {about}",
        "Every measured value is of one instance alone, or of threads that do nothing else: contention is predicted.",
    ]
    return toml_text(tree, head)


def _leaf(value: Any, what: str, count: int) -> Leaf:
    whose = "threads without work" if what in EXERCISED else "an instance alone"
    return Leaf(value=value, mark="measured", source=f"{what} of {whose} on the testbed, {count} values")


def write_calibrated(found: Trials, folder: Path, about: str) -> list[Path]:
    """Write the scenario that each trial was predicted from; return the files."""
    written = []
    for name, trial in found.trials.items():
        path = folder / f"{name}.toml"
        text = calibrated_toml(trial.scenario, found.solo[kind_of(trial.scenario)], about)
        write_text(text.splitlines(), path)
        written.append(path)
    return written
