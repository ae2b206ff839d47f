"""What a scenario can take from the user's own configuration files: facts of a model, facts of a device."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from htpsim.errors import FormatError
from htpsim.formats import genie_config, htp_backend_ext, qnn_context_info, qnn_throughput
from htpsim.formats.source import load, shown
from htpsim.formats.values import Value

BYTES_PER_VTCM_MB = 2**20
"""``vtcm_mb`` counts in units of 2^20: 8 is 8388608 bytes in the tools' own logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What a genie_config.json says of a model; ``None`` where it says nothing."""

    path: str
    context_tokens: Value[int] | None
    max_num_tokens: Value[int] | None
    ctx_bins: tuple[Value[str], ...]
    splits: int | None
    """How many context binaries; ``None`` when the file names none."""

    mmap: Value[bool] | None
    poll: Value[bool] | None
    async_init: Value[bool] | None
    n_threads: Value[int] | None
    kv_dim: Value[int] | None
    graph_switching: Value[bool] | None
    embedding_size: Value[int] | None
    """Stated by the text half of a vision-language model."""

    vision_height: Value[int] | None
    vision_width: Value[int] | None
    extensions: Value[str] | None
    placeholders: bool

    def source(self, name: str) -> str:
        """Return "file:line" of a fact, for the scenario's ``source``; "" for what the file does not state."""
        return _source(self.path, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """What a htp_backend_ext_config.json says of a device; ``None`` where it says nothing."""

    path: str
    """The inner file, where a wrapper was given."""

    arch: Value[str] | None
    soc_id: Value[int] | None
    soc_model: Value[int] | None
    cores: int | None
    """The largest count of any device; ``None`` where no device lists cores, for then the chip's own is not known."""

    cores_per_device: tuple[int, ...] | None
    vtcm_bytes: tuple[tuple[str, Value[int]], ...]
    """By graph."""

    hvx_threads: tuple[tuple[str, Value[int]], ...]
    """By graph."""

    perf_profile: Value[str] | None
    weight_sharing: Value[bool] | None
    """As the file states it. A property of the binary, so nothing in a simulation follows from it."""

    def source(self, name: str) -> str:
        """Return "file:line" of a fact, for the scenario's ``source``; "" for what the file does not state."""
        return _source(self.path, getattr(self, name))


def _source(path: str, value: Any) -> str:
    return f"{path}:{value.line}" if isinstance(value, Value) else ""


def model_facts(path: str | os.PathLike[str]) -> ModelFacts:
    """Read what a genie_config.json says of a model.

    Raises
    ------
    FormatError
        When the file is not such a configuration.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "genie_config.json")
    ...     _ = path.write_text('{"dialog": {"context": {"size": 4096}}}')
    ...     model_facts(path).context_tokens
    Value(value=4096, unit='tokens', line=1)
    """
    config = genie_config.parse(load(path))
    engine = config.engine
    return ModelFacts(
        path=os.fspath(path),
        context_tokens=config.context_size,
        max_num_tokens=config.max_num_tokens,
        ctx_bins=config.ctx_bins,
        splits=len(config.ctx_bins) or None,
        mmap=engine.mmap if engine else None,
        poll=engine.poll if engine else None,
        async_init=engine.async_init if engine else None,
        n_threads=engine.n_threads if engine else None,
        kv_dim=engine.kv_dim if engine else None,
        graph_switching=engine.graph_switching if engine else None,
        embedding_size=config.embedding_size,
        vision_height=engine.vision_height if engine else None,
        vision_width=engine.vision_width if engine else None,
        extensions=engine.extensions if engine else None,
        placeholders=bool(config.placeholders),
    )


def device_facts(path: str | os.PathLike[str]) -> DeviceFacts:
    """Read what a htp_backend_ext_config.json says of a device; a wrapper is followed to its inner file.

    Raises
    ------
    FormatError
        When the file is not such a configuration, or a wrapper points to a file that is not there.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "htp_backend_ext_config.json")
    ...     _ = path.write_text('{"devices": [{"cores": [{"core_id": 0}, {"core_id": 1}]}]}')
    ...     device_facts(path).cores
    2
    """
    name = os.fspath(path)
    data = htp_backend_ext.parse(load(path))
    if data.wrapper and data.devices is None:
        name = _inner(name, data)
        data = htp_backend_ext.parse(load(name))
        if data.wrapper and data.devices is None:
            raise FormatError(f"{name}: got another wrapper, expected the file with 'devices'")
    return DeviceFacts(
        path=name,
        arch=data.arch,
        soc_id=data.soc_id,
        soc_model=data.soc_model,
        cores=data.cores or None,
        cores_per_device=data.cores_per_device,
        vtcm_bytes=tuple(
            (graph.value, Value(item.vtcm_mb.value * BYTES_PER_VTCM_MB, "bytes", item.vtcm_mb.line))
            for item in data.graphs
            if item.vtcm_mb is not None
            for graph in item.names
        ),
        hvx_threads=tuple(
            (graph.value, item.hvx_threads)
            for item in data.graphs
            if item.hvx_threads is not None
            for graph in item.names
        ),
        perf_profile=data.perf_profile,
        weight_sharing=data.weight_sharing,
    )


def throughput_facts(path: str | os.PathLike[str]) -> qnn_throughput.Throughput:
    """Read who runs what in a configuration of qnn-throughput-net-run.

    Raises
    ------
    FormatError
        When the file is not such a configuration.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "config.json")
    ...     _ = path.write_text('{"backends": [{"backendName": "htp"}], "testCase": {"threads": []}}')
    ...     throughput_facts(path).backends[0].is_htp
    True
    """
    return qnn_throughput.parse(load(path))


def context_facts(path: str | os.PathLike[str]) -> qnn_context_info.ContextInfo:
    """Read what a context binary reserves, from the JSON of qnn-context-binary-utility.

    Raises
    ------
    FormatError
        When the file is not such a JSON.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "info.json")
    ...     _ = path.write_text(
    ...         '{"info": {"graphs": [{"info": {"graphName": "vit", "graphBlobInfo": {"info": {"vtcmSize": 8}}}}]}}'
    ...     )
    ...     context_facts(path).vtcm_backup_bytes
    8388608
    """
    return qnn_context_info.parse(load(path))


def _inner(name: str, wrapper: htp_backend_ext.BackendExt) -> str:
    """Find the inner file: as written, from the folder of the wrapper."""
    if wrapper.inner is None:
        raise FormatError(f"{name}: got a wrapper without config_file_path, expected the path of the inner file")
    folder = Path(name).parent
    written = wrapper.inner.value
    place = f"{name}:{wrapper.inner.line}"
    path = folder / written.replace("\\", "/")
    try:
        there, inside = path.is_file(), path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError) as error:  # a name too long, a NUL in it, links in a circle
        raise FormatError(f"{place}: got {shown(written)}, which is no path ({error}), expected a file") from error
    if not there:
        raise FormatError(
            f"{place}: got {shown(written)}, which is not here, expected a file; give the inner file itself"
        )
    if not inside:
        raise FormatError(
            f"{place}: got {shown(written)}, which leads out of the folder, expected a file in it; give the inner file "
            "itself"
        )
    return os.fspath(path)
