"""What configurations and the user's own table hold for a calibration: contexts, cores, and the sizes of binaries."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast, get_args

from htpsim.errors import HtpsimError, unknown_name
from htpsim.experiments.calibrate.evidence import ContextBytes, Evidence, Mark, Origin, Role, Stated, plain_name
from htpsim.formats import Report, device_facts, model_facts
from htpsim.formats.configured import context_facts
from htpsim.formats.genie_config import GenieConfig
from htpsim.formats.genie_console import variant_of
from htpsim.formats.qnn_context_log import ContextLog
from htpsim.scenario.configs import device_table, model_table
from htpsim.scenario.document import read_toml
from htpsim.scenario.quantities import parse

TERMS: Final = ("weights", "run_list", "io", "spill_fill", "vtcm_backup", "file")
"""Keys of a context that hold bytes."""

ROLES: Final = get_args(Role)


def take_model(report: Report, evidence: Evidence) -> None:
    """Take a genie_config.json: of a dialog the LLM's context, of an image encoder the ViT's binaries."""
    config: GenieConfig = report.data
    facts = model_facts(report.path)
    role: Role = "vit" if config.root == "image-encoder" else "llm"
    if role == "llm":
        for key, given in model_table(report.path).items():
            if key != "contexts":
                evidence.state(evidence.llm, key, _stated(given))
        if facts.ctx_bins:
            lines = [value.line for value in facts.ctx_bins]
            origin = Origin(report.path, min(lines), max(lines), "context binaries")
            evidence.parts = Stated(len(facts.ctx_bins), origin)
    for number, binary in enumerate(facts.ctx_bins):
        path = Path(report.path).parent / binary.value.replace("\\", "/")
        if path.is_file():
            origin = Origin(report.path, binary.line, what=f"size of {path.name}")
            size = Stated(path.stat().st_size, origin, unit="bytes")
            weights = Stated(size.value, origin, "derived", "bytes", note="taken to be weights, all of it")
            name = f"part{number}" if role == "llm" else f"vit{number}" if len(facts.ctx_bins) > 1 else "vit"
            evidence.contexts.append(
                ContextBytes(role=role, name=name, graphs=(), terms={"weights": weights, "file": size})
            )
    if config.placeholders:
        evidence.warn(f"{Origin(report.path, config.placeholders[0].line)}: paths are still to be filled in")


def take_device(report: Report, evidence: Evidence) -> None:
    """Take a htp_backend_ext_config.json."""
    for key, given in device_table(report.path).items():
        evidence.state(evidence.device, key, _stated(given))
    facts = device_facts(report.path)
    soc = facts.soc_model or facts.soc_id
    if soc is not None:
        evidence.chips.append((f"SoC {soc.value}", Origin(facts.path, soc.line, what="SoC")))


def take_context(report: Report, role: Role, evidence: Evidence) -> None:
    """Take what qnn-context-binary-utility says that a binary reserves."""
    info = context_facts(report.path)
    names = tuple(graph.name.value for graph in info.graphs)
    variants = [found for name in names if (found := variant_of(name)) is not None]
    lines = [graph.name.line for graph in info.graphs]
    terms = {}
    for key in TERMS[:-1]:
        nbytes = getattr(info, f"{key}_bytes")
        if nbytes is not None:
            what = f"{key.replace('_', ' ')} of {len(names)} graph{'s' * (len(names) > 1)}"
            terms[key] = Stated(nbytes, Origin(report.path, min(lines), max(lines), what), "derived", "bytes")
    if info.blob is not None:
        terms["file"] = Stated(info.blob.value, Origin(report.path, info.blob.line, what="size of the binary"),
                               unit="bytes")  # fmt: skip
    if variants:
        evidence.contexts.append(ContextBytes(role="llm", name=f"part{variants[0][0].split}", graphs=(), terms=terms))
    else:
        own: Role | None = "vit" if role == "vit" else None
        evidence.contexts.append(ContextBytes(role=own, name=plain_name(names[0], 0), graphs=names, terms=terms))
    if info.dsp_arch is not None:
        origin = Origin(report.path, info.dsp_arch.line, what="architecture")
        evidence.state(evidence.device, "arch", Stated(f"v{info.dsp_arch.value}", origin))
    if info.soc_model is not None:
        evidence.chips.append((f"SoC {info.soc_model.value}", Origin(report.path, info.soc_model.line, what="SoC")))


def take_generator(report: Report, role: Role, evidence: Evidence) -> None:
    """Take what the compiler counts an execution to move over DRAM; it does not say of which graph."""
    log: ContextLog = report.data
    for graph in log.graphs:
        if graph.dram_bytes and graph.read_total_bytes is not None:
            what = "bytes read and written in one execution, by the compiler's count"
            origin = Origin(report.path, graph.read_total_bytes.line, what=what)
            evidence.dram.append((role, Stated(graph.dram_bytes, origin, "derived", "bytes")))


def _stated(given: Mapping[str, Any]) -> Stated:
    return Stated(given["value"], Origin(given["source"]), cast(Mark, given["mark"]))


def take_sizes(sizes: str | os.PathLike[str] | None, given: Sequence[str], evidence: Evidence) -> None:
    """Take sizes that no log states: of a small TOML table, and of assignments such as ``vit.weights=406MiB``.

    A key is ROLE.TERM where the role has one context, or for an LLM the sum over its contexts; ROLE.CONTEXT.TERM
    otherwise. ``llm.kv`` is the KV cache of an instance.

    Raises
    ------
    HtpsimError
        Names a key that is none, or what is no size.
    """
    found: dict[tuple[str, str], dict[str, Stated]] = {}
    if sizes is not None:
        name = os.fspath(sizes)
        evidence.files.append(Path(name).name)
        for role, table in read_toml(Path(sizes)).items():
            if not isinstance(table, dict):
                raise HtpsimError(f"{name}: {role}: got a value, expected tables [vit] or [llm.part0]")
            for key, value in table.items():
                inner = value if isinstance(value, dict) else {key: value}
                for term, size in inner.items():
                    context = key if isinstance(value, dict) else ""
                    _size(found, (role, context, term), size, Origin(name, what="size"), name, evidence)
    for assignment in given:
        path, sign, size = assignment.partition("=")
        parts = path.strip().split(".")
        if not sign or len(parts) not in (2, 3):
            raise HtpsimError(f"--bytes: got '{assignment}', expected ROLE.TERM=SIZE, such as vit.weights=406MiB")
        key = (parts[0], parts[1] if len(parts) == 3 else "", parts[-1])
        _size(found, key, size.strip(), Origin("given by hand"), "--bytes", evidence)
    for (role, context), terms in found.items():
        evidence.contexts.append(ContextBytes(role=cast(Role, role), name=context, graphs=(), terms=terms))


def _size(
    found: dict[tuple[str, str], dict[str, Stated]], key: tuple[str, str, str], size: Any, origin: Origin, where: str,
    evidence: Evidence,
) -> None:  # fmt: skip
    role, context, term = key
    if role not in ROLES:
        raise HtpsimError(unknown_name(f"{where}: role", role, ROLES))
    if (role, context, term) != ("llm", "", "kv") and term not in TERMS:
        raise HtpsimError(unknown_name(f"{where}: {role}", term, [*TERMS, *["kv"] * (role == "llm")]))
    try:
        value = parse(size, "bytes")
    except ValueError as error:
        raise HtpsimError(f"{where}: {'.'.join(part for part in key if part)}: {error}") from error
    if value < 0:
        raise HtpsimError(f"{where}: {'.'.join(part for part in key if part)}: got {size}, expected a size from 0")
    stated = Stated(value, origin, unit="bytes")
    if term == "kv":
        evidence.llm["kv"] = stated
    else:
        found.setdefault((role, context), {})[term] = stated
