"""The HTP side of one chip, in the vendor documentation's terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from htpsim.spec.param import param

PRIORITIES: Final = ("LOW", "NORMAL_LOW", "NORMAL", "NORMAL_HIGH", "HIGH", "HIGH_PLUS", "CRITICAL", "CRITICAL_PLUS")
"""The eight QNN priority levels, least important first; a level is the index in this tuple."""

NORMAL: Final = PRIORITIES.index("NORMAL")

ARCHITECTURES: Final = ("v66", "v68", "v69", "v73", "v75", "v79", "v81")
FIRST_WITH_SHARING: Final = "v73"
"""Weight sharing in a binary, and coexistence of a QNN graph with other clients, exist from here on (vendor docs).
Parallel graph execution needs coexistence, so that no earlier architecture has it either."""
FIRST_WITH_POLLING: Final = "v69"
"""RPC polling exists from here on (vendor docs)."""
POLLING_MAX_NS: Final = 9_999_000
"""Longest polling time that can be asked for (vendor docs)."""

Topology = Literal["one-device", "device-per-core", "gang"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One chip's HTP: cores, what they hold, how they yield, what memory they share."""

    name: str = "device"
    """Its name in reports."""
    arch: str = param("doc", "Hexagon architecture; decides what the hardware can do", default="v73")
    cores: int = param("doc", "HTP cores (NSPs) that take graphs", default=1)
    topology: Topology = param(
        "assumed",
        "what several cores are: one device listing them, a device each, or one gang that runs graphs built for all",
        default="one-device",
        vary=("one-device", "device-per-core", "gang"),
    )
    vtcm_bytes: int = param("doc", "VTCM of a core", default=8 << 20, unit="bytes")
    hvx: int = param("doc", "HVX units of a core", default=4)
    hmx: int = param("doc", "HMX units of a core; exclusive", default=1)

    dram_bandwidth: int | None = param(
        "measured", "DRAM bandwidth the cores share; none: not modelled", default=None, unit="bytes_per_s"
    )
    core_dram_bandwidth: int | None = param(
        "measured", "what one core can draw; none: no cap of its own", default=None, unit="bytes_per_s"
    )
    background_bandwidth: int = param(
        "assumed",
        "DRAM bandwidth taken by camera and GPU; 0 because it depends on the product",
        default=0,
        unit="bytes_per_s",
        vary=(5_000_000_000, 20_000_000_000),
    )
    background_on_ns: int = param(
        "assumed",
        "background traffic comes for this long, then stops for background_off, from time 0 on; 0: it never stops",
        default=0,
        unit="ns",
    )
    background_off_ns: int = param(
        "assumed", "how long background traffic stops between two bursts", default=0, unit="ns"
    )
    load_bandwidth: int | None = param(
        "measured",
        "rate at which context binaries load, shared by loads; none: at once",
        default=None,
        unit="bytes_per_s",
    )

    yield_rule: Literal["latency", "grid"] = param(
        "assumed",
        "when a victim stops: a latency after it lost its place, or at a multiple of its own work",
        default="latency",
        vary=("latency", "grid"),
    )
    yield_latency_ns: int = param(
        "assumed",
        "how long a victim runs on after it lost its place; unpublished, so the order of one save of VTCM",
        default=200_000,
        unit="ns",
        vary=(0, 1_000_000, 10_000_000),
    )
    yield_interval_ns: int = param(
        "assumed", "spacing of yield points for the grid rule; unpublished", default=1_000_000, unit="ns"
    )
    evict_ns: int = param(
        "assumed",
        "time to save a victim's VTCM: 8 MB at 30 to 60 GB/s",
        default=200_000,
        unit="ns",
        vary=(0, 130_000, 270_000),
    )
    restore_ns: int = param(
        "assumed",
        "time to restore it: 8 MB at 30 to 60 GB/s",
        default=200_000,
        unit="ns",
        vary=(0, 130_000, 270_000),
    )
    priority_clamp: bool = param(
        "doc", "NORMAL_HIGH and above are treated as NORMAL, as without the OEM key", default=False, vary=(True, False)
    )
    acquire_ns: int = param(
        "measured", "VTCM acquire at each start; a warm one took 199 us on V79", default=0, unit="ns"
    )
    power_up_ns: int = param("measured", "power-up of a core that idled longer than idle_timeout", default=0, unit="ns")
    power_up_warm_ns: int = param(
        "measured", "power-up of a core that idled, but no longer than that; 36 us on V79", default=0, unit="ns"
    )
    idle_timeout_ns: int = param("doc", "idle time after which a core powers down", default=300_000_000, unit="ns")
    first_call_ns: int = param(
        "measured",
        "what the first graphExecute of a loaded context takes besides; the first of a public trace took 362 us more",
        default=0,
        unit="ns",
    )
    throttle_after_ns: int | None = param(
        "measured", "busy time after which a core slows down; none: never", default=None, unit="ns"
    )
    throttle_speed: float = param(
        "measured", "share of its speed that a throttled core keeps; a phone fell to half in 30 minutes", default=1.0
    )
    throttle_rest_ns: int = param(
        "assumed",
        "idle time after which a core has cooled down and its busy time counts anew; 0: it never does",
        default=0,
        unit="ns",
        vary=(0, 60_000_000_000),
    )
    rpc_call_ns: int = param("measured", "host to DSP, a call; 43 us a dispatch on V79", default=0, unit="ns")
    rpc_return_ns: int = param("measured", "DSP to host, a call", default=0, unit="ns")
    rpc_polling_ns: int | None = param(
        "doc",
        "how long the host polls for the answer of a call before it sleeps, from v69 on at most 9,999 us; none: not "
        "modelled",
        default=None,
        unit="ns",
    )
    rpc_wake_ns: int = param(
        "measured", "what an answer takes besides that comes when the host no longer polls", default=0, unit="ns"
    )
    pge: bool = param(
        "doc",
        "parallel graph execution: QNN graphs of one priority and one PD run on a core at once where their VTCM fits",
        default=False,
    )
    pge_rate: float = param(
        "assumed",
        "speed of each QNN graph while several run on its core, which they share; unpublished, 0.5 gains nothing",
        default=0.5,
        vary=(0.5, 0.7, 1.0),
    )
    gang_efficiency: float = param(
        "assumed",
        "a graph built for k cores runs in 1/(k x this) of its time; unpublished, 1 would be perfect",
        default=0.8,
        vary=(0.6, 1.0),
    )

    dram_budget_bytes: int | None = param(
        "choice", "device DRAM that may be reserved in all", default=None, unit="bytes"
    )
    host_budget_bytes: int | None = param("choice", "host DRAM for file copies", default=None, unit="bytes")
    pd_bytes: int = param(
        "assumed",
        "usable address space of one protection domain: documented 3.75 GB, 3.2 to 3.5 GB in the field",
        default=3_500_000_000,
        unit="bytes",
        vary=(3_200_000_000, 3_750_000_000),
    )
    pd_rule: Literal["by-model", "any"] = param(
        "measured",
        "which PDs a context may go to, first fit: those of its own model, as a public log shows a ViT in PD 0 and its "
        "LLM in PD 2, or any with room",
        default="by-model",
        vary=("by-model", "any"),
    )
    pd_count: int = param("assumed", "protection domains a process may open on a core", default=4, vary=(1, 2, 4))
    mapping_limit_bytes: int | None = param("measured", "largest single weight mapping", default=None, unit="bytes")
    contexts_per_process: int | None = param("assumed", "contexts a process may hold", default=None)
    model_reserve_bytes: int = param("assumed", "extra reserve a loaded model", default=0, unit="bytes")

    leak_bytes: int = param(
        "measured",
        "what an unload does not give back, of device memory and of the first PD it leaves; a bug that threads report",
        default=0,
        unit="bytes",
    )

    @property
    def devices(self) -> int:
        """How many QNN devices the cores form."""
        return self.cores if self.topology == "device-per-core" else 1

    def device_of(self, core: int) -> int:
        """Return the QNN device that core `core` belongs to."""
        return core if self.topology == "device-per-core" else 0

    @property
    def pge_scaled(self) -> int:
        """Work a nanosecond of each of several graphs on a core, in ns x 2^-20."""
        return max(1, round(self.pge_rate * (1 << 20)))

    @property
    def throttle_stretch(self) -> int:
        """How long work takes on a throttled core, in thousandths of its time on a cool one."""
        return max(1000, round(1000 / self.throttle_speed))

    @property
    def coexists(self) -> bool:
        """Whether a client that is not a QNN graph may run beside one."""
        return self.arch in ARCHITECTURES and self.arch >= FIRST_WITH_SHARING
