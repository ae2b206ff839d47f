"""What a run amounts to: plain nested dataclasses whose leaves are metrics, texts and counts; JSON by `to_dict`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final

from htpsim.errors import HtpsimError, unknown_name
from htpsim.results.metric import DIGITS, Metric, Stats, missing, unit_of

IF_ANY: Final = {"written": "if any"}
"""Of a field that is left out of the JSON form when it is empty: it describes what few scenarios have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The instants that bound the measurement."""

    ready_ns: int
    """all loads have ended"""
    start_ns: int
    """the measured window begins: ready plus warm-up"""
    end_ns: int
    """it ends, inclusive"""
    length_ns: int
    """end - start"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Requests or jobs of the whole run, by state at its end: arrived is the sum of the others."""

    arrived: int
    """all that arrived"""
    done: int
    """answered in full"""
    running: int
    """begun and not done"""
    queued: int
    """waiting for the thread"""
    dropped: int
    """thrown away by a full queue"""
    refused: int
    """longer than the context has room for, so not answered"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Where the time of the calls of one stage went; the parts sum to the total."""

    n: int
    """calls that returned in the window"""
    total_ns: int
    """sum of returned - called"""
    parts_ns: dict[str, int]
    """sum of each part; the parts are those of the executes"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceShare:
    """Device time of one client beside its claim to it."""

    device_ns: int
    share: Metric
    """its part of all clients' device time"""
    weight: int | None
    """weight in the guard; none where no call of it can pass one"""
    weight_share: Metric
    """weight over the sum of weights"""
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
    """tokens emitted in the window"""
    tokens_per_s: Metric
    requests_per_s: Metric
    """requests or jobs that ended in the window / its length"""
    images_per_s: Metric
    """images encoded in the window / its length"""
    ttft_misses: Metric
    """first tokens beyond `ttft_deadline`"""
    itl_misses: Metric
    """gaps beyond `itl_deadline`"""
    job_misses: Metric
    """jobs beyond `deadline`"""
    open_requests: Metric
    """requests still without their first token, or jobs still without their end, when the run ended"""
    open_age: Metric
    """age of the oldest of them"""
    guard_wait: Stats
    device_wait: Stats
    counts: Counts
    """requests or jobs by state"""
    parts: dict[str, Parts]
    """where the time of the calls went, by stage"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSummary(Group):
    """The figures of one client."""

    kind: str
    """"instance" or "client"."""
    process: int
    """process it lives in"""
    starved: str
    """which call has been unfinished for how long, or "" """
    saturation: str
    """stable, backlogged or overloaded; of the last two, why"""
    device: DeviceShare
    """its device time beside its claim"""
    costs: dict[str, Stats | Metric] = field(default_factory=dict, metadata=IF_ANY)
    """``cold`` and ``warm`` where powering up takes time, ``polling`` where the host polls; see `host.DEFINITIONS`"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreSummary:
    """One core."""

    utilisation: Metric
    device_ns: int
    """clients' time on it within the window: acquire + run + evict + restore"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardSummary:
    """What the guards did, and whether weights could have any effect."""

    policy: str
    """the policy in force"""
    slots: int
    """holders at once, a process or a core"""
    slots_per: str
    """"process" or "core"."""
    calls: Metric
    """guarded calls that returned in the window"""
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
    """bytes that these copies reserve"""
    registry: bool
    """somebody found its copy in the registry"""
    device_ns: int
    """device time of its calls in the window"""
    guarded_share: Metric
    """share of its device time that passed a guard"""
    paths: list[str]
    """paths that its calls took"""
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
    """most it may hold; none: no limit"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSummary(Held):
    """One ledger and the places in it."""

    places: dict[str, Held]
    """DRAM, host memory, or each protection domain by its name"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyCount:
    """How often one weight file was loaded."""

    model: str
    """model"""
    context: str
    """context binary"""
    role: str
    """"vit", "llm" or "other"."""
    copies: int
    """how often it was loaded"""
    users: int
    """instances and clients that use these copies"""
    reserved_bytes: int
    """of all its copies"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSummary:
    """One client obtaining one model."""

    client: str
    """who obtained it"""
    model: str
    """what it obtained"""
    role: str
    """"owner", "borrower" or "failed"."""
    core: int
    """core the copy is on"""
    duration_ns: int
    """from asking for it to having it"""
    message: str
    """for a failure: the limit, what was asked, held and free"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of one run; nothing in it depends on the machine, the engine or the clock on the wall."""

    scenario: str
    """name of the scenario"""
    title: str
    """its title"""
    seed: int
    """seed of every draw"""
    replication: int
    """which replication, from 0"""
    window: Window
    """the instants that bound the measurement"""
    setup: dict[str, str | int | bool]
    """the choices that decide a comparison more than anything else"""
    overall: Group
    """all clients pooled"""
    clients: dict[str, ClientSummary]
    """each client by name"""
    cores: dict[str, CoreSummary]
    """each core: "core 0", "core 1" ..."""
    guard: GuardSummary
    """what the guards did"""
    roles: dict[str, RoleSummary]
    """each kind of model: vit, llm, other"""
    memory: dict[str, LedgerSummary]
    """each ledger: device, host, pd"""
    copies: list[CopyCount]
    """each weight file that was loaded"""
    load_ns: int
    """from the first load's start until all had ended"""
    loads: list[LoadSummary]
    """each load in order of its start"""
    failed: dict[str, str]
    """instances that did not start, with the reason"""
    notes: list[str]
    """what a reader must know"""
    definitions: dict[str, str] = field(default_factory=dict)
    """what each figure means"""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: stable order, integers as integers, floats rounded to six decimals."""
        plain = _plain(self)
        assert isinstance(plain, dict)
        return plain

    def metric(self, path: str) -> Metric:
        """Return the metric at a dotted path such as ``"clients.vlm0.itl.p99"``; a plain number rests on one sample.

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
        if isinstance(node, Metric):
            return node
        if _is_group(node) or isinstance(node, str | list | bool):
            raise HtpsimError(no_figure(path, _names(node)))
        return missing("no value", unit_of(path)) if node is None else Metric(node, 1, unit_of(path))


def no_figure(path: str, members: Iterable[str]) -> str:
    """Say that a path is of no figure, but perhaps of some.

    >>> no_figure("overall.itl", ["mean", "p50"])
    'metric overall.itl: got a group, expected one of its members: mean, p50'
    """
    inside = ", ".join(members)
    if inside:
        return f"metric {path}: got a group, expected one of its members: {inside}"
    return f"metric {path}: got what is no number, expected the path of a figure"


def _is_group(node: object) -> bool:
    return isinstance(node, Mapping) or is_dataclass(node)


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
