"""What values a parameter may take, where that is narrower than "0 or more" or "one of these words".

The checks of a scenario decide; the table says what they do, and a test asks them at the edges of every row.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from htpsim.spec.device import ARCHITECTURES, POLLING_MAX_NS, PRIORITIES


class Range(NamedTuple):
    """From least to most; `above` leaves the least value itself out."""

    least: int | None = 0
    """None: negative values, too"""
    most: int | None = None
    """None: no limit but that of 64-bit integers"""
    above: bool = False


_ONE: Final = Range(1)
_SPEED: Final = Range(0, 1, above=True)
_RATE: Final = Range(0, above=True)

RANGES: Final[Mapping[str, Range]] = MappingProxyType({
    "Device.cores": _ONE,
    "Device.hvx": _ONE,
    "Device.dram_bandwidth": _RATE,
    "Device.core_dram_bandwidth": _RATE,
    "Device.load_bandwidth": _RATE,
    "Device.throttle_speed": _SPEED,
    "Device.pge_rate": _SPEED,
    "Device.gang_efficiency": _SPEED,
    "Device.rpc_polling_ns": Range(0, POLLING_MAX_NS),
    "Device.pd_bytes": _RATE,
    "Device.pd_count": _ONE,
    "Device.contexts_per_process": _ONE,
    "Guard.default_weight": _ONE,
    "Model.ar": _ONE,
    "Model.context_tokens": _ONE,
    "Model.split": _ONE,
    "Instance.weight": _ONE,
    "Instance.guard_priority": Range(None),
    "Instance.dialog_turns": _ONE,
    "OtherClient.weight": _ONE,
    "OtherClient.guard_priority": Range(None),
    "Run.duration_ns": _RATE,
    "Run.replications": _ONE,
})  # fmt: skip
"""By class and field."""

WORDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "Device.arch": ARCHITECTURES,
    "Instance.vit_priority": PRIORITIES,
    "Instance.llm_priority": PRIORITIES,
    "OtherClient.priority": PRIORITIES,
})  # fmt: skip
"""Words of a parameter that is a plain text in its dataclass."""
