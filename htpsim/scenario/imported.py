"""A scenario made of a configuration of qnn-throughput-net-run: each of its threads on the HTP becomes a client.

The configuration says who runs what, with which priority, pause and depth. It says neither how long an execution takes
nor what a model reserves: both come from other files, or are assumed and marked so.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from htpsim.errors import HtpsimError, ScenarioError, unknown_name
from htpsim.scenario.file import load
from htpsim.scenario.quantities import write
from htpsim.units import NS_PER_MS, NS_PER_S, NS_PER_US

if TYPE_CHECKING:
    from htpsim.formats import ContextInfo, Throughput, ThroughputThread

ASSUMED_NS: Final = 10 * NS_PER_MS
"""Time of an execution where nothing gives one."""

_FREE: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_SIZES: Final = {
    "weights": "weights_bytes",
    "run_list": "run_list_bytes",
    "io": "io_bytes",
    "spill_fill": "spill_fill_bytes",
    "vtcm_backup": "vtcm_backup_bytes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSources:
    """What is known of one model beside the configuration."""

    time_ns: int | None = None
    """Time of an execution alone [ns], as somebody says."""

    profile: Path | None = None
    """A measurement with its time."""

    graph: str | None = None
    """Which graph of that measurement."""

    binary: Path | None = None
    """What qnn-context-binary-utility says of its binary."""


@dataclass(slots=True)
class Imported:
    """A scenario as text, and what a user should know of it."""

    text: str = ""
    notes: list[str] = field(default_factory=list)


def import_throughput(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    models: Mapping[str, ModelSources] | None = None,
    preset: str | None = None,
) -> tuple[str, ...]:
    """Write a scenario file of a configuration of qnn-throughput-net-run; return what a user should know of it.

    Parameters
    ----------
    path
        The configuration.
    output
        The scenario file. It is loaded before it takes this name, so it is whole and valid or not there.
    models
        By the name that the configuration gives a model: where its time and its memory come from.
    preset
        Name of a device's preset; by default a device of one core with every parameter at its default.

    Raises
    ------
    FormatError
        When the configuration, or what qnn-context-binary-utility says of a binary, cannot be read.
    ScenarioError
        When what comes of it is no valid scenario.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> text = '''{"backends": [{"backendName": "htp"}], "models": [{"modelName": "vit"}],
    ... "contexts": [{"contextName": "c"}], "testCase": {"threads": [
    ... {"threadName": "t", "backend": "htp", "context": "c", "model": "vit", "loopUnit": "second", "loop": 10}]}}'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path, scenario = pathlib.Path(folder, "t.json"), pathlib.Path(folder, "t.toml")
    ...     _ = path.write_text(text)
    ...     _ = import_throughput(path, scenario, {"vit": ModelSources(time_ns=5_000_000)})
    ...     load(scenario).base.clients[0].model.graphs[0].service.mean
    5000000
    """
    from htpsim.formats import throughput_facts

    config = throughput_facts(path)
    made = _scenario(Path(path).name, config, dict(models or {}), Path(output), preset)
    _write(made.text, Path(output))
    return tuple(made.notes)


def _write(text: str, output: Path) -> None:
    """Load the text from beside its place, because profiles are found from there; then give it its name."""
    draft = output.with_name(f".{output.name}.{secrets.token_hex(4)}.toml")
    try:
        draft.write_text(text, encoding="utf-8", newline="\n")
        load(draft)
        draft.replace(output)
    except ScenarioError as error:
        raise ScenarioError(*(problem.replace(str(draft), str(output)) for problem in error.problems)) from error
    finally:
        draft.unlink(missing_ok=True)


def _scenario(
    name: str, config: Throughput, sources: dict[str, ModelSources], output: Path, preset: str | None
) -> Imported:
    made = Imported()
    threads = [thread for thread in config.threads if thread.backend.is_htp]
    used = list(dict.fromkeys(thread.model.name.value for thread in threads))
    for model in sources:
        if model not in used:
            raise HtpsimError(unknown_name(f"{name}: model", model, used))
    if not threads:
        raise HtpsimError(f"{name}: got no thread on the HTP, expected at least one")
    left_out = [thread.name.value for thread in config.threads if not thread.backend.is_htp]
    if left_out:
        made.notes.append(f"not on the HTP, so left out: {', '.join(left_out)}")
    names = _names(used, "models", made.notes)
    known = {model: sources.get(model, ModelSources()) for model in used}
    times = {model: _time_ns(known[model]) for model in used}
    lines = [
        "#:schema ./scenario.schema.json",
        f"# Made of {_quoted(name)}, a configuration of qnn-throughput-net-run. The threads are of one process, on the",
        "# path past the guard; each has a copy of its model, where the tool lets threads of one context share it.",
        f"title = {_quoted(f'The threads of {name}')}",
        'question = "How do the threads of a throughput test share the HTP?"',
        "",
        *_run(threads, times, made.notes),
        "[device]",
        f"preset = {_quoted(preset)}" if preset else "cores = 1 # the configuration names no chip",
    ]
    for model in used:
        lines += ["", *_model(model, names[model], known[model], output, made.notes)]
    clients = _names([thread.name.value for thread in threads], "clients", made.notes)
    for thread in threads:
        lines += ["", *_client(thread, clients[thread.name.value], names[thread.model.name.value])]
    if any(thread.interval and thread.interval.value for thread in threads):
        made.notes.append("an interval is taken as a pause after each execution; assumed, as no document says")
    made.text = "\n".join(lines) + "\n"
    return made


def _time_ns(known: ModelSources) -> int:
    """Return the time of an execution [ns], for the length of the run only."""
    from htpsim.formats import service_time_ns

    if known.profile is not None:
        return service_time_ns(known.profile, known.graph).value_ns
    return ASSUMED_NS if known.time_ns is None else known.time_ns


def _run(threads: Iterable[ThroughputThread], times: Mapping[str, int], notes: list[str]) -> list[str]:
    """Run for as long as the longest loop; a counted one for as long as it takes alone."""
    longest_ns, counted = 0, False
    for thread in threads:
        pause_ns = thread.interval.value * NS_PER_US if thread.interval else 0
        loops = thread.loop.value if thread.loop else 1
        is_counted = thread.loop_unit is None or thread.loop_unit.value == "count"
        one_ns = times[thread.model.name.value] + pause_ns if is_counted else NS_PER_S
        counted = counted or is_counted
        longest_ns = max(longest_ns, loops * one_ns)
    length_ns = min(max(longest_ns, NS_PER_S), 3600 * NS_PER_S)
    if length_ns < longest_ns:
        notes.append("the loops take more than an hour: one hour is simulated")
    if counted:
        notes.append("a loop counted in executions runs for the time that they take alone, and goes on until the end")
    reason = "as long as the longest loop of the test case"
    return [
        "[run]",
        f"duration = {_quoted(str(write(length_ns, 'ns')))} # {reason}",
        "warmup = 0",
        "replications = 1 # nothing is drawn",
        "",
    ]


def _model(model: str, name: str, known: ModelSources, output: Path, notes: list[str]) -> list[str]:
    lines = [f"[models.{_quoted(name)}]", 'role = "other"', "", f"[[models.{_quoted(name)}.contexts]]"]
    lines += [f"name = {_quoted(name)}", *_context(model, known.binary, notes)]
    lines += ["", f"[[models.{_quoted(name)}.graphs]]", f"name = {_quoted(name)}", f"context = {_quoted(name)}"]
    if known.profile is not None:
        graph = f", graph = {_quoted(known.graph)}" if known.graph else ""
        return [*lines, f"service = {{ profile = {_quoted(_relative(known.profile, output))}{graph} }}"]
    time_ns, source = known.time_ns, "given by hand"
    if time_ns is None:
        time_ns, source = ASSUMED_NS, "nothing gives it: put the time of your own model here"
        notes.append(f"how long {model} takes is not known: {write(ASSUMED_NS, 'ns')} is assumed")
    value = _quoted(str(write(time_ns, "ns")))
    return [*lines, f'service = {{ value = {value}, mark = "assumed", source = {_quoted(source)} }}']


def _context(model: str, binary: Path | None, notes: list[str]) -> list[str]:
    if binary is None:
        notes.append(f"what {model} reserves is not known: its memory is left at zero")
        return []
    from htpsim.formats import context_facts

    info: ContextInfo = context_facts(binary)
    lines = []
    for key, attribute in _SIZES.items():
        size = getattr(info, attribute)
        if size is None:
            notes.append(f"{binary.name} does not state {key}: it is left at zero")
        else:
            source = f"{binary.name}: {attribute} of {len(info.graphs)} graphs"
            value = _quoted(str(write(size, "bytes"))) if size else "0"
            lines.append(f'{key} = {{ value = {value}, mark = "derived", source = {_quoted(source)} }}')
    if info.blob is not None:
        value = _quoted(str(write(info.blob.value, "bytes"))) if info.blob.value else "0"
        source = f"{binary.name}:{info.blob.line}"
        lines.append(f'file = {{ value = {value}, mark = "measured", source = {_quoted(source)} }}')
    return lines


def _client(thread: ThroughputThread, name: str, model: str) -> list[str]:
    pause_ns = thread.interval.value * NS_PER_US if thread.interval else 0
    priority = thread.context.priority.value if thread.context.priority else "NORMAL"
    think = _quoted(str(write(pause_ns, "ns"))) if pause_ns else "0 # back to back"
    return [
        "[[clients]]",
        f"name = {_quoted(name)}",
        f"model = {_quoted(model)}",
        'path = "qnn"',
        f"priority = {_quoted(priority)}",
        f"outstanding = {thread.outstanding}",
        "",
        "[clients.arrivals]",
        'kind = "closed"',
        f"think = {think}",
    ]


def _names(given: list[str], kind: str, notes: list[str]) -> dict[str, str]:
    """Return names that a scenario file may have, each once."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in given:
        base = _FREE.sub("_", name).lstrip(".-")[:100] or kind
        free, count = base, 1
        while free in taken:
            count += 1
            free = f"{base}_{count}"
        taken.add(free)
        found[name] = free
        if free != name:
            notes.append(f"{kind}: {_quoted(name)} is called {free}")
    return found


def _quoted(text: str) -> str:
    r"""Write text as TOML does; JSON's escapes are TOML's, but for DEL, which may not stand bare.

    >>> _quoted('a "b"\x7f')
    '"a \\"b\\"\\u007f"'
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _relative(path: Path, output: Path) -> str:
    """Return a path as it is seen from the scenario file."""
    try:
        return Path(os.path.relpath(path, output.parent)).as_posix()
    except ValueError:  # another drive
        return path.absolute().as_posix()
