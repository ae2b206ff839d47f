"""What a scenario takes from the user's own configuration files and measurements, each with the line it stands in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from htpsim.errors import FormatError, ScenarioError
from htpsim.scenario.distributions import Profile
from htpsim.scenario.quantities import write


def _stated(value: Any, path: str, source: str) -> dict[str, Any]:
    return {"value": value, "source": _without_folder(path, source), "mark": "measured"}


def _without_folder(path: str, source: str) -> str:
    """Return where a value stands without the folders, which differ from one machine to the next."""
    return source.replace(path, Path(path).name, 1)


def model_table(path: str) -> dict[str, Any]:
    """Return the keys of a model that a genie_config.json states: context length, how files load, the contexts' names.

    Raises
    ------
    ScenarioError
        When the file cannot be read; the message names its line.
    """
    from htpsim.formats import model_facts

    try:
        facts = model_facts(path)
    except FormatError as error:
        raise ScenarioError(f"got a file that cannot be read, expected a genie_config.json ({error})") from error
    table: dict[str, Any] = {}
    if facts.context_tokens is not None:
        table["context_tokens"] = _stated(facts.context_tokens.value, facts.path, facts.source("context_tokens"))
    if facts.mmap is not None:
        table["load"] = _stated("mmap" if facts.mmap.value else "read", facts.path, facts.source("mmap"))
    if facts.ctx_bins:
        table["contexts"] = [{"name": f"part{i}"} for i in range(len(facts.ctx_bins))]
    return table


def device_table(path: str) -> dict[str, Any]:
    """Return the keys of a device that a htp_backend_ext_config.json states: architecture, cores, topology.

    The count of cores is the largest of any device in the file, not their sum; several devices of one core each are
    as many cores in topology ``device-per-core``. ``weight_sharing_enabled`` was decided when the binary was built,
    so nothing follows from it here.

    Raises
    ------
    ScenarioError
        When the file cannot be read; the message names its line.
    """
    from htpsim.formats import device_facts

    try:
        facts = device_facts(path)
    except FormatError as error:
        raise ScenarioError(
            f"got a file that cannot be read, expected a htp_backend_ext_config.json ({error})"
        ) from error
    table: dict[str, Any] = {}
    if facts.arch is not None:
        table["arch"] = _stated(facts.arch.value, facts.path, facts.source("arch"))
    listed = facts.cores_per_device or ()
    if len(listed) > 1 and set(listed) == {1}:
        table["cores"] = _stated(len(listed), facts.path, f"{facts.path}: devices")
        table["topology"] = _stated("device-per-core", facts.path, f"{facts.path}: devices")
    elif facts.cores:
        table["cores"] = _stated(facts.cores, facts.path, f"{facts.path}: devices, the largest count of any")
    return table


def vtcm_table(path: str) -> dict[str, dict[str, Any]]:
    """Return what a htp_backend_ext_config.json states as ``vtcm_mb``, by graph; 0, for all there is, states nothing.

    Raises
    ------
    ScenarioError
        When the file cannot be read; the message names its line.
    """
    from htpsim.formats import device_facts

    try:
        facts = device_facts(path)
    except FormatError as error:
        raise ScenarioError(str(error)) from error
    return {
        name: _stated(write(size.value, "bytes"), facts.path, f"{facts.path}:{size.line}")
        for name, size in facts.vtcm_bytes
        if size.value
    }


def service_time(profile: Profile) -> tuple[int, str]:
    """Return the service time [ns] that a profile gives, and where it stands.

    Raises
    ------
    ScenarioError
        When there is none, or several.
    """
    from htpsim.formats import service_time_ns

    query = profile.model_dump(exclude={"profile", "graph", "statistic", "event"}, exclude_none=True)
    try:
        found = service_time_ns(
            profile.profile, graph=profile.graph, statistic=profile.statistic, event=profile.event, **query
        )
    except FormatError as error:
        raise ScenarioError(f"got a profile without that time, expected one ({error})") from error
    return found.value_ns, _without_folder(profile.profile, found.source)
