"""The facts of a run as a trace states them: the guard, the device, and what happened to requests and memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from htpsim.invariants.trace import NOWHERE, Account, DeviceFacts, GuardFacts, MemoryEvent, RequestEvent, UseEvent
from htpsim.results.columns import DONE, DROPPED, NEVER, REFUSED, Request
from htpsim.results.log import RunLog
from htpsim.sched import POLICIES, policy_class, policy_params
from htpsim.spec import Device
from htpsim.spec.plan import Plan


def guard_facts(log: RunLog, plan: Plan) -> GuardFacts:
    """Return what the scenario says of the guard."""
    guard = log.scenario.guard
    policy = policy_class(guard.policy)
    params = policy_params(policy, guard.params)
    accounts = tuple(
        Account(account.process, account.name.split("/", 1)[1], account.weight, account.priority)
        for account in plan.accounts
    )
    return GuardFacts(
        policy=guard.policy,
        params=tuple(params.items()),
        slots=plan.slots(),
        slots_per=guard.slots_per,
        work_conserving=promises_work(guard.policy, params),
        accounts=accounts,
        weighed_ns=log.ready_ns,
        weight_sums=tuple(weight_sums(log, plan)),
    )


def promises_work(policy: str, params: Mapping[str, int]) -> bool:
    """Tell whether a policy promises that no slot is free while a call waits; a user's says so by ``work_conserving``.

    >>> promises_work("quota", {}), promises_work("quota", {"idle_over_budget": 1})
    (True, False)
    """
    promised = getattr(policy_class(policy), "work_conserving", policy in POLICIES)
    return bool(promised) and not params.get("idle_over_budget", 0)


def started(log: RunLog) -> set[int]:
    """Return the clients that obtained all of their models at first; a load of one of them may still fail later."""
    scenario = log.scenario
    models = [(i.vit is not None) + (i.llm is not None) for i in scenario.instances] + [1] * len(scenario.clients)
    obtained = Counter(load.client for load in log.loads if load.role in {"owner", "borrower"})
    return {client for client, count in enumerate(models) if obtained[client] >= count}


def weight_sums(log: RunLog, plan: Plan) -> Iterator[tuple[int, int, int]]:
    """Yield (process, core or NOWHERE, sum of weights of the accounts that can call there once all have loaded)."""
    per_core = log.scenario.guard.slots_per == "core"
    loads = (load for load in reversed(log.loads) if load.role in {"owner", "borrower"})
    cores = {(load.client, load.model): load.core for load in loads}
    able: dict[tuple[int, int], dict[int, int]] = {}
    starters = started(log)
    for client in plan.clients:
        if client.number not in starters:
            continue
        for model in client.models:
            if model.guarded:
                lane = client.process, cores[client.number, model.model.name] if per_core else NOWHERE
                able.setdefault(lane, {})[model.account] = plan.accounts[model.account].weight
    for (process, core), weights in able.items():
        yield process, core, sum(weights.values())


def device_facts(device: Device) -> DeviceFacts:
    """Return the device's constants."""
    limits = {"device": device.dram_budget_bytes, "host": device.host_budget_bytes, "pd": device.pd_bytes}
    return DeviceFacts(
        cores=device.cores,
        coexists=device.coexists,
        parallel_rate=device.pge_scaled if device.pge else 0,
        vtcm_bytes=device.vtcm_bytes,
        hvx=device.hvx,
        hmx=device.hmx,
        yield_rule=device.yield_rule,
        yield_latency_ns=device.yield_latency_ns,
        yield_interval_ns=device.yield_interval_ns,
        evict_ns=device.evict_ns,
        restore_ns=device.restore_ns,
        acquire_ns=device.acquire_ns,
        power_up_ns=device.power_up_ns,
        power_up_warm_ns=device.power_up_warm_ns,
        idle_timeout_ns=device.idle_timeout_ns,
        first_call_ns=device.first_call_ns,
        throttle_after_ns=NOWHERE if device.throttle_after_ns is None else device.throttle_after_ns,
        throttle_stretch=device.throttle_stretch,
        throttle_rest_ns=device.throttle_rest_ns,
        rpc_return_ns=device.rpc_return_ns,
        rpc_polling_ns=NOWHERE if device.rpc_polling_ns is None else device.rpc_polling_ns,
        rpc_wake_ns=device.rpc_wake_ns,
        bandwidth=0 if device.dram_bandwidth is None else device.dram_bandwidth - device.background_bandwidth,
        background=device.background_bandwidth if device.background_off_ns else 0,
        background_on_ns=device.background_on_ns,
        background_off_ns=device.background_off_ns,
        core_bandwidth=device.core_dram_bandwidth or 0,
        limits=tuple((ledger, limit) for ledger, limit in limits.items() if limit is not None),
        pd_count=device.pd_count,
    )


def request_events(log: RunLog) -> list[RequestEvent]:
    """Return what happened to every request. A drop is put at the arrival: the log does not say when it was."""
    events: list[RequestEvent] = []
    for row in map(Request._make, log.requests):
        client = log.clients[row.client]
        events.append(RequestEvent(row.arrived_ns, "arrive", client, row.request, row.output_tokens))
        if row.state == DROPPED:
            events.append(RequestEvent(row.arrived_ns, "drop", client, row.request))
        if row.begun_ns != NEVER:
            events.append(RequestEvent(row.begun_ns, "begin", client, row.request))
        if row.state in (DONE, REFUSED):
            kind = "done" if row.state == DONE else "refuse"
            events.append(RequestEvent(row.done_ns, kind, client, row.request))
    return sorted(events, key=lambda event: event.time_ns)


def memory_events(log: RunLog) -> list[MemoryEvent]:
    """Return every change of memory, with the copy and the user that the bytes belong to."""
    copies = {copy.name: copy.whole for copy in log.copies}
    names = sorted(set(copies.values()), key=len, reverse=True)
    events = []
    for event in log.memory:
        whose, _, on = event.item.rpartition(" on ")
        copy = next((name for name in names if (on or event.item).startswith((f"{name}/", f"{name} reserve"))), "")
        user = whose.removesuffix(" I/O").removesuffix(" KV") if whose else ""
        events.append(MemoryEvent(event.time_ns, event.ledger, event.place, event.item, event.delta_bytes, copy, user))
    return events


def use_events(log: RunLog) -> list[UseEvent]:
    """Return who came to use which copy and let it go again, and how many users each is left with."""
    events: list[UseEvent] = []
    held: dict[int, list[str]] = {}
    starters = started(log)
    for load in log.loads:
        client = log.clients[load.client]
        if load.role == "unloaded":
            held[load.client].remove(load.copy)
            events.append(UseEvent(load.end_ns, "detach", load.copy, client))
        elif load.role == "failed" and load.client not in starters:  # it does not start, and gives back what it had
            events += [UseEvent(load.end_ns, "detach", copy, client) for copy in held.pop(load.client, [])]
        elif load.role == "failed":
            continue
        else:
            held.setdefault(load.client, []).append(load.copy)
            events.append(UseEvent(load.end_ns, "attach", load.copy, client))
    last_ns = max((event.time_ns for event in events), default=0)
    counts = {copy.whole: copy.users for copy in log.copies}
    events.sort(key=lambda event: event.time_ns)
    return events + [UseEvent(last_ns, "count", name, users=users) for name, users in counts.items()]
