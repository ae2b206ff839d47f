"""Each scenario shows what its words say it shows."""

from __future__ import annotations

import pytest

from htpsim.results.columns import STAGES, Execute
from htpsim.results.run import RunResult
from tests.scenarios.support import number, run

pytestmark = pytest.mark.slow

RUN = ["run.duration=30s", "run.warmup=5s"]


def results(name: str, *variants: str, set_values: list[str] = RUN) -> list[RunResult]:
    return [run(name, variant, set_values=set_values) for variant in variants]


def calls(result: RunResult, stage: str) -> list[Execute]:
    rows = [Execute(*row) for row in result.log.executes]
    return [row for row in rows if STAGES[row.stage] == stage and row.returned_ns >= 0]


def copies(result: RunResult, role: str) -> int:
    return result.summary().roles[role].copies


def test_a_copy_a_device_is_what_tells_the_three_topologies_apart() -> None:
    one, per_core, gang = results("topology", "one_device", "device_per_core", "gang")

    assert [copies(result, "llm") for result in (one, per_core, gang)] == [1, 2, 1]
    assert [copies(result, "vit") for result in (one, per_core, gang)] == [1, 2, 1]
    assert number(one.summary(), "cores.core 1.utilisation") == 0
    assert number(per_core.summary(), "overall.tokens_per_s") > 1.2 * number(one.summary(), "overall.tokens_per_s")
    assert {row.run_ns for row in calls(gang, "vit")} == {231_250_000}  # 370 ms / (2 x 0.8)


def test_two_processes_lose_weights_where_they_meet_on_a_core_and_copies_with_it() -> None:
    one, by_weight, by_core = (
        result.summary() for result in results("two_processes", "one", "two_by_weight", "two_by_core")
    )

    heavy, light = ("clients.vlm0.device.share", "clients.vlm2.device.share")
    assert number(one, heavy) > 2 * number(one, light)
    assert number(by_weight, heavy) < 1.2 * number(by_weight, light)
    assert "weights had no effect" in " ".join(by_weight.notes)
    assert number(by_core, heavy) == number(one, heavy)
    assert [summary.roles["llm"].copies for summary in (one, by_weight, by_core)] == [2, 4, 2]
    assert by_weight.memory["device"].steady_bytes > 1.5 * one.memory["device"].steady_bytes


def test_a_legacy_vit_preempts_only_with_a_priority_that_the_chip_grants() -> None:
    normal, high, clamped = results("vit_legacy_high_priority", "normal", "high", "high_clamped")

    assert sum(row.evictions for row in calls(normal, "decode") + calls(normal, "prefill")) == 0
    assert sum(row.evictions for row in calls(high, "decode") + calls(high, "prefill")) > 0
    assert clamped.log.executes == normal.log.executes
    assert max(waits_behind_the_llm(normal)) > 10_000_000  # up to a decode or prefill graph
    assert max(waits_behind_the_llm(high)) == 400_000  # yield latency and eviction, 200 us each


def waits_behind_the_llm(result: RunResult) -> list[int]:
    """Return how long ViTs waited on the device that did not find another ViT there."""
    vit = calls(result, "vit")
    return [
        mine.device_wait_ns
        for mine in vit
        if not any(
            other.core == mine.core and other.submitted_ns <= mine.submitted_ns < other.finished_ns
            for other in vit
            if other is not mine
        )
    ]


def test_a_thread_without_its_weight_runs_its_vit_on_another_account() -> None:
    names = ("registered", "default_weight", "bypass", "stale_handle")
    found = {}
    for name, result in zip(names, results("vit_unregistered_thread", *names), strict=True):
        vit = calls(result, "vit")
        accounts = {
            (result.log.clients[row.client], result.log.accounts[row.account] if row.account >= 0 else "", row.weight)
            for row in vit
        }
        found[name] = {client: (account.split("/")[-1], weight) for client, account, weight in accounts}

    weights = {"vlm0": 8, "vlm1": 8, "vlm2": 1, "vlm3": 1}
    assert found["registered"] == {client: (client, weight) for client, weight in weights.items()}
    assert found["default_weight"] == {client: (f"{client} unregistered", 1) for client in weights}
    assert found["bypass"] == dict.fromkeys(weights, ("", 0))
    assert found["stale_handle"] == {
        "vlm0": ("vlm0 unregistered", 1),
        "vlm1": ("vlm1 unregistered", 1),
        "vlm2": ("vlm0", 8),
        "vlm3": ("vlm1", 8),
    }


def test_a_runtime_without_the_api_gains_nothing_or_starts_nothing() -> None:
    offered, fallback, fail = results("embedding_raw_apis", "offered", "fallback", "fail")
    (legacy,) = results("vit_migration", "legacy")

    assert [copies(result, "vit") for result in (offered, fallback)] == [2, 4]
    assert [number(r.summary(), "roles.vit.guarded_share") for r in (offered, fallback)] == [1, 0]
    assert fallback.log.executes == legacy.log.executes
    assert fallback.summary().memory["device"] == legacy.summary().memory["device"]
    assert set(fail.summary().failed) == {"vlm0", "vlm1"}
    assert all("2.46" in why for why in fail.summary().failed.values())
    assert all(number(fail.summary(), f"clients.{name}.tokens_per_s") > 5 for name in ("vlm2", "vlm3"))


@pytest.mark.parametrize("slots_per", ["process", "core"])
def test_the_main_question_has_the_answer_that_its_words_promise(slots_per: str) -> None:
    settings = [*RUN, f"guard.slots_per={slots_per}"]
    names = ("legacy", "legacy_one_copy", "genie", "genie_registry")
    legacy, one_copy, genie, registry = results("vit_migration", *names, set_values=settings)

    assert [number(r.summary(), "roles.vit.guarded_share") for r in (legacy, one_copy, genie, registry)] == [0, 0, 1, 1]
    assert [copies(r, "vit") for r in (legacy, one_copy, genie, registry)] == [4, 2, 4, 2]
    assert without_copy(legacy) == without_copy(one_copy)
    assert without_copy(genie) == without_copy(registry)
    assert without_copy(legacy) != without_copy(genie)
    saved = legacy.summary().memory["device"].steady_bytes - one_copy.summary().memory["device"].steady_bytes
    assert saved == 2 * (482_812_160 - 4_882_432)  # two copies, but not the I/O of their users


def without_copy(result: RunResult) -> list[tuple[int, ...]]:
    """Return the rows with instants counted from the end of loading, and without the number of the copy."""
    at, first, last = (Execute._fields.index(name) for name in ("copy", "called_ns", "released_ns"))
    ready = result.log.ready_ns
    return [
        tuple(value - ready if first <= i <= last and value >= 0 else value for i, value in enumerate(row) if i != at)
        for row in result.log.executes
    ]
