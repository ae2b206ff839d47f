"""htp_backend_ext_config.json: the HTP settings of qnn-net-run and Genie, and the wrapper that points to them.

The inner file lists devices with cores, graphs with VTCM and HVX, and context options. The wrapper
(``backend_extensions``) only names the inner file. Files in the wild are irregular: ``graphs`` as an object or a
list, ``context`` likewise, floats for whole numbers, core ids on the device instead of in ``cores``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from htpsim.formats import jsontext
from htpsim.formats.form import Format, Match
from htpsim.formats.source import Source
from htpsim.formats.tree import Node, few
from htpsim.formats.values import Fact, Report, Value, row

NAME: Final = "htp-backend-ext"

_EXPECTED: Final = "a htp_backend_ext_config.json with 'devices', 'graphs', 'context' or 'backend_extensions'"
_KNOWN: Final = frozenset({"devices", "graphs", "context", "memory", "groupContext", "backend_extensions"})
_KEYS: Final = re.compile(
    r'"(?:backend_extensions|devices|graphs|context|memory|groupContext|weight_sharing_enabled'
    r'|dsp_arch|soc_model|soc_id|graph_names|cores|core_id|perf_profile|vtcm_mb|hvx_threads)"\s*:'
)
_SURE: Final = re.compile(r'"(?:backend_extensions|dsp_arch|soc_model|soc_id|core_id|weight_sharing_enabled)"\s*:')
_TYPICAL_MIN: Final = 2
"""Files without any of the sure keys have at least so many of the others, such as ``devices`` with ``cores``."""
_OTHERS: Final = ("dialog", "htpsim_trace")
"""Keys of other formats in which a device is described too."""


@dataclass(frozen=True, slots=True)
class Core:
    """One entry of a device's ``cores``."""

    line: int
    core_id: Value[int] | None
    perf_profile: Value[str] | None
    rpc_control_latency: Value[int] | None
    rpc_polling_time: Value[int] | None


@dataclass(frozen=True, slots=True)
class Device:
    """One entry of ``devices``."""

    line: int
    device_id: Value[int] | None
    soc_id: Value[int] | None
    soc_model: Value[int] | None
    arch: Value[str] | None
    pd_session: Value[str] | None
    cores: tuple[Core, ...]
    core_ids: tuple[Value[int], ...]
    """Where they stand on the device itself, as older files write them."""

    @property
    def core_count(self) -> int:
        """How many cores the file lists for this device; a device without a list counts none."""
        return max(len(self.cores), len(self.core_ids))


@dataclass(frozen=True, slots=True)
class Graphs:
    """One entry of ``graphs``: settings for the graphs that it names."""

    line: int
    names: tuple[Value[str], ...]
    vtcm_mb: Value[int] | None
    hvx_threads: Value[int] | None
    optimisation: Value[int | float] | None
    fp16_relaxed_precision: Value[bool] | None
    num_cores: Value[int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendExt:
    """One file. Each value is ``None`` where the file does not state it."""

    wrapper: bool
    inner: Value[str] | None
    """Path of the inner file, where this is a wrapper."""

    devices: tuple[Device, ...] | None
    graphs: tuple[Graphs, ...]
    graphs_is_object: bool
    weight_sharing: Value[bool] | None
    """As the file states it; whether weights are shared was decided when the binary was built."""

    share_resources: Value[bool] | None
    """``groupContext.share_resources``: another thing than weight sharing."""

    mem_type: Value[str] | None
    unread: tuple[str, ...]

    @property
    def cores_per_device(self) -> tuple[int, ...] | None:
        """Cores that the file lists, by device; ``None`` when it has no ``devices``."""
        return None if self.devices is None else tuple(device.core_count for device in self.devices)

    @property
    def cores(self) -> int | None:
        """The largest count of any device, not their sum: what runs together runs on one device."""
        return max(self.cores_per_device) if self.cores_per_device else None

    @property
    def soc_id(self) -> Value[int] | None:
        """The first stated."""
        return next((device.soc_id for device in self.devices or () if device.soc_id), None)

    @property
    def soc_model(self) -> Value[int] | None:
        """The first stated."""
        return next((device.soc_model for device in self.devices or () if device.soc_model), None)

    @property
    def arch(self) -> Value[str] | None:
        """The first stated ``dsp_arch``."""
        return next((device.arch for device in self.devices or () if device.arch), None)

    @property
    def perf_profile(self) -> Value[str] | None:
        """The first stated, of any core."""
        cores = [core for device in self.devices or () for core in device.cores]
        return next((core.perf_profile for core in cores if core.perf_profile is not None), None)


def sniff(source: Source) -> Match:
    """Say whether this is such a file, even when it is a template and no valid JSON."""
    keys = {match[0] for match in _KEYS.finditer(source.text)}
    sure = _SURE.search(source.text) is not None
    if source.text.lstrip().startswith("{") and (sure or len(keys) >= _TYPICAL_MIN):
        return Match.TRACES if any(f'"{other}"' in source.text for other in _OTHERS) else Match.YES
    return Match.TRACES if sure and len(keys) >= _TYPICAL_MIN else Match.NO


def read(source: Source, lenient: bool = False) -> Report:
    """Read a file.

    Parameters
    ----------
    source
        The text.
    lenient
        Makes no difference: JSON is either well formed or not.

    Raises
    ------
    FormatError
        Names line and column of what is no JSON, or the place of a value of the wrong kind.

    Examples
    --------
    >>> from htpsim.formats.source import from_text
    >>> read(from_text("h.json", '{"devices": [{"cores": [{}, {}]}]}')).data.cores
    2
    """
    data = parse(source)
    return Report(NAME, source.name, data, _facts(data), source.notes + _warnings(data))


def parse(source: Source) -> BackendExt:
    """Return the content; raises as :func:`read` does."""
    root = jsontext.parse(source, _EXPECTED)
    if not isinstance(root.value, dict) or not _KNOWN & set(root.value):
        root.refuse(_EXPECTED)
    wrapper = root.find("backend_extensions")
    devices, graphs = root.find("devices"), root.find("graphs")
    context = root.find("context")
    sharing = [value for item in (context.items() if context else []) if (value := item.flag("weight_sharing_enabled"))]
    return BackendExt(
        wrapper=wrapper is not None,
        inner=wrapper.text("config_file_path") if wrapper else None,
        devices=tuple(_device(item) for item in devices.items()) if devices else None,
        graphs=tuple(_graphs(item) for item in graphs.items()) if graphs else (),
        graphs_is_object=graphs is not None and isinstance(graphs.value, dict),
        weight_sharing=sharing[0] if sharing else None,
        share_resources=root.flag("groupContext", "share_resources"),
        mem_type=root.text("memory", "mem_type"),
        unread=tuple(root.unread(_KNOWN)),
    )


def _device(node: Node) -> Device:
    cores, ids = node.find("cores"), node.find("core_id")
    return Device(
        line=node.line,
        device_id=node.whole("device_id"),
        soc_id=node.whole("soc_id"),
        soc_model=node.whole("soc_model"),
        arch=node.text("dsp_arch"),
        pd_session=node.text("pd_session"),
        cores=tuple(_core(item) for item in cores.items()) if cores else (),
        core_ids=tuple(value for item in (ids.items() if ids else []) if (value := item.whole())),
    )


def _core(node: Node) -> Core:
    return Core(
        line=node.line,
        core_id=node.whole("core_id"),
        perf_profile=node.text("perf_profile"),
        rpc_control_latency=node.whole("rpc_control_latency", unit="us"),
        rpc_polling_time=node.whole("rpc_polling_time", unit="us"),
    )


def _graphs(node: Node) -> Graphs:
    names = node.find("graph_names")
    return Graphs(
        line=node.line,
        names=tuple(value for item in (names.items() if names else []) if (value := item.text())),
        vtcm_mb=node.whole("vtcm_mb", unit="MB"),
        hvx_threads=node.whole("hvx_threads", unit="count"),
        optimisation=node.number("O"),
        fp16_relaxed_precision=node.flag("fp16_relaxed_precision"),
        num_cores=node.whole("num_cores", unit="count"),
    )


def _facts(data: BackendExt) -> tuple[Fact, ...]:
    rows = [Fact("file", "form", "wrapper" if data.wrapper else "inner")]
    if data.wrapper:
        rows.append(row("file", "inner file", data.inner))
    for number, device in enumerate(data.devices or ()):
        place = f"device {number}"
        listed = "" if device.core_count else "the file lists none"
        rows += [
            row(place, "device id", device.device_id),
            row(place, "SoC id", device.soc_id),
            row(place, "SoC model", device.soc_model),
            row(place, "architecture", device.arch),
            Fact(place, "cores", device.core_count, "count", device.line, listed),
        ]
        for core in device.cores:
            name = f"core {core.core_id.value}" if core.core_id else "core without id"
            rows += [
                row(place, f"{name}, performance profile", core.perf_profile),
                row(place, f"{name}, RPC control latency", core.rpc_control_latency),
            ]
    for item in data.graphs:
        place = f"graphs {', '.join(name.value for name in item.names) or 'without names'}"
        rows += [
            row(place, "VTCM", item.vtcm_mb),
            row(place, "HVX threads", item.hvx_threads),
            row(place, "optimisation", item.optimisation),
            row(place, "relaxed fp16", item.fp16_relaxed_precision),
            row(place, "cores", item.num_cores),
        ]
    note = "" if data.weight_sharing is None else "decided when the binary was built"
    rows += [
        Fact("file", "cores (largest of any device)", data.cores, "count" if data.cores is not None else ""),
        row("context", "weight sharing", data.weight_sharing, note or "not in the file"),
        row("group context", "share resources", data.share_resources, "not weight sharing"),
        row("memory", "type", data.mem_type),
    ]
    return tuple(rows)


def _warnings(data: BackendExt) -> tuple[str, ...]:
    notes = []
    if data.weight_sharing is not None and not data.weight_sharing.value:
        notes.append(
            f"line {data.weight_sharing.line}: weight_sharing_enabled is false. Sharing between graphs is a property "
            "of the binary, decided when it was built: read at run time, this doubles nothing"
        )
    if data.wrapper and data.devices is None:
        inner = data.inner.value if data.inner else "no file"
        notes.append(f"a wrapper: devices and cores are in the file that it points to ({inner})")
    if data.cores == 0:
        notes.append("no device lists cores: how many the chip has is not in this file")
    if data.devices is not None and len(data.devices) > 1:
        counts = " and ".join(map(str, data.cores_per_device or ()))
        notes.append(f"{len(data.devices)} devices with {counts} cores: the count reported is the largest, not the sum")
    if data.unread:
        notes.append(f"keys not read: {few(data.unread)}")
    return tuple(notes)


FORMAT: Final = Format(
    NAME,
    "HTP backend extensions",
    "htp_backend_ext_config.json: SoC, architecture, cores by device, VTCM and HVX by graph, weight sharing",
    sniff,
    read,
)
