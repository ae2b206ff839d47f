"""Bytes held over time, by ledger and place, and how often each weight file was loaded."""

from __future__ import annotations

from collections import defaultdict

from htpsim.results.log import RunLog
from htpsim.results.summary import CopyCount, Held, LedgerSummary, LoadSummary
from htpsim.spec import Device


def memory_use(log: RunLog) -> dict[str, LedgerSummary]:
    """Return what each ledger held at most and at the end, with its places; ledgers and places in order of name."""
    held: dict[tuple[str, str], int] = defaultdict(int)
    peak: dict[tuple[str, str], int] = defaultdict(int)
    whole: dict[str, int] = defaultdict(int)
    whole_peak: dict[str, int] = defaultdict(int)
    for event in log.memory:
        key = event.ledger, event.place
        held[key] += event.delta_bytes
        peak[key] = max(peak[key], held[key])
        whole[event.ledger] += event.delta_bytes
        whole_peak[event.ledger] = max(whole_peak[event.ledger], whole[event.ledger])
    device = log.scenario.device
    return {
        ledger: LedgerSummary(
            steady_bytes=whole[ledger],
            peak_bytes=whole_peak[ledger],
            limit_bytes=ledger_limit(device, ledger),
            places={
                place: Held(
                    steady_bytes=held[name, place],
                    peak_bytes=peak[name, place],
                    limit_bytes=device.pd_bytes if ledger == "pd" else ledger_limit(device, ledger),
                )
                for name, place in sorted(held)
                if name == ledger
            },
        )
        for ledger in sorted(whole)
    }


def ledger_limit(device: Device, ledger: str) -> int | None:
    """Return the bytes a whole ledger may hold, or None when it has no limit as a whole.

    >>> ledger_limit(Device(dram_budget_bytes=2**34), "device"), ledger_limit(Device(), "pd")
    (17179869184, None)
    """
    return {"device": device.dram_budget_bytes, "host": device.host_budget_bytes}.get(ledger)


def copy_counts(log: RunLog) -> list[CopyCount]:
    """Return how often each weight file was loaded, in order of model and context."""
    files = sorted({(c.model, c.context, c.role) for c in log.copies})
    return [
        CopyCount(
            model=model,
            context=context,
            role=role,
            copies=len(copies),
            users=sum(c.users for c in copies),
            reserved_bytes=sum(c.reserved_bytes for c in copies),
        )
        for model, context, role in files
        for copies in [[c for c in log.copies if (c.model, c.context, c.role) == (model, context, role)]]
    ]


def loads(log: RunLog) -> list[LoadSummary]:
    """Return every load in the order it began."""
    return [
        LoadSummary(
            client=log.clients[load.client],
            model=load.model,
            role=load.role,
            core=load.core,
            duration_ns=load.end_ns - load.start_ns,
            message=load.message,
        )
        for load in sorted(log.loads, key=lambda load: (load.start_ns, load.client, load.model))
    ]
