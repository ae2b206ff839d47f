"""How many instances fit: the loading of a scenario with one, two, three ... instances, and nothing else of it.

The loads are those of the engine: the same order, sharing, packing and limits as in a run, without a request. N
instances fit when all of them start. Beyond the instances that a scenario names, their pattern repeats.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from htpsim.errors import ScenarioError, unknown_name
from htpsim.experiments.tidy import html_table
from htpsim.results.log import RunLog
from htpsim.results.memory_use import memory_use
from htpsim.results.summary import LedgerSummary
from htpsim.scenario import ScenarioFile, load
from htpsim.sim import simulate
from htpsim.spec import Arrivals, Device, Scenario
from htpsim.units import format_bytes

if TYPE_CHECKING:
    import pandas as pd

MOST: Final = 64
"""Instances up to which it is asked; beyond, memory is not what limits."""
LIMITS: Final = {
    "dram_budget_bytes": "device DRAM",
    "host_budget_bytes": "host DRAM",
    "pd_bytes": "size of a PD",
    "pd_count": "PDs of a process and core",
    "mapping_limit_bytes": "one mapping",
    "contexts_per_process": "contexts of a process",
}
"""Fields of the device that refuse a load, and words for them."""
_UNLIMITED: Final = {"pd_bytes": 1 << 60, "pd_count": 1 << 10}
"""What stands for no limit where a device must have one."""
_NAMED: Final = re.compile(r"device\.(\w+)")
_SILENT: Final = Arrivals(kind="replay", times_ns=())


@dataclass(frozen=True, slots=True)
class Packed:
    """What lies in one protection domain."""

    place: str
    held_bytes: int
    limit_bytes: int
    contexts: tuple[tuple[str, str, int], ...]
    """model, name and bytes of each context, without what its users add"""
    users_bytes: int
    """I/O and KV caches of its users"""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A number of instances, loaded."""

    instances: int
    failed: dict[str, str]
    """instances and clients that did not start, with the reason"""
    load_ns: int
    """until the last is ready"""
    ledgers: dict[str, LedgerSummary]
    packing: tuple[Packed, ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """How many instances of one variant fit, and what refuses the next."""

    most: int
    loaded: Loaded
    """with that many"""
    device: Device
    limit: str = ""
    """field of the device that refuses the next; "" where `MOST` fit, or no limit of the device refuses"""
    reason: str = ""
    """the refusal, with what was asked, held and free"""
    next_most: int | None = None
    """how many would fit without that limit; None where there is none"""
    next_limit: str = ""
    """what would refuse then"""
    enough: int | None = None
    """least value of the limit at which one more fits; None where no value of it alone is enough"""

    @property
    def more(self) -> int | None:
        """By how much the limit must grow for one more instance."""
        at = getattr(self.device, self.limit) if self.limit else None
        return None if self.enough is None or at is None else self.enough - at


class Fits:
    """How many instances fit, by variant."""

    def __init__(self, file: ScenarioFile, fits: dict[str, Fit]) -> None:
        self.file = file
        self.fits = fits

    def __getitem__(self, variant: str) -> Fit:
        if variant not in self.fits:
            raise ScenarioError(unknown_name("variant", variant, self.fits))
        return self.fits[variant]

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """A row a variant, times in ns and sizes in bytes."""
        return [fit_row(name, fit) for name, fit in self.fits.items()]

    def to_dataframe(self) -> pd.DataFrame:
        """Return a row a variant, times in nanoseconds and sizes in bytes."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def __repr__(self) -> str:
        return f"<Fits {self.file.title!r}: {', '.join(f'{name} {fit.most}' for name, fit in self.fits.items())}>"

    def _repr_html_(self) -> str:
        head = ["", "fit", "limit", "next", "DRAM", "DRAM peak"]
        rows = [
            [name, str(fit.most), fit.limit, str(fit.next_most or ""),
             *(format_bytes(size) for size in device_bytes(fit.loaded))]
            for name, fit in self.fits.items()
        ]  # fmt: skip
        return html_table(f"How many instances fit: {self.file.title}", head, rows)


FIT_COLUMNS: Final = {
    "variant": "variant of the file",
    "fit": "instances that fit",
    "limit": "limit that refuses the next, or empty",
    "next_fit": "instances that would fit without that limit, where that is known",
    "next_limit": "limit that would come then",
    "one_more_needs": "by how much that limit must grow for one more: bytes, or a number of what it counts",
    "dram_bytes": "device DRAM held with so many [bytes]",
    "dram_peak_bytes": "most device DRAM while they load [bytes]",
    "host_bytes": "host DRAM held with so many [bytes]",
    "host_peak_bytes": "most host DRAM while they load [bytes]",
    "load_ns": "time until all are loaded [ns]",
    "reason": "the refusal of the next in words",
}
"""Columns of the table of variants."""


def fit_row(name: str, fit: Fit) -> dict[str, Any]:
    """Return what one variant came to, flat."""
    held, peak = device_bytes(fit.loaded)
    host = fit.loaded.ledgers.get("host")
    return {
        "variant": name, "fit": fit.most, "limit": fit.limit, "next_fit": fit.next_most, "next_limit": fit.next_limit,
        "one_more_needs": fit.more, "dram_bytes": held, "dram_peak_bytes": peak,
        "host_bytes": host.steady_bytes if host else 0, "host_peak_bytes": host.peak_bytes if host else 0,
        "load_ns": fit.loaded.load_ns, "reason": fit.reason,
    }  # fmt: skip


def device_bytes(loaded: Loaded) -> tuple[int, int]:
    """Return what device DRAM holds at the end, and at most."""
    held = loaded.ledgers.get("device")
    return (held.steady_bytes, held.peak_bytes) if held else (0, 0)


def load_only(scenario: Scenario, instances: int) -> Scenario:
    """Return the scenario with so many instances, nothing to do, and nothing measured.

    >>> from htpsim.spec import Instance
    >>> one = Scenario(instances=(Instance(name="a"),))
    >>> [i.name for i in load_only(one, 3).instances]
    ['a', 'a 2', 'a 3']
    """
    given = scenario.instances
    grown = []
    for i in range(instances):
        turn, which = divmod(i, len(given))
        name = f"{given[which].name} {turn + 1}" if turn else given[which].name
        grown.append(replace(given[which], name=name, arrivals=_SILENT))
    clients = tuple(replace(client, arrivals=_SILENT) for client in scenario.clients)
    run = replace(scenario.run, duration_ns=1, warmup_ns=0)
    return replace(scenario, instances=tuple(grown), clients=clients, run=run)


def load_up(scenario: Scenario, instances: int) -> Loaded:
    """Load so many instances and say what that took."""
    log = simulate(load_only(scenario, instances))
    start_ns = min((one.start_ns for one in log.loads), default=log.ready_ns)
    return Loaded(instances, dict(log.failed), log.ready_ns - start_ns, memory_use(log), tuple(_packing(log)))


def _packing(log: RunLog) -> list[Packed]:
    """Return what each PD that is in use holds at the end."""
    model_of = {copy.name: copy.model for copy in log.copies}
    held: dict[str, dict[str, int]] = {}
    for event in log.memory:
        if event.ledger == "pd":
            items = held.setdefault(event.place, {})
            items[event.item] = items.get(event.item, 0) + event.delta_bytes
    packed = []
    for place, items in sorted(held.items()):
        contexts = tuple(
            (model_of[item], item, size) for item, size in sorted(items.items()) if size and item in model_of
        )
        held_bytes = sum(items.values())
        if held_bytes:
            users_bytes = held_bytes - sum(size for _, _, size in contexts)
            packed.append(Packed(place, held_bytes, log.scenario.device.pd_bytes, contexts, users_bytes))
    return packed


def fit_scenario(scenario: Scenario, most: int = MOST) -> Fit:
    """Return how many instances of a scenario fit.

    Parameters
    ----------
    scenario
        Its instances are the pattern that is repeated.
    most
        Ask no further than this.

    Raises
    ------
    ScenarioError
        When the scenario has no instance.
    """
    if not scenario.instances:
        raise ScenarioError("instances: got none, expected at least one, to be repeated until no more fits")
    fitting, refused = _up_to(scenario, most)
    if refused is None:
        return Fit(fitting.instances, fitting, scenario.device)
    limit = _limit_of(refused)
    reason = next(iter(refused.failed.values()))
    if not limit:
        return Fit(fitting.instances, fitting, scenario.device, reason=reason)
    beyond, then = _without_limit(scenario, limit, refused.instances, most)
    return Fit(
        fitting.instances, fitting, scenario.device, limit, reason,
        next_most=None if then is None else beyond,
        next_limit="" if then is None else _limit_of(then) or next(iter(then.failed.values())),
        enough=_enough(scenario, limit, refused.instances) if beyond > fitting.instances else None,
    )  # fmt: skip


def _up_to(scenario: Scenario, most: int, first: int = 1) -> tuple[Loaded, Loaded | None]:
    """Return the largest number from `first` on below which all fit, and the one that does not."""
    fitting = load_up(scenario, first - 1)
    for instances in range(first, most + 1):
        loaded = load_up(scenario, instances)
        if loaded.failed:
            return fitting, loaded
        fitting = loaded
    return fitting, None


def _without_limit(scenario: Scenario, limit: str, first: int, most: int) -> tuple[int, Loaded | None]:
    """Return how many fit when one limit is lifted, and the load that is refused then, if any."""
    lifted = _with_limit(scenario, limit, None)
    if not load_up(lifted, most).failed:
        return most, None
    beyond, then = _up_to(lifted, most, first)
    return beyond.instances, then


def _limit_of(refused: Loaded) -> str:
    """Return the limit that the first refusal names."""
    names = _NAMED.findall(next(iter(refused.failed.values())))
    return next((name for name in reversed(names) if name in LIMITS), "")


def _with_limit(scenario: Scenario, limit: str, value: int | None) -> Scenario:
    """Return the scenario with another value of one limit; None lifts it."""
    given = _UNLIMITED.get(limit) if value is None else value
    changes: dict[str, Any] = {limit: given}
    return replace(scenario, device=replace(scenario.device, **changes))


def _enough(scenario: Scenario, limit: str, instances: int) -> int:
    """Return the least value of a limit at which so many fit, given that they do without it."""

    def fits(value: int) -> bool:
        return not load_up(_with_limit(scenario, limit, value), instances).failed

    low: int = getattr(scenario.device, limit)
    step = 1
    while not fits(low + step):
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def fit(
    path_or_name: str | os.PathLike[str],
    *,
    variants: Sequence[str] | None = None,
    case: str | None = None,
    options: Sequence[str] = (),
    set_values: Sequence[str] = (),
    most: int = MOST,
    progress: Callable[[float, int, str], None] | None = None,
) -> Fits:
    """Ask how many instances fit, for every variant of a scenario file.

    Parameters
    ----------
    path_or_name
        A scenario file, or the name of a shipped one.
    variants
        Names to keep; all by default.
    case, options, set_values
        As in `run`.
    most
        Ask no further than this many instances.
    progress
        Told how far it is.

    Raises
    ------
    ScenarioError
        When the file or a name is wrong; one line a problem.

    Examples
    --------
    >>> fits = fit("vit_migration", variants=["genie", "genie_registry"], set_values=["device.dram_budget=8GB"])
    >>> fits
    <Fits 'Should the ViT move to Genie?': genie 4, genie_registry 8>
    """
    file = load(path_or_name, set_values=set_values)
    wanted = list(file.variants) if variants is None else list(variants)
    faults = [unknown_name("variant", name, file.variants) for name in wanted if name not in file.variants]
    if faults:
        raise ScenarioError(*dict.fromkeys(faults))
    found = {}
    names: list[str | None] = list(wanted) or [None]
    for done, name in enumerate(names):
        if progress:
            progress(done, len(names), name or "")
        found[name or "base"] = fit_scenario(file.resolve(name, case, options).scenario, most)
    return Fits(file, found)
