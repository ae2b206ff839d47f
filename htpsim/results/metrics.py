"""The summary of a run over its measured window; what each figure means stands in `samples.DEFINITIONS`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from htpsim.results.columns import DONE, DROPPED, PARTS, PATH_GENIE, QUEUED, REFUSED, RUNNING, STAGES
from htpsim.results.guard_use import guard_use
from htpsim.results.host import costs, definitions
from htpsim.results.log import RunLog
from htpsim.results.memory_use import copy_counts, loads, memory_use
from htpsim.results.metric import (
    BoolArray,
    IntArray,
    Metric,
    Stats,
    missing,
    order_statistic,
    ratio,
    samples_needed,
    stats,
    total,
)
from htpsim.results.notes import notes
from htpsim.results.occupancy import Occupancy, occupancy, sums, union_ns
from htpsim.results.roles import role_summaries
from htpsim.results.samples import DEFINITIONS, MEASURES, Sample, of_client, open_first_tokens, open_gaps, open_jobs
from htpsim.results.saturation import saturation
from htpsim.results.shares import all_clients, device_shares, slots
from htpsim.results.starvation import starved
from htpsim.results.summary import ClientSummary, CoreSummary, Counts, Group, Parts, Summary, Window
from htpsim.results.tables import Tables
from htpsim.spec import Instance, OtherClient, Scenario
from htpsim.units import NS_PER_S


class _Samples(NamedTuple):
    """Every sample of the run, made once and then split by client."""

    ended: dict[str, Sample]
    open_ttft: Sample
    open_itl: Sample
    open_job: Sample


def summarise(log: RunLog, tables: Tables | None = None) -> Summary:
    """Return the summary of a run; `tables` are reused when they were made before."""
    tables = tables or Tables(log)
    held = occupancy(tables)
    samples = _Samples(
        {name: measure(tables) for name, measure in MEASURES.items()},
        open_first_tokens(tables),
        open_gaps(tables),
        open_jobs(tables),
    )
    hungry = starved(tables)
    clients = _clients(tables, held, samples, hungry)
    counts = copy_counts(log)
    summary = Summary(
        scenario=log.scenario.name,
        title=log.scenario.title,
        seed=log.scenario.run.seed,
        replication=log.replication,
        window=Window(ready_ns=log.ready_ns, start_ns=log.start_ns, end_ns=log.end_ns, length_ns=tables.length_ns),
        setup=_setup(log.scenario),
        overall=_group(tables, samples, range(len(clients)), _pooled_starvation(log, hungry)),
        clients=clients,
        cores=_cores(tables, held),
        guard=guard_use(tables),
        roles=role_summaries(tables, held, counts),
        memory=memory_use(log),
        copies=counts,
        load_ns=log.ready_ns - min((load.start_ns for load in log.loads), default=log.ready_ns),
        loads=loads(log),
        failed=dict(log.failed),
        notes=[],
        definitions=DEFINITIONS | definitions(tables),
    )
    summary.notes.extend([*log.notes, *notes(summary)])
    return summary


def _clients(tables: Tables, held: Occupancy, samples: _Samples, hungry: dict[int, str]) -> dict[str, ClientSummary]:
    shares = device_shares(tables, held)
    summaries = {}
    for i, client in enumerate(all_clients(tables.log.scenario)):
        why = f"starved: {hungry[i]}" if i in hungry else ""
        group = _group(tables, samples, [i], dict.fromkeys((*MEASURES, "waits"), why))
        summaries[client.name] = ClientSummary(
            **{name: getattr(group, name) for name in Group.__dataclass_fields__},
            kind="instance" if isinstance(client, Instance) else "client",
            process=client.process,
            starved=hungry.get(i, ""),
            saturation=": ".join(filter(None, saturation(tables, i))),
            device=shares[i],
            costs=costs(tables, i, why),
        )
    return summaries


def _pooled_starvation(log: RunLog, hungry: dict[int, str]) -> dict[str, str]:
    """Return why each pooled measure is withheld: one client that starved spoils those it contributes to."""
    instances = len(log.scenario.instances)
    whys = dict.fromkeys((*MEASURES, "waits"), "")
    for i in hungry:
        mine = ["job", "waits"] if i >= instances else [name for name in whys if name != "job"]
        whys.update((name, f"{log.clients[i]} starved") for name in mine if not whys[name])
    return whys


def _group(tables: Tables, samples: _Samples, members: Iterable[int], why: dict[str, str]) -> Group:
    """Return the figures of one client, or of all of them pooled; `why` withholds a measure."""
    members = list(members)
    values = {name: _pool(sample, members) for name, sample in samples.ended.items()}
    described = {name: stats(values[name], why=why[name]) for name in MEASURES}
    open_ns = np.concatenate([_pool(samples.open_ttft, members), _pool(samples.open_job, members)])
    counts, done = _counts(tables, members)
    clients = {i: client for i, client in enumerate(all_clients(tables.log.scenario)) if i in members}
    x, length = tables.executes, tables.length_ns
    returned = tables.returned & _of(x["client"], members)
    guarded = returned & (x["path"] == PATH_GENIE)
    emitted = int(np.count_nonzero(_of(tables.tokens.client, members) & tables.measured(tables.tokens.time_ns)))
    return Group(
        ttft=described["ttft"],
        itl=described["itl"],
        tpot=described["tpot"],
        vit=described["vit"],
        vit_image=described["vit_image"],
        prefill=described["prefill"],
        job=described["job"],
        worst_gap=described["worst_gap"],
        slow_tokens=_slow(samples.ended["itl"], members, why["itl"]),
        tokens=Metric(emitted, emitted, "count"),
        tokens_per_s=_rate(emitted, length, "tokens_per_s"),
        requests_per_s=_rate(done, length, "per_s"),
        images_per_s=_rate(len(values["vit_image"]), length, "per_s"),
        ttft_misses=_misses(clients, "ttft", samples.ended["ttft"], samples.open_ttft),
        itl_misses=_misses(clients, "itl", samples.ended["itl"], samples.open_itl),
        job_misses=_misses(clients, "job", samples.ended["job"], samples.open_job),
        open_requests=Metric(len(open_ns), len(open_ns), "count"),
        open_age=Metric(int(open_ns.max()), len(open_ns), "ns") if len(open_ns) else missing("none is open", "ns"),
        guard_wait=_waits(x["guard_wait_ns"][guarded], "no call passed a guard in the window", why["waits"]),
        device_wait=_waits(x["device_wait_ns"][returned], "no call returned in the window", why["waits"]),
        counts=counts,
        parts=_parts(tables, returned),
    )


def _of(client: IntArray, members: list[int]) -> BoolArray:
    """Whether each row is of one of the clients; several members are all there are."""
    return client == members[0] if len(members) == 1 else np.ones(len(client), dtype=np.bool_)


def _pool(sample: Sample, members: list[int]) -> IntArray:
    return of_client(sample, members[0]) if len(members) == 1 else sample.value_ns


def _waits(values: IntArray, none: str, why: str) -> Stats:
    return stats(values, why=why or ("" if len(values) else none))


def _rate(count: int, length_ns: int, unit: str) -> Metric:
    if length_ns <= 0:
        return missing("the measured window is empty", unit, count)
    return Metric(count * NS_PER_S / length_ns, count, unit)


def _slow(gaps: Sample, members: list[int], why: str) -> Metric:
    """Return the share of gaps above 1.5 x the median gap of their own client."""
    slow = judged = 0
    for member in members:
        ordered = np.sort(of_client(gaps, member))
        if len(ordered) >= samples_needed(50):
            judged += len(ordered)
            slow += int(np.count_nonzero(2 * ordered > 3 * order_statistic(ordered, 50)))
    if why:
        return missing(why, "share", judged)
    return ratio(slow, judged, judged, f"fewer than {samples_needed(50)} gaps, too few for a median")


def _misses(clients: dict[int, Instance | OtherClient], measure: str, ended: Sample, still: Sample) -> Metric:
    """Count samples beyond their client's deadline, and open ones that are beyond it already."""
    missed = judged = 0
    deadlines = {i: deadline for i, c in clients.items() if (deadline := _deadline(c, measure)) is not None}
    for i, deadline in deadlines.items():
        late = int(np.count_nonzero(of_client(still, i) > deadline))
        missed += int(np.count_nonzero(of_client(ended, i) > deadline)) + late
        judged += len(of_client(ended, i)) + late
    if not judged:  # nobody to miss it is no sign that it was kept
        return missing("no samples" if deadlines else "no deadline set", "count")
    return Metric(missed, judged, "count")


def _deadline(client: Instance | OtherClient, measure: str) -> int | None:
    if isinstance(client, OtherClient):
        return client.deadline_ns if measure == "job" else None
    return {"ttft": client.ttft_deadline_ns, "itl": client.itl_deadline_ns}.get(measure)


def _counts(tables: Tables, members: list[int]) -> tuple[Counts, int]:
    """Return requests by state over the whole run, and how many were done in the window."""
    r = tables.requests
    mine = _of(r["client"], members)
    by_state = np.bincount(r["state"][mine], minlength=REFUSED + 1).tolist()
    counts = Counts(
        arrived=int(np.count_nonzero(mine)),
        done=by_state[DONE],
        running=by_state[RUNNING],
        queued=by_state[QUEUED],
        dropped=by_state[DROPPED],
        refused=by_state[REFUSED],
    )
    return counts, int(np.count_nonzero(mine & (r["state"] == DONE) & tables.measured(r["done_ns"])))


def _parts(tables: Tables, returned: BoolArray) -> dict[str, Parts]:
    x = tables.executes
    found = {}
    for stage, name in enumerate(STAGES):
        rows = np.flatnonzero(returned & (x["stage"] == stage))
        if len(rows):
            found[name] = Parts(
                n=len(rows),
                total_ns=total((x["returned_ns"] - x["called_ns"])[rows]),
                parts_ns={part: total(x[part][rows]) for part in PARTS},
            )
    return found


def _cores(tables: Tables, held: Occupancy) -> dict[str, CoreSummary]:
    cores = max(int(held.core.max(initial=0)) + 1, tables.log.scenario.device.cores)
    device_ns = sums(held.core, held.length_ns, cores)
    found = {}
    for core in range(cores):
        mine = held.core == core
        busy = union_ns(held.start_ns[mine], held.end_ns[mine])
        utilisation = ratio(busy, tables.length_ns, int(np.count_nonzero(mine)), "the measured window is empty")
        found[f"core {core}"] = CoreSummary(utilisation=utilisation, device_ns=int(device_ns[core]))
    return found


def _setup(scenario: Scenario) -> dict[str, str | int | bool]:
    guard, registry = scenario.guard, scenario.registry
    return {
        "arch": scenario.device.arch,
        "cores": scenario.device.cores,
        "topology": scenario.device.topology,
        "policy": guard.policy,
        "slots": slots(guard, scenario.device.cores),
        "slots_per": guard.slots_per,
        "scope": guard.scope,
        "registration": guard.registration,
        "registry_llm": registry.llm,
        "registry_vit": registry.vit,
        "llm_copies": registry.llm_copies,
        "vit_copies": registry.vit_copies,
    }
