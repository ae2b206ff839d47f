"""Every rule: a trace that keeps it, and traces that break it, with what is said, when and by how much."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from htpsim.errors import HtpsimError, InvariantError
from htpsim.invariants import RULES, MemoryEvent, RequestEvent, Trace, UseEvent, check_trace
from tests.invariants.hand import DEVICE, evicted, fifo, guarded, on, parts, ran, trace

QNN = {number: on() for number in range(6)}


def qnn(**changes: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """Return facts of six graphs on path qnn; `g2={...}` changes those of number 2."""
    return {number: facts | changes.get(f"g{number}", {}) for number, facts in QNN.items()}


def device_trace(*executes: list[tuple[int, str]], device: Any = DEVICE, **changes: Any) -> Trace:
    end_ns = changes.pop("end_ns", None)
    return trace(*executes, calls=qnn(**changes), device=device, end_ns=end_ns)


def with_requests(*events: tuple[int, str, int], tokens: int = 0, calls: Any = None) -> Trace:
    executes = [ran(*instants) for instants, _ in calls or []]
    facts = {n: on(client="vlm0", thread="vlm0", **about) for n, (_, about) in enumerate(calls or [])}
    made = trace(*executes, calls=facts, end_ns=100)
    made.requests = [
        RequestEvent(at, kind, "vlm0", number, tokens if kind == "arrive" else 0) for at, kind, number in events
    ]
    return made


def with_memory(*changes: tuple[int, str, int, str], uses: Any = (), **given: Any) -> Trace:
    """Return a trace with changes (time, item, bytes, user) of copy "m" and uses (time, kind, user, users)."""
    made = trace(*given.pop("executes", []), calls=given.pop("calls", {}), **given)
    made.memory = [MemoryEvent(at, "device", "dram", item, delta, "m", user) for at, item, delta, user in changes]
    made.uses = [UseEvent(at, kind, "m", user, users) for at, kind, user, users in uses]
    return made


LIMITED = replace(DEVICE, limits=(("device", 10),))
HELD = [guarded(0, 0, 10), guarded(1, 10, 20)]
SFQ = fifo(1, 1, 4, policy="sfq")
ATTACHED = [(0, "attach", "vlm0", 0)]

BROKEN: dict[str, list[tuple[str, Trace, int]]] = {
    "causality": [
        ("granted before it called", trace([(5, "grant"), (7, "call")]), 0),
        ("granted twice", trace([(0, "call"), (1, "grant"), (2, "grant")]), 0),
        ("finished before it ran", device_trace([(0, "call"), (0, "submit"), (1, "start"), (2, "finish")]), 0),
        ("evicted while it was restored", device_trace([(0, "call"), (0, "submit"), (1, "start"), (2, "yield")]), 0),
        ("after the end", trace(guarded(0, 0, 10), end_ns=4), 6),
    ],
    "one-call": [
        ("called twice", trace(guarded(0, 0, 10), guarded(4, 10, 20), calls={1: {"thread": "t0"}}), 6),
        ("never came back", trace([(0, "call")], guarded(4, 4, 5), calls={1: {"thread": "t0"}}, end_ns=9), 5),
    ],
    "guard-exclusion": [
        ("two holders", trace(guarded(0, 0, 10), guarded(1, 5, 20), guard=fifo()), 1),
        ("three holders", trace(*[guarded(0, n, 10) for n in range(3)], guard=fifo(2)), 1),
        ("one never lets go", trace([(0, "call"), (0, "grant")], guarded(1, 5, 9), guard=fifo()), 1),
    ],
    "guard-cover": [
        ("without a slot", trace([(0, "call"), (3, "submit"), (9, "return")]), 0),
        ("with a slot on path qnn", trace(guarded(0, 0, 10), calls={0: {"path": "qnn"}}), 0),
        ("after the slot", trace(
            guarded(0, 0, 5), [(7, "call"), (7, "submit"), (9, "return")],
            calls={1: {"thread": "t0", "under": 0, "handle": "h0"}},
        ), 4),
        ("under somebody else's slot", trace(
            guarded(0, 0, 9), [(2, "call"), (2, "submit"), (4, "return")], calls={1: {"under": 0}}
        ), 0),
    ],
    "guard-fifo": [
        ("overtaken", trace(guarded(0, 20, 30), guarded(1, 5, 20), calls={1: {"handle": "h0"}}), 1),
        ("passed over for ever", trace([(0, "call")], guarded(1, 5, 9), calls={1: {"handle": "h0"}}, end_ns=9), 1),
    ],
    "guard-work": [
        ("a slot rests", trace(guarded(0, 0, 10), guarded(1, 14, 20), guard=fifo()), 4),
        ("to the end", trace(guarded(0, 0, 10), [(1, "call")], guard=fifo(), end_ns=30), 20),
    ],
    "guard-order": [
        ("the later call first", trace(
            guarded(0, 0, 10), guarded(2, 20, 30), guarded(3, 10, 20), guard=fifo(1, 1, 1, 1)
        ), 0),
        ("the lower rank first", trace(
            guarded(0, 0, 10), guarded(2, 20, 30), guarded(3, 10, 20),
            calls={1: {"rank": 5}}, guard=replace(fifo(policy="priority"), accounts=()),
        ), 0),
    ],
    "share-bound": [
        ("one gets it all", trace(
            *[guarded(10 * n, 10 * n, 10 * n + 10) for n in range(8)], guarded(0, 80, 90),
            calls={n: {"handle": "h0"} for n in range(8)} | {8: {"handle": "h1"}},
            guard=fifo(1, 1, 1, policy="sfq"),
        ), 59),
    ],
    "placement": [
        ("moved", device_trace(ran(0, 0, 5), ran(6, 6, 9), g1={"cores": (1,), "context": "c0"}), 0),
    ],
    "context-fifo": [
        ("two at once", device_trace(
            ran(0, 0, 9), ran(1, 5, 9), g0={"context": "c"}, g1={"context": "c", "cores": (0,)}
        ), 4),
        ("the younger first", device_trace(ran(0, 9, 12), ran(1, 2, 9), g0={"context": "c"}, g1={"context": "c"}), 10),
    ],
    "core-exclusion": [
        ("two QNN graphs", device_trace(ran(0, 0, 9), ran(0, 5, 14)), 4),
        ("two domains", device_trace(
            ran(0, 0, 9), ran(0, 5, 14), g1={"qnn": False, "hmx": 0, "vtcm_bytes": 0, "pd": "q"}
        ), 4),
        ("too much VTCM", device_trace(ran(0, 0, 9), ran(0, 5, 14), g1={"qnn": False, "hmx": 0, "vtcm_bytes": 1}), 4),
        ("nothing coexists", device_trace(
            ran(0, 0, 9), ran(0, 5, 14), g1={"qnn": False, "hmx": 0, "vtcm_bytes": 0},
            device=replace(DEVICE, coexists=False),
        ), 4),
        ("known without the constants", device_trace(ran(0, 0, 9), ran(0, 5, 14), device=None), 4),
    ],
    "running-set": [
        ("lower priority first", device_trace(ran(0, 0, 9), ran(1, 9, 14), ran(2, 14, 20), g2={"level": 4}), 7),
        ("younger first", device_trace(ran(0, 0, 9), ran(1, 14, 20), ran(2, 9, 14)), 8),
        ("evicted, then after a younger one", device_trace(
            evicted(0, (0, 8), (21, 25)), ran(5, 10, 15), ran(6, 15, 20), g1={"level": 4}
        ), 15),
    ],
    "eviction": [
        ("for an equal", device_trace(evicted(0, (0, 8), (16, 18)), ran(5, 10, 15)), 0),
        ("too late", device_trace(evicted(0, (0, 9), (17, 19)), ran(5, 11, 16), g1={"level": 4}), 1),
        ("never", device_trace(ran(0, 0, 20), ran(5, 20, 30), g1={"level": 4}), 12),
        ("at no multiple of its work", device_trace(
            evicted(0, (0, 9), (17, 19)), ran(5, 11, 16), g1={"level": 4},
            device=replace(DEVICE, yield_rule="grid", yield_interval_ns=4),
        ), 1),
    ],
    "device-work": [
        ("a core rests", device_trace(ran(0, 0, 9), ran(1, 13, 20)), 4),
        ("to the end", device_trace(ran(0, 0, 9), [(1, "call"), (1, "submit")], end_ns=30), 21),
    ],
    "device-costs": [
        ("a long acquire", device_trace([
            (0, "call"), (0, "submit"), (0, "start"), (5, "run"), (9, "finish"), (9, "return"),
        ]), 5),
        ("a long evict", device_trace(evicted(0, (0, 8), (20, 22), evict_ns=5), ran(5, 13, 19), g1={"level": 4}), 3),
        ("a short restore", device_trace(
            evicted(0, (0, 8), (16, 18), restore_ns=0), ran(5, 10, 16), g1={"level": 4}
        ), -1),
        ("powered up for nothing", device_trace(
            [(0, "call"), (0, "submit"), (0, "start"), (6, "run"), (9, "finish"), (9, "return")],
            [(10, "call"), (10, "submit"), (10, "start"), (16, "run"), (19, "finish"), (19, "return")],
            device=replace(DEVICE, power_up_ns=6, idle_timeout_ns=50),
        ), 6),
        ("warm, and as cold as ever", device_trace(
            [(0, "call"), (0, "submit"), (0, "start"), (6, "run"), (9, "finish"), (9, "return")],
            [(10, "call"), (10, "submit"), (10, "start"), (16, "run"), (19, "finish"), (19, "return")],
            device=replace(DEVICE, power_up_ns=6, power_up_warm_ns=2, idle_timeout_ns=50),
        ), 4),
        ("a second first call", device_trace(
            [(0, "call"), (0, "submit"), (0, "start"), (5, "run"), (9, "finish"), (9, "return")],
            [(9, "call"), (9, "submit"), (9, "start"), (14, "run"), (19, "finish"), (19, "return")],
            g1={"context": "c0"}, device=replace(DEVICE, first_call_ns=5),
        ), 5),
    ],
    "answers": [
        ("too late", device_trace(
            [*ran(0, 0, 9)[:-1], (12, "return")], device=replace(DEVICE, rpc_return_ns=1)
        ), 2),
        ("a host asleep that answers at once", device_trace(
            ran(0, 5, 9), device=replace(DEVICE, rpc_return_ns=0, rpc_polling_ns=8, rpc_wake_ns=4)
        ), -4),
        ("a host woken that still polls", device_trace(
            [*ran(0, 5, 9)[:-1], (13, "return")],
            device=replace(DEVICE, rpc_return_ns=0, rpc_polling_ns=9, rpc_wake_ns=4),
        ), 4),
    ],
    "adapters": [
        ("two at once", device_trace(
            ran(0, 0, 9), ran(9, 9, 14), ran(14, 14, 20),
            g0={"context": "c", "client": "v0", "request": 0, "adapter": "a"},
            g1={"context": "c", "client": "v1", "request": 0, "adapter": "b"},
            g2={"context": "c", "client": "v0", "request": 0, "adapter": "a"},
        ), 5),
    ],
    "work": [
        ("work lost", device_trace(ran(0, 0, 9), g0={"solo_ns": 12}), 3),
        ("work done twice", device_trace(ran(0, 0, 9), g0={"solo_ns": 5}), 4),
        ("at full speed on half the bandwidth", device_trace(
            ran(0, 0, 10), g0={"solo_ns": 10, "demand": 8}, device=replace(DEVICE, bandwidth=4)
        ), 5),
        ("still slow when the other has finished", device_trace(
            ran(0, 0, 10), ran(0, 0, 20), g0={"solo_ns": 5, "demand": 4},
            g1={"solo_ns": 10, "demand": 4, "cores": (1,)}, device=replace(DEVICE, bandwidth=4),
        ), 5),
        ("at full speed on a throttled core", device_trace(
            ran(0, 0, 10), ran(9, 10, 15), g0={"solo_ns": 10}, g1={"solo_ns": 5},
            device=replace(DEVICE, throttle_after_ns=10, throttle_stretch=2000),
        ), 5),
        ("throttled after its rest", device_trace(
            ran(0, 0, 10), ran(30, 30, 40), g0={"solo_ns": 10}, g1={"solo_ns": 5},
            device=replace(DEVICE, throttle_after_ns=10, throttle_stretch=2000, throttle_rest_ns=20),
        ), 5),
        ("no bandwidth given back when the camera pauses", device_trace(
            ran(0, 0, 20), g0={"solo_ns": 10, "demand": 8},
            device=replace(DEVICE, bandwidth=4, background=4, background_on_ns=10, background_off_ns=50),
        ), 5),
    ],
    "parts": [],
    "little": [],
    "utilisation": [],
    "requests": [
        ("done without having begun", with_requests((0, "arrive", 0), (9, "done", 0)), 0),
        ("in two states", with_requests((0, "arrive", 0), (5, "drop", 0), (9, "begin", 0)), 0),
        ("one is missing", with_requests((0, "arrive", 0), (5, "arrive", 2)), 1),
        ("served though dropped", with_requests(
            (0, "arrive", 0), (1, "drop", 0), calls=[((2, 2, 5), {"request": 0})]
        ), 0),
        ("served before it began", with_requests(
            (0, "arrive", 0), (4, "begin", 0), calls=[((2, 2, 5), {"request": 0})]
        ), 2),
        ("a token too few", with_requests(
            (0, "arrive", 0), (0, "begin", 0), (9, "done", 0), tokens=2,
            calls=[((2, 2, 5), {"request": 0, "token": 0})],
        ), -1),
        ("a graph of nobody", with_requests((0, "arrive", 0), calls=[((2, 2, 5), {"request": 7})]), 0),
    ],
    "memory-balance": [
        ("more given back than taken", with_memory((0, "m/c", 5, ""), (3, "m/c", -7, "")), 2),
        ("held for nobody", with_memory(
            (0, "m/c", 5, ""), uses=[*ATTACHED, (4, "detach", "vlm0", 0)], end_ns=9
        ), 5),
        ("held for one who left", with_memory(
            (0, "m/c", 5, ""), (0, "vlm1 I/O on m/c", 2, "vlm1"),
            uses=[*ATTACHED, (0, "attach", "vlm1", 0), (4, "detach", "vlm1", 0)],
        ), 2),
        ("given back in part when its last user left", with_memory(
            (0, "m/c", 5, ""), (4, "m/c", -3, ""), uses=[*ATTACHED, (4, "detach", "vlm0", 0)],
        ), 2),
        ("never used by anybody", with_memory((0, "m/c", 5, ""), uses=[(9, "count", "", 0)]), 5),
    ],
    "memory-limit": [("over it", with_memory((0, "m/c", 8, ""), (3, "n/c", 3, ""), device=LIMITED), 1)],
    "memory-in-use": [
        ("freed under a graph", with_memory(
            (0, "m/c", 5, ""), (4, "m/c", -5, ""), executes=[ran(1, 1, 9)], calls={0: on(context="m/c", client="vlm0")}
        ), 5),
        ("its own I/O", with_memory(
            (0, "vlm0 I/O on m/c", 5, "vlm0"), (4, "vlm0 I/O on m/c", -5, "vlm0"), executes=[ran(1, 1, 9)],
            calls={0: on(context="m/c", client="vlm0")},
        ), 5),
    ],
    "references": [
        ("one too many", with_memory(uses=[*ATTACHED, (3, "count", "", 2)]), 1),
        ("twice", with_memory(uses=[*ATTACHED, (3, "attach", "vlm0", 0)]), 1),
        ("never came", with_memory(uses=[(3, "detach", "vlm0", 0)]), 1),
        ("unloaded under a user", with_memory(uses=[*ATTACHED, (3, "unload", "", 0)]), 1),
        ("a stranger executes", with_memory(
            uses=ATTACHED, executes=[ran(1, 1, 9)], calls={0: on(context="m/c", client="vlm1")}
        ), 0),
    ],
}  # fmt: skip


def counted(**given: int) -> Trace:
    """Return one guarded graph with parts as its recorder counted them."""
    history = [
        (0, "call"), (4, "grant"), (4, "submit"), (6, "start"), (6, "run"), (16, "finish"), (16, "return"),
        (16, "release"),
    ]  # fmt: skip
    made = trace(history, guard=fifo(work_conserving=None), end_ns=20)
    made.parts = {0: parts(**{"guard_wait_ns": 4, "device_wait_ns": 2, "run_ns": 10} | given)}
    return made


BROKEN["parts"] = [
    ("they do not sum", counted(run_ns=12), 2),
    ("one is negative", counted(run_ns=12, rpc_return_ns=-2), 2),
    ("waiting counted as running", counted(guard_wait_ns=0, run_ns=14), -4),
]
BROKEN["little"] = [("the guard counts less waiting", counted(guard_wait_ns=1, run_ns=13), 3)]
BROKEN["utilisation"] = [("the core was held for less", counted(device_wait_ns=0, run_ns=12), -2)]

KEPT = {
    "guard": trace(*HELD, guard=fifo(1, 1, 1)),
    "device": device_trace(
        evicted(0, (0, 8), (16, 18)), ran(5, 10, 15), g1={"level": 4}, device=replace(DEVICE, rpc_return_ns=0)
    ),
    "taken in the instant of an evict that takes no time": device_trace(
        ran(6, 6, 7),
        [(0, "call"), (0, "submit"), (0, "start"), (4, "run"), (6, "yield"), (6, "freed"), (7, "resume"), (7, "run"),
         (9, "finish"), (9, "return")],
        g0={"level": 4}, device=replace(DEVICE, power_up_ns=4, yield_latency_ns=0, evict_ns=0, restore_ns=0),
    ),
    "counted": counted(),
    "requests": with_requests(
        (0, "arrive", 0), (0, "begin", 0), (1, "arrive", 1), (9, "done", 0), (9, "arrive", 2), (9, "refuse", 2),
        tokens=1,
        calls=[((2, 2, 5), {"request": 0, "token": 0})],
    ),
    "adapters": device_trace(
        ran(0, 0, 9), ran(9, 9, 14), g0={"context": "c", "client": "v0", "request": 0, "adapter": "a"},
        g1={"context": "c", "client": "v1", "request": 0},
    ),
    "memory": with_memory(
        (0, "m/c", 5, ""), (9, "m/c", -5, ""), uses=[*ATTACHED, (5, "detach", "vlm0", 0)], device=LIMITED
    ),
    "memory loading again": with_memory(
        (0, "m/c", 5, ""), (5, "m/c", -5, ""), (7, "m/c", 5, ""),
        uses=[*ATTACHED, (5, "detach", "vlm0", 0), (9, "count", "", 0)],
    ),
}  # fmt: skip

CASES = [(rule, *case) for rule, cases in BROKEN.items() for case in cases]


def test_every_rule_has_a_trace_that_breaks_it() -> None:
    assert {rule for rule, cases in BROKEN.items() if cases} == set(RULES)


@pytest.mark.parametrize(
    ("rule", "name", "broken", "amount"), CASES, ids=[f"{rule}: {name}" for rule, name, *_ in CASES]
)
def test_a_broken_rule_is_named(rule: str, name: str, broken: Trace, amount: int) -> None:
    report = check_trace(broken, [rule])

    assert report.skipped == {}
    assert report.of(rule), f"{name} was not found"
    assert amount in [violation.amount for violation in report.of(rule)]
    assert not report.ok
    with pytest.raises(InvariantError, match=rule) as error:
        report.require()
    assert error.value.exit_code == 3


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_is_not_complained_of(name: str) -> None:
    report = check_trace(KEPT[name])

    assert report.violations == []
    assert report.checked


def test_every_rule_applies_to_one_of_these_or_says_why_not() -> None:
    reports = [check_trace(kept) for kept in KEPT.values()]

    for report in reports:
        assert set(report.checked) | set(report.skipped) == set(RULES)
        assert all(report.skipped.values())
    assert set().union(*(report.checked for report in reports)) >= set(RULES) - {"share-bound"}


def test_the_bound_of_shares_holds_where_weights_are_kept() -> None:
    """Weights 1 and 4: four calls of one for each of the other, both always backlogged."""
    order = [0, 1, 1, 1, 1] * 6
    calls = {n: {"handle": f"h{account}", "weight": 4 if account else 1} for n, account in enumerate(order)}
    made = trace(*[guarded(0, 10 * n, 10 * n + 10) for n in range(len(order))], calls=calls, guard=SFQ)

    assert check_trace(made, ["share-bound"]).ok
    wrong = {n: facts | {"weight": 1} for n, facts in calls.items()}
    made = trace(
        *[guarded(0, 10 * n, 10 * n + 10) for n in range(len(order))], calls=wrong, guard=fifo(1, 1, 1, policy="sfq")
    )
    assert not check_trace(made, ["share-bound"]).ok


def test_a_dialog_between_its_calls_is_not_backlogged() -> None:
    """The bound says nothing of an account that was away, however little it got."""
    busy = [guarded(10 * n, 10 * n, 10 * n + 10) for n in range(8)]
    made = trace(
        *busy, guarded(0, 80, 90), calls={n: {"handle": "h0"} for n in range(8)} | {8: {"handle": "h1"}},
        guard=fifo(1, 1, 1, policy="sfq"),
    )  # fmt: skip
    made.events = [
        event._replace(time_ns=79) if event.execute == 8 and event.kind == "call" else event for event in made.events
    ]
    made.events.sort(key=lambda event: event.time_ns)

    assert check_trace(made, ["share-bound"]).ok


def test_a_recording_may_be_blurred() -> None:
    made = trace(guarded(0, 0, 10), guarded(1, 14, 20), guarded(2, 20, 30), guard=fifo())
    made.engine = ""

    assert check_trace(made, ["guard-work"]).counts["guard-work"] == 1
    assert check_trace(made, ["guard-work"], slack_ns=4).ok


def test_calls_that_came_together_may_be_granted_in_either_order() -> None:
    made = trace(guarded(0, 0, 10), guarded(2, 20, 30), guarded(4, 10, 20), guard=fifo())
    made.engine = ""

    assert not check_trace(made, ["guard-order"]).ok
    assert check_trace(made, ["guard-order"], slack_ns=2).ok


def test_a_recorder_need_not_write_releases() -> None:
    made = trace(guarded(0, 0, 10), guarded(1, 10, 20), guard=fifo())
    made.engine = ""
    made.events = [event for event in made.events if event.kind != "release"]

    assert check_trace(made, ["guard-exclusion", "guard-work"]).ok


def test_many_violations_are_counted_and_few_kept() -> None:
    made = trace(*[guarded(0, n, 100) for n in range(60)], guard=fifo())

    report = check_trace(made, ["guard-exclusion"])

    assert report.counts["guard-exclusion"] == 59
    assert len(report.violations) == 20


def test_an_unknown_rule_is_refused_with_the_nearest() -> None:
    with pytest.raises(HtpsimError, match="did you mean 'guard-work'"):
        check_trace(Trace(), ["guard-wrk"])


def test_what_is_unsound_is_left_to_causality() -> None:
    made = trace([(5, "grant"), (7, "call")], guarded(0, 0, 10), guard=fifo())

    assert set(check_trace(made).counts) == {"causality"}
