"""Traces written by hand, a line a graphExecute, to break one rule at a time."""

from __future__ import annotations

from typing import Any

from htpsim.invariants import Account, Call, DeviceFacts, Event, GuardFacts, Parts, Trace

DEVICE = DeviceFacts(cores=2, vtcm_bytes=8, hvx=4, hmx=1, yield_latency_ns=3, evict_ns=2, restore_ns=1)


def trace(*executes: list[tuple[int, str]], end_ns: int | None = None, **given: Any) -> Trace:
    """Return a trace of graphExecutes 0, 1 ..., each given by its events; `calls` overrides facts of some."""
    facts: dict[int, dict[str, Any]] = given.pop("calls", {})
    calls, events = {}, []
    for number, history in enumerate(executes):
        about: dict[str, Any] = {"thread": f"t{number}", "handle": f"h{number}", "weight": 1, "cores": (0,), "level": 2}
        about |= {"context": f"c{number}", "qnn": True, "hmx": 1, "vtcm_bytes": 8, "pd": "p"} | facts.get(number, {})
        calls[number] = Call(execute=number, **about)
        events += [Event(at_ns, kind, number) for at_ns, kind in history]
    events.sort(key=lambda event: event.time_ns)
    return Trace(engine="hand", calls=calls, events=events, end_ns=end_ns, **given)


def guarded(called_ns: int, granted_ns: int, returned_ns: int) -> list[tuple[int, str]]:
    """Return the events of a call that a recorder around the guard sees."""
    return [
        (called_ns, "call"), (granted_ns, "grant"), (granted_ns, "submit"),
        (returned_ns, "return"), (returned_ns, "release"),
    ]  # fmt: skip


def ran(called_ns: int, started_ns: int, finished_ns: int) -> list[tuple[int, str]]:
    """Return the events of a graph on path qnn that was not evicted."""
    return [
        (called_ns, "call"), (called_ns, "submit"), (started_ns, "start"), (started_ns, "run"),
        (finished_ns, "finish"), (finished_ns, "return"),
    ]  # fmt: skip


def evicted(called_ns: int, *runs: tuple[int, int], evict_ns: int = 2, restore_ns: int = 1) -> list[tuple[int, str]]:
    """Return the events of a graph on path qnn that ran in several stretches."""
    events = [(called_ns, "call"), (called_ns, "submit"), (runs[0][0], "start")]
    for number, (begin_ns, end_ns) in enumerate(runs):
        if number:
            events.append((begin_ns - restore_ns, "resume"))
        events.append((begin_ns, "run"))
        if number < len(runs) - 1:
            events += [(end_ns, "yield"), (end_ns + evict_ns, "freed")]
    return [*events, (runs[-1][1], "finish"), (runs[-1][1], "return")]


def on(path: str = "qnn", **facts: Any) -> dict[str, Any]:
    """Return facts of a graph beside the guard."""
    return {"path": path, "handle": None, "weight": None} | facts


def fifo(slots: int = 1, *weights: int, policy: str = "fifo", **given: Any) -> GuardFacts:
    """Return the facts of a guard with an account for each weight."""
    accounts = tuple(Account(0, f"h{n}", weight) for n, weight in enumerate(weights))
    return GuardFacts(**{"policy": policy, "slots": slots, "work_conserving": True, "accounts": accounts} | given)


def parts(guard_wait_ns: int = 0, run_ns: int = 0, device_wait_ns: int = 0, **given: int) -> Parts:
    """Return parts that are 0 where nothing is said."""
    names = dict.fromkeys(Parts._fields, 0)
    return Parts(**names | {"guard_wait_ns": guard_wait_ns, "run_ns": run_ns, "device_wait_ns": device_wait_ns} | given)
