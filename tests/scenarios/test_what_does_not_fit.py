"""A load that does not fit says which limit, what was asked, held and free; the other instances go on."""

from __future__ import annotations

import re

import pytest

from tests.scenarios.support import run

SHORT = ["run.duration=8s", "run.warmup=0"]
BYTES = re.compile(r"(device\.\w+|asked|held|free) ([\d,]+)")


@pytest.mark.parametrize(
    ("settings", "limit", "failed"),
    [
        pytest.param(["device.dram_budget=6GB"], "device.dram_budget_bytes", {"vlm1", "vlm3"}, id="DRAM"),
        pytest.param(["device.contexts_per_process=9"], "device.contexts_per_process", {"vlm1"}, id="contexts"),
        pytest.param(
            ["device.pd_count=1", "device.pd_rule=any"], "device.pd_bytes", {"vlm2", "vlm3"}, id="protection domain"
        ),
        pytest.param(
            ["device.host_budget=4GB", "models.vit.load=read", "models.llm.load=read"],
            "device.host_budget_bytes",
            {"vlm1", "vlm3"},
            id="host DRAM",
        ),
    ],
)
def test_what_does_not_fit_is_named_and_the_others_run(settings: list[str], limit: str, failed: set[str]) -> None:
    result = run("four_vlms", set_values=[*SHORT, *settings])

    figures = result.summary()
    assert set(figures.failed) == failed
    for name, why in figures.failed.items():
        found = {what: int(number.replace(",", "")) for what, number in BYTES.findall(why)}
        assert set(found) == {limit, "asked", "held", "free"}, why
        assert found["free"] == found[limit] - found["held"]
        assert found["asked"] > found["free"]
        assert f"{name} did not start: {why}" in figures.notes
    for name, client in figures.clients.items():
        ran = bool(client.parts)
        assert ran is (name not in failed), name
    held = figures.memory["device"]
    assert held.limit_bytes is None or held.peak_bytes <= held.limit_bytes


def test_nothing_of_what_failed_stays_in_memory() -> None:
    """Four ViTs were loaded and one given back; two LLM copies of three contexts; I/O and KV of three users."""
    result = run("four_vlms", set_values=[*SHORT, "device.contexts_per_process=9"])

    figures = result.summary()
    assert set(figures.failed) == {"vlm1"}
    assert {(count.model, count.context): (count.copies, count.users) for count in figures.copies} == {
        ("vit", "vit"): (4, 3),
        ("llm", "part0"): (2, 3),
        ("llm", "part1"): (2, 3),
        ("llm", "part2"): (2, 3),
    }
    vit_bytes, part_bytes, io_bytes, kv_bytes = 482_812_160, 732_459_520, 29_524_138, 224 * 2**20
    expected = 3 * vit_bytes + 6 * part_bytes + 9 * io_bytes + 3 * kv_bytes
    assert figures.memory["device"].steady_bytes == pytest.approx(expected, abs=9)


def test_when_nothing_fits_the_run_says_so_and_ends() -> None:
    figures = run("four_vlms", set_values=[*SHORT, "device.mapping_limit=0.4GB"]).summary()

    assert len(figures.failed) == 4
    assert all("device.mapping_limit_bytes" in why for why in figures.failed.values())
    assert figures.overall.counts.arrived == 0
