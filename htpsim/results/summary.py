"""What a run amounts to: plain nested dataclasses whose leaves are metrics, texts and counts; JSON by `to_dict`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final

from htpsim.errors import HtpsimError, unknown_name
from htpsim.results.metric import DIGITS, Metric, Stats

IF_ANY: Final = {"written": "if any"}
"""Of a field that is left out of the JSON form when it is empty: it describes what few scenarios have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The instants that bound the measurement."""

    ready_ns: int
    start_ns: int
    end_ns: int
    length_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Requests or jobs of the whole run, by state at its end: arrived is the sum of the others."""

    arrived: int
    done: int
    running: int
    queued: int
    dropped: int
    refused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Where the time of the calls of one stage went; the parts sum to the total."""

    n: int
    total_ns: int
    parts_ns: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceShare:
    """Device time of one client beside its claim to it."""

    device_ns: int
    share: Metric
    weight: int | None
    weight_share: Metric
    fair_share: Metric
    """water-filled share"""
    demand: Metric
    """cores it would hold on average if it never waited"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The figures of one client, or of all of them pooled."""

    ttft: Stats
    itl: Stats
    tpot: Stats
    vit: Stats
    vit_image: Stats
    prefill: Stats
    job: Stats
    worst_gap: Stats
    slow_tokens: Metric
    tokens: Metric
    tokens_per_s: Metric
    requests_per_s: Metric
    images_per_s: Metric
    ttft_misses: Metric
    itl_misses: Metric
    job_misses: Metric
    open_requests: Metric
    """requests still without their first token, or jobs still without their end, when the run ended"""
    open_age: Metric
    """age of the oldest of them"""
    guard_wait: Stats
    device_wait: Stats
    counts: Counts
    parts: dict[str, Parts]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSummary(Group):
    """The figures of one client."""

    kind: str
    """"instance" or "client"."""
    process: int
    starved: str
    """which call has been unfinished for how long, or "" """
    saturation: str
    """stable, backlogged or overloaded; of the last two, why"""
    device: DeviceShare
    costs: dict[str, Stats | Metric] = field(default_factory=dict, metadata=IF_ANY)
    """``cold`` and ``warm`` where powering up takes time, ``polling`` where the host polls; see `host.DEFINITIONS`"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreSummary:
    """One core."""

    utilisation: Metric
    device_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardSummary:
    """What the guards did, and whether weights could have any effect."""

    policy: str
    slots: int
    slots_per: str
    calls: Metric
    waited: Metric
    """share of the guarded calls that waited"""
    line_max: Metric
    """most calls in line at one grant, the granted one included"""
    choices: Metric
    """share of grants at which two calls or more were in line"""
    bypassed: Metric
    """calls on path genie that went past the guard"""
    weights_without_effect: str
    """why weights could not matter, or "" """


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSummary:
    """What one kind of model got from guard and registry, as measured."""

    instances: int
    """instances and clients that obtained a model of this role"""
    copies: int
    """copies of such models that were loaded"""
    copy_bytes: int
    registry: bool
    """somebody found its copy in the registry"""
    device_ns: int
    guarded_share: Metric
    """share of its device time that passed a guard"""
    paths: list[str]
    priorities: list[str]
    """QNN priority levels its calls ran at, after clamping"""
    weights: list[int]
    """weights the guard charged its calls with"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Bytes of one ledger or one place in it."""

    steady_bytes: int
    """held when the run ended"""
    peak_bytes: int
    """most ever held, loading included"""
    limit_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSummary(Held):
    """One ledger and the places in it."""

    places: dict[str, Held]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyCount:
    """How often one weight file was loaded."""

    model: str
    context: str
    role: str
    copies: int
    users: int
    reserved_bytes: int
    """of all its copies"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSummary:
    """One client obtaining one model."""

    client: str
    model: str
    role: str
    core: int
    duration_ns: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of one run; nothing in it depends on the machine, the engine or the clock on the wall."""

    scenario: str
    title: str
    seed: int
    replication: int
    window: Window
    setup: dict[str, str | int | bool]
    """the choices that decide a comparison more than anything else"""
    overall: Group
    clients: dict[str, ClientSummary]
    cores: dict[str, CoreSummary]
    guard: GuardSummary
    roles: dict[str, RoleSummary]
    memory: dict[str, LedgerSummary]
    copies: list[CopyCount]
    load_ns: int
    """from the first load's start until all had ended"""
    loads: list[LoadSummary]
    failed: dict[str, str]
    notes: list[str]
    definitions: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: stable order, integers as integers, floats rounded to six decimals."""
        plain = _plain(self)
        assert isinstance(plain, dict)
        return plain

    def metric(self, path: str) -> Metric:
        """Return the metric at a dotted path such as ``"clients.vlm0.itl.p99"``.

        Raises
        ------
        HtpsimError
            When there is no metric of that name; the message has the nearest one.
        """
        node: Any = self
        rest, seen = path, ""
        while rest:
            names = list(node) if isinstance(node, Mapping) else _names(node)
            # A client's name may hold a dot, so the longest name that fits is taken.
            fit = [name for name in names if rest == name or rest.startswith(f"{name}.")]
            if not fit:
                raise HtpsimError(unknown_name(f"metric {seen or path}", rest.split(".")[0], names))
            name = max(fit, key=len)
            node = node[name] if isinstance(node, Mapping) else getattr(node, name)
            rest, seen = rest[len(name) + 1 :], f"{seen}.{name}" if seen else name
        if not isinstance(node, Metric):
            raise HtpsimError(f"metric {path}: names a group, expected one of its members: {', '.join(_names(node))}")
        return node


def _names(node: object) -> list[str]:
    if isinstance(node, Mapping):
        return [str(key) for key in node]
    if is_dataclass(node) and not isinstance(node, Metric):
        return [f.name for f in fields(node)]
    return []


def _plain(node: object) -> object:
    if isinstance(node, Metric | Stats):
        return node.to_dict()
    if isinstance(node, Mapping):
        return {str(key): _plain(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_plain(value) for value in node]
    if is_dataclass(node):
        members = {f: getattr(node, f.name) for f in fields(node)}
        return {f.name: _plain(value) for f, value in members.items() if value or f.metadata != IF_ANY}
    return round(node, DIGITS) if isinstance(node, float) else node
