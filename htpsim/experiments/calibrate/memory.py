"""Contexts with their bytes, from logs, binaries on disk and the user's table; and how fast they load."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from htpsim.experiments.calibrate.evidence import ContextBytes, Evidence, Origin, Stated
from htpsim.units import NS_PER_S

_IMAGE: Final = re.compile(r"image|vision|vit|veg", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Named:
    """One context of the scenario."""

    name: str
    terms: dict[str, Stated]


@dataclass(frozen=True, slots=True)
class Contexts:
    """The contexts of one model, and which of them holds a graph, where that is known."""

    contexts: list[Named]
    of_graph: dict[str | None, str] = field(default_factory=dict)


def contexts_of(role: str, parts: int, graphs: Sequence[str | None], evidence: Evidence) -> Contexts:
    """Return the contexts of a model; those without bytes are there all the same, and a warning says so."""
    own = [item for item in evidence.contexts if item.role == role or (item.role is None and role != "llm")]
    own = [item for item in own if item.role == role or _belongs(item, graphs, role)]
    found = _of_llm(own, parts) if role == "llm" else _flat(own, role)
    lacking = [item.name for item in found.contexts if "weights" not in item.terms]
    if lacking:
        evidence.warn(
            f"{role}: no file states the bytes of {'its context' if len(lacking) == 1 else ', '.join(lacking)}, so its "
            f"memory counts as 0 and it loads at once (--bytes {role}.weights=SIZE)"
        )
    return found


def _belongs(item: ContextBytes, graphs: Sequence[str | None], role: str) -> bool:
    """Say whether a context of a log is this model's: by the graph it holds, or as the one picture model there is."""
    held = any(graph in graphs for graph in item.graphs)
    return held or (role == "vit" and any(_IMAGE.search(graph) for graph in item.graphs))


def _of_llm(own: Sequence[ContextBytes], parts: int) -> Contexts:
    """Return one context a part: by name, else in the order of the log; a sum is spread evenly."""
    terms: list[dict[str, Stated]] = [{} for _ in range(parts)]
    listed = iter(item for item in own if item.graphs)
    for table in terms:
        if (item := next(listed, None)) is not None:
            table.update(item.terms)
    for item in own:
        if not item.graphs and item.name.startswith("part") and item.name[4:].isdigit():
            number = int(item.name[4:])
            if number < parts:
                terms[number] |= item.terms
        elif not item.graphs:
            for table in terms:
                table.update({key: _share(stated, parts) for key, stated in item.terms.items()})
    return Contexts([Named(f"part{number}", table) for number, table in enumerate(terms)])


def _share(stated: Stated, parts: int) -> Stated:
    if parts == 1:
        return stated
    note = f"{stated.value} bytes, evenly over {parts} contexts"
    return Stated(int(stated.value) // parts, stated.origin, "derived", stated.unit, stated.n, note)


def _flat(own: Sequence[ContextBytes], role: str) -> Contexts:
    """Return the contexts in their order; what the user gave without a name is of the only one."""
    named = {item.name: dict(item.terms) for item in own if item.name}
    unnamed = [item for item in own if not item.name]
    if not named:
        named = {role: {}}
    for item in unnamed:
        next(iter(named.values())).update(item.terms)
    of_graph: dict[str | None, str] = {graph: item.name for item in own for graph in item.graphs}
    return Contexts([Named(name, terms) for name, terms in named.items()], of_graph)


def load_bandwidth(evidence: Evidence) -> Stated | None:
    """Return how fast binaries load, from loads whose bytes are known; ``None`` where there is none."""
    pairs = _matched(evidence)
    if not pairs:
        if evidence.loads:
            total = sum(int(spent.value) for _, spent in evidence.loads) / NS_PER_S
            evidence.warn(
                f"loading took {total:.2f} s, but of no load are the bytes known: no load bandwidth follows, and "
                "loading takes no time"
            )
        return None
    nbytes = sum(int(size.value) for size, _ in pairs)
    spent_ns = sum(int(spent.value) for _, spent in pairs)
    rate = nbytes * NS_PER_S // spent_ns
    first = pairs[0][1].origin
    what = f"{nbytes} bytes in {spent_ns / NS_PER_S:.3f} s, {len(pairs)} load{'s' * (len(pairs) > 1)}"
    return Stated(rate, Origin(first.file, first.first, pairs[-1][1].origin.first, what), "derived", "bytes_per_s")


def _matched(evidence: Evidence) -> list[tuple[Stated, Stated]]:
    """Return (bytes, time) of the loads that are known to be of a context with known bytes."""
    sizes = {"llm": [], "vit": []}  # type: dict[str, list[Stated]]
    for item in evidence.contexts:
        size = item.terms.get("file") or item.terms.get("weights")
        if size is not None:
            sizes["llm" if item.role == "llm" else "vit"].append(size)
    by_handle = [spent for name, spent in evidence.loads if name.startswith("context ")]
    pictures = [spent for name, spent in evidence.loads if _IMAGE.search(name)]
    pairs: list[tuple[Stated, Stated]] = []
    if by_handle and len(sizes["llm"]) == len(by_handle):
        pairs += zip(sizes["llm"], by_handle, strict=True)
    if len(pictures) == 1 and len(sizes["vit"]) == 1:
        pairs.append((sizes["vit"][0], pictures[0]))
    return [(size, spent) for size, spent in pairs if int(size.value) and int(spent.value)]
