"""The summary of a trace: written beside it, in two shapes, or as metadata within it."""

from __future__ import annotations

from typing import Final

from htpsim.formats.jsonevents import Cursor
from htpsim.formats.qnn_trace.data import Number, Summary
from htpsim.formats.tree import Node
from htpsim.formats.values import Value

_SECTIONS: Final = ("execution_summary", "resource_utilization", "node_statistics")
_FIELDS: Final = {
    "total_inference_time_us": ("total", "us"),
    "htp_execution_time_us": ("htp", "us"),
    "overhead_us": ("overhead", "us"),
    "vtcm_acquisition_time_us": ("vtcm_acquire", "us"),
    "resource_power_up_time_us": ("power_up", "us"),
    "ddr_bandwidth_mbps": ("ddr_bandwidth", "mbps"),
    "average_node_time_us": ("average_node", "us"),
    "time_us": ("htp", "us"),
    "timeline_cycles": ("timeline_cycles", "cycles"),
    "percent_idle": ("idle_percent", "percent"),
}


def sections() -> tuple[str, ...]:
    """Return the keys of a summary file that hold figures."""
    return _SECTIONS


def from_nodes(nodes: list[Node]) -> Summary | None:
    """Read figures by their keys, wherever they stand; ``None`` when no key is known.

    Raises
    ------
    FormatError
        When a figure is no number, is negative, or is stated twice.
    """
    found: dict[str, Number] = {}
    others: list[tuple[str, Number]] = []
    count: Value[int] | None = None
    longest: Value[str] | None = None
    for node in nodes:
        for key, member in node.members().items():
            if key == "total_nodes":
                count = node.whole(key, unit="count")
            elif key == "longest_node":
                longest = node.text(key)
            elif key in _FIELDS:
                name, unit = _FIELDS[key]
                value = _figure(node, key, unit)
                if value is not None and name in found:
                    member.refuse(f"one figure for it (the first is in line {found[name].line})")
                if value is not None:
                    found[name] = value
            elif isinstance(member.value, int | float) and not isinstance(member.value, bool):
                value = _figure(node, key, "")
                if value is not None:
                    others.append((key, value))
    if not (found or count or longest):
        return None
    return Summary(nodes=count, longest_node=longest, others=tuple(others), **found)


def overall_rows(cursor: Cursor) -> list[Node]:
    """Return the rows of ``data.htp_overall_summary.data``, skipping the long lists beside it."""
    rows: list[Node] = []
    for key in cursor.members():
        if key == "htp_overall_summary":
            table = cursor.node(key).find("data")
            rows += table.items() if table else []
    return rows


def _figure(node: Node, key: str, unit: str) -> Number | None:
    value = node.number(key, unit=unit)
    if value is not None and not 0 <= value.value < 2**63:
        node.members()[key].refuse("a number from 0 to 2^63")
    return value
