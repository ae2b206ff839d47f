"""The other workloads: each of them by a closed form, or by the direction in which it must go. Times in ms."""

from __future__ import annotations

import pytest

from htpsim.results.summary import Summary
from htpsim.scenario import load
from tests.scenarios.support import SCENARIOS, job_ms, number, summary

pytestmark = pytest.mark.slow

NAMES = sorted(path.stem for path in (SCENARIOS / "workloads").glob("*.toml"))


def ms(figures: Summary, path: str) -> float:
    return number(figures, path) / 1e6


def tokens_per_s(figures: Summary) -> float:
    return number(figures, "overall.tokens_per_s")


@pytest.mark.parametrize("name", NAMES)
def test_it_asks_something_and_says_what_each_variant_is(name: str) -> None:
    file = load(SCENARIOS / "workloads" / f"{name}.toml")
    first, second, *lines = file.path.read_text(encoding="utf-8").splitlines()

    assert first == "#:schema ../scenario.schema.json"
    assert second.startswith("# ")
    assert file.question.endswith("?")
    assert file.title != name
    assert len(file.variants) > 1
    assert all(variant.text for variant in file.variants.values())
    assert [line for line in lines if len(line) > 120 and "source = " not in line] == []


class TestNpuOrHost:
    """A token takes 40 on the NPU and 71.111 on the host: N streams give min(1 / b, N / (b + h))."""

    @pytest.mark.parametrize(
        ("variant", "streams", "host_ms"),
        [("npu_one", 1, 0.0), ("npu_two", 2, 0.0)]
        + [(f"host_{word}", count, 71.111) for word, count in (("one", 1), ("two", 2), ("three", 3))],
    )
    def test_streams_fill_what_the_host_leaves_idle(self, variant: str, streams: int, host_ms: float) -> None:
        figures = summary("workloads/npu_or_host", variant, set_values=["run.duration=20s"])

        bound = min(1e3 / 40, streams * 1e3 / (40 + host_ms))
        assert tokens_per_s(figures) == pytest.approx(bound, abs=streams * 1.01 / 20)
        assert number(figures, "cores.core 0.utilisation") == pytest.approx(bound * 40 / 1e3, abs=0.003)

    def test_nobody_waits_for_whom_the_host_holds_up(self) -> None:
        """Slow on an idle NPU: no queue is to blame."""
        assert ms(summary("workloads/npu_or_host", "host_one"), "clients.stream0.device_wait.max") == 0


class TestChunkedPrefill:
    """A chunk of n tokens takes 20 + n x 0.15625, a step 20; a prompt of 4,096 tokens comes 10 before a step ends."""

    @pytest.mark.parametrize(("variant", "tokens"), [("chunk_128", 128), ("chunk_512", 512), ("chunk_4096", 4096)])
    def test_a_token_waits_for_one_chunk_and_the_prompt_for_a_step_a_chunk(self, variant: str, tokens: int) -> None:
        figures = summary("workloads/chunked_prefill", variant)

        chunks, chunk_ms = 4096 // tokens, 20 + tokens * 0.15625
        assert ms(figures, "clients.chat.itl.max") == chunk_ms + 20
        assert ms(figures, "clients.long.ttft.mean") == 10 + chunks * chunk_ms + (chunks - 1) * 20


class TestVitInKGraphs:
    """A ViT of 160 in k graphs, 5 a call, beside a dialog whose step takes 10."""

    @pytest.mark.parametrize("k", [1, 2, 4, 8, 16, 32])
    def test_the_gap_falls_by_the_cut_and_the_vit_pays_for_each(self, k: int) -> None:
        """The image comes 11 before the dialog's next gap; each cut lets in a step: its call of 5 and its 10."""
        figures = summary("workloads/vit_in_k_graphs", f"k_{k}", set_values=["run.duration=5s"])

        assert ms(figures, "clients.dialog.itl.max") == 160 / k + 10 + 2 * 5
        assert ms(figures, "clients.looker.vit.max") == 11 + 160 + 5 * k + (5 + 10) * (k - 1)


class TestCameraTraffic:
    """A step of 50 that reads 1.8 GB, a ViT of 161 that reads 0.426 GB; 40 GB/s for all."""

    @pytest.mark.parametrize(
        ("variant", "background", "alone_ms", "gigabytes"),
        [
            ("quiet", 0, 50, 1.8),
            ("some", 4, 50, 1.8),
            ("half", 20, 50, 1.8),
            ("most", 30, 50, 1.8),
            ("vit_most", 30, 161, 0.426),
        ],
    )
    def test_a_graph_takes_its_time_or_that_of_its_bytes(
        self, variant: str, background: int, alone_ms: int, gigabytes: float
    ) -> None:
        figures = summary("workloads/camera_traffic", variant)

        expected = max(alone_ms, gigabytes / (40 - background) * 1e3)
        assert job_ms(figures, "loop", "max") == pytest.approx(expected, rel=1e-6)

    def test_bursts_take_their_share_of_time(self) -> None:
        """Of 40, 30 at full speed and 10 at 10/36 of it, the share of its demand that is left."""
        figures = summary("workloads/camera_traffic", "frames")

        assert job_ms(figures, "loop") == pytest.approx(50 * 40 / (30 + 10 * 10 / 36), rel=5e-3)


class TestVitBesideDecode:
    """ViT 160, prefill 40, 20 tokens of 20; asked every 400."""

    @pytest.mark.parametrize(
        ("variant", "request_ms", "gap_ms"),
        [("one_core", 600, 20), ("one_core_own", 600, 20 + 160), ("two_cores", 600, 20), ("two_cores_own", 440, 20)],
    )
    def test_only_a_thread_and_a_core_together_hide_the_vit(self, variant: str, request_ms: int, gap_ms: int) -> None:
        """On one core the work is the same and a token waits for a ViT; on two the longer stage counts, 40 + 400."""
        figures = summary("workloads/vit_beside_decode", variant, set_values=["run.duration=20s", "run.warmup=5s"])

        assert number(figures, "overall.requests_per_s") == pytest.approx(1e3 / request_ms, abs=1.01 / 20)
        assert ms(figures, "clients.vlm.itl.max") == gap_ms


class TestVitOffNpu:
    """A ViT of 160 on the NPU, of 320 on the host; steps and prefill of 20; images come 10 into a step."""

    @pytest.mark.parametrize(
        ("variant", "gap_ms", "ttft_ms"), [("npu", 160 + 20, 10 + 160 + 20 + 20), ("host", 20 + 20, 320 + 10 + 20)]
    )
    def test_who_asked_pays_and_nobody_waits(self, variant: str, gap_ms: int, ttft_ms: int) -> None:
        figures = summary("workloads/vit_off_npu", variant, set_values=["run.duration=10s"])

        assert ms(figures, "clients.talker.itl.max") == gap_ms
        assert ms(figures, "clients.looker.ttft.max") == ttft_ms


class TestContextTiers:
    """512 tokens of prompt; a step of tier n takes its time from where n - 1 is full."""

    def test_each_tier_takes_the_tokens_that_the_one_below_does_not_hold(self) -> None:
        """Predicted: 42.85 ms in the mean; published for the whole log, with another prompt, 42.92."""
        figures = summary("workloads/context_tiers", "long")

        mean_ms = (512 * 39.06 + 1024 * 40.98 + 1024 * 42.95 + 1023 * 46.53) / 3583
        assert number(figures, "clients.chat.itl.mean") / 1e6 == pytest.approx(mean_ms, rel=1e-9)
        assert mean_ms == pytest.approx(42.922, rel=0.002)
        assert ms(figures, "clients.chat.itl.max") == 46.53

    def test_a_short_dialog_stays_in_the_first(self) -> None:
        assert ms(summary("workloads/context_tiers", "short"), "clients.chat.itl.max") == 39.06
