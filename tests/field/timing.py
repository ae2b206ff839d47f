"""The reports about time: what a graph, a token or a request takes when something else goes on."""

from __future__ import annotations

from tests.field.report import Figure, Report

STEP_MS, HOST_MS = 31.85, 6.94
"""A decode step of Qwen3-4B on the NPU and on the host (hotschmoe/specula), fitted to one stream and to three."""
SHORT = ("run.duration=30s",)
ONE_JOB = 1.01 / 30
"""Jobs a second that one job more or less in such a window makes."""
CHUNK_MS, CHAT_MS = 9350 / 64, 1e3 / 272.6
"""A chunk of 1,024 tokens and a decode step (local-inference-lab/vllm issue 541), each from its figure alone."""
PHONES = ("tensor_g3", "snapdragon_8_elite", "exynos_2400e")


def bound(streams: int) -> float:
    """Return the tokens/s of so many streams that overlap: with constant times the bound is attained."""
    return min(1e3 / STEP_MS, streams * 1e3 / (STEP_MS + HOST_MS))


TIMING = (
    Report(
        number="B01",
        scenario="b01_priority_and_starvation",
        source="onnxruntime PR #18315",
        settings=("run.duration=150s", "run.warmup=60s"),
        figures=(
            Figure(
                what="alone, ms",
                published=300,
                said=lambda r: r.ms("alone", "clients.loop0.job.mean"),
                answer=300,
                kind="fitted",
            ),
            Figure(
                what="two at equal priority, each, ms",
                published=600,
                said=lambda r: r.ms("equal", "clients.loop1.job.mean"),
                answer=600,
                kind="predicted",
            ),
            Figure(
                what="low beside high, gap of 3 ms, ms",
                published=30_000,
                said=lambda r: r.ms("high_low", "clients.loop1.job.mean"),
                answer=30_300,
                within=0.011,
                kind="fitted",
            ),
            Figure(
                what="normal beside high, gap of 6 ms, ms",
                published=15_000,
                said=lambda r: r.ms("high_normal", "clients.loop1.job.mean"),
                answer=15_300,
                within=0.021,
                kind="fitted",
            ),
            Figure(
                what="low, had it been weights of 99:1, ms",
                published=30_000,
                said=lambda r: r.ms("weights_99_1", "clients.loop1.job.mean"),
                answer=30_000,
                kind="fitted",
            ),
            Figure(
                what="high beside it, had it been weights, ms",
                published=300,
                said=lambda r: r.ms("weights_99_1", "clients.loop0.job.mean"),
                answer=100 / 99 * 300,
                exact=0.002,
                within=0.011,
                kind="predicted",
            ),
            Figure(
                what="low beside high, strict and without a gap",
                said=lambda r: "starved" if r("strict").clients["loop1"].starved else "served",
                answer="starved",
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B02",
        scenario="b02_streams_in_processes",
        source="hotschmoe/specula",
        settings=SHORT,
        remark="a fourth process was unstable (error 1003): not a matter of time",
        figures=(
            *(
                Figure(
                    what=f"tokens/s of {count} in all",
                    published=published,
                    said=lambda r, name=name: r.number(name, "overall.requests_per_s"),
                    answer=bound(count),
                    exact=ONE_JOB / bound(count),
                    within=within,
                    kind=kind,
                )
                for name, count, published, within, kind in (
                    ("one", 1, 25.78, 0.0015, "fitted"),
                    ("two", 2, 30.05, 0.046, "predicted"),
                    ("three", 3, 31.4, 0.0015, "fitted"),
                    ("four", 4, None, 0.0, "predicted"),
                )
            ),
        ),
    ),
    Report(
        number="B03",
        scenario="b03_gap_inside_the_lock",
        source="hotschmoe/specula",
        settings=SHORT,
        remark="flat, as published, but 4 to 6 % below: part of the host's work is outside the lock after all",
        figures=(
            *(
                Figure(
                    what=f"tokens/s of {count} workers in all",
                    published=published,
                    said=lambda r, name=name: r.number(name, "overall.requests_per_s"),
                    answer=bound(1),
                    exact=ONE_JOB / bound(1),
                    within=0.055,
                    kind="predicted",
                )
                for name, count, published in (
                    ("inside_two", 2, 27.20),
                    ("inside_four", 4, 26.95),
                    ("inside_eight", 8, 26.75),
                )
            ),
        ),
    ),
    Report(
        number="B06",
        scenario="b06_two_nsps",
        source="open-genie-server manual (SA8255P)",
        settings=("run.duration=10s",),
        remark="two models of 1.7B gained 1.42 times: between decode alone and prefill alone, as it must be",
        figures=(
            Figure(
                what="decode alone, tokens/s",
                published=68.7,
                said=lambda r: 1 / r.s("decode_alone", "clients.nsp0.job.mean"),
                answer=1e3 / 14.556,
                within=1e-5,
                kind="fitted",
            ),
            Figure(
                what="decode on both, tokens/s of each",
                published=44.1,
                said=lambda r: 1 / r.s("decode_both", "clients.nsp1.job.mean"),
                answer=0.64e3 / 14.556,
                exact=1e-5,
                within=0.004,
                kind="fitted",
            ),
            Figure(
                what="eight jobs one after another, s",
                published=8.06,
                said=lambda r: r.s("eight_jobs_on_one", "clients.nsp0.job.max"),
                answer=8 * (0.112 + 0.895),
                within=0.001,
                kind="fitted",
            ),
            Figure(
                what="eight jobs on two NSPs, s",
                published=6.13,
                said=lambda r: r.s("eight_jobs_on_two", "clients.nsp0.job.max"),
                answer=4 * (0.112 / 0.84 + 0.895 / 0.64),
                exact=1e-5,
                within=0.002,
                kind="fitted",
            ),
            Figure(
                what="gain of two in prefill alone, times",
                published=1.64,
                said=lambda r: (
                    2 * r.ms("prefill_alone", "clients.nsp0.job.mean") / r.ms("prefill_both", "clients.nsp0.job.mean")
                ),
                answer=1.68,
                exact=1e-5,
                within=0.025,
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B10",
        scenario="b10_second_thread",
        source="qualcomm/qai-appbuilder issue 41",
        figures=(
            Figure(
                what="throughput of two threads, times one",
                published="no faster",
                said=lambda r: (
                    r.number("two_on_one_context", "overall.requests_per_s") / r.number("one", "overall.requests_per_s")
                ),
                answer=1,
                kind="predicted",
            ),
            Figure(
                what="a call of two threads, times one",
                published="they wait for each other",
                said=lambda r: (
                    r.ms("two_on_one_context", "clients.thread0.job.mean") / r.ms("one", "clients.thread0.job.mean")
                ),
                answer=2,
                kind="predicted",
            ),
            Figure(
                what="throughput with a context each, times one",
                said=lambda r: (
                    r.number("two_contexts", "overall.requests_per_s") / r.number("one", "overall.requests_per_s")
                ),
                answer=1,
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B13",
        scenario="b13_same_chip_slower_app",
        source="qualcomm/ai-hub-apps issues 44, 60 and 150",
        settings=("run.duration=10s",),
        figures=(
            *(
                figure
                for issue, tool, app in ((44, 18, 4), (60, 25, 9), (150, 30, 10))
                for figure in (
                    Figure(
                        what=f"issue {issue}, tool, tokens/s",
                        published=tool,
                        said=lambda r, issue=issue: r.rate(f"tool_{issue}", "chat"),
                        answer=tool,
                        exact=1e-4,
                        within=1e-4,
                        kind="fitted",
                    ),
                    Figure(
                        what=f"issue {issue}, app, tokens/s",
                        published=app,
                        said=lambda r, issue=issue: r.rate(f"app_{issue}", "chat"),
                        answer=app,
                        exact=1e-4,
                        within=1e-4,
                        kind="fitted",
                    ),
                    Figure(
                        what=f"issue {issue}, app, NPU busy, %",
                        said=lambda r, issue=issue: r.busy(f"app_{issue}"),
                        answer=100 * app / tool,
                        exact=2e-3,
                        kind="predicted",
                    ),
                )
            ),
        ),
    ),
    Report(
        number="B16",
        scenario="b16_bandwidth_bound",
        source="pytorch/executorch issue 18806",
        figures=(
            Figure(
                what="a step of 0.635 GB at 15.8 GB/s, ms",
                said=lambda r: r.ms("fast", "clients.stream.job.mean"),
                answer=635_039_744 / 15.8e6,
                exact=1e-5,
                kind="predicted",
            ),
            Figure(
                what="one that computes for 50 ms, ms",
                said=lambda r: r.ms("slow", "clients.stream.job.mean"),
                answer=50,
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B17",
        scenario="b17_long_prompt_in_chunks",
        source="vllm-project/vllm issue 10235",
        remark="a GPU",
        figures=(
            Figure(
                what="passes of a prompt of 130,000 tokens",
                published=254,
                said=lambda r: r("alone").clients["long"].parts["prefill"].n,
                answer=254,
                kind="predicted",
            ),
            Figure(
                what="TTFT beside a chat, chunks of 100 and steps of 10 ms, s",
                said=lambda r: r.s("beside_a_chat", "clients.long.ttft.mean"),
                answer=0.005 + 254 * 0.1 + 253 * 0.01,
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B18",
        scenario="b18_priority_after_admission",
        source="vllm-project/vllm issues 40004, 45561 and 54530",
        remark="GPUs",
        figures=(
            Figure(
                what="wait of the urgent one, slot held by a request, s",
                published="the rest of the other's request",
                said=lambda r: r.s("request", "clients.high.guard_wait.max"),
                answer=9,
                kind="predicted",
            ),
            Figure(
                what="the same, slot held for a step, s",
                said=lambda r: r.s("step", "clients.high.guard_wait.max"),
                answer=0,
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B20",
        scenario="b20_long_prefill_kills_decode",
        source="local-inference-lab/vllm issue 541",
        settings=("run.duration=11s",),
        remark="a GPU; taking turns explains the decode and not the prefill",
        figures=(
            Figure(
                what="decode alone, tokens/s",
                published=272.6,
                said=lambda r: r.rate("chat_alone", "chat"),
                answer=272.6,
                exact=1e-6,
                within=1e-6,
                kind="fitted",
            ),
            Figure(
                what="prefill alone, s",
                published=9.35,
                said=lambda r: r.s("long_alone", "clients.long.ttft.mean"),
                answer=9.35,
                kind="fitted",
            ),
            Figure(
                what="decode beside it, tokens/s",
                published=6.62,
                said=lambda r: r.rate("both", "chat", "max"),
                answer=1e3 / (CHUNK_MS + CHAT_MS),
                exact=1e-6,
                within=0.01,
                kind="predicted",
            ),
            Figure(
                what="prefill beside it, s",
                published=16.474,
                said=lambda r: r.s("both", "clients.long.ttft.mean"),
                answer=64 * (CHUNK_MS + CHAT_MS) / 1e3,
                exact=5e-4,  # the first step it meets is under way
                within=0.42,
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B22",
        scenario="b22_two_prefills_one_decode",
        source="tenstorrent/vllm-tt-plugin issue 74 and PR 119",
        remark="a Tenstorrent accelerator",
        figures=(
            Figure(
                what="gap of a dialog at 2 : 1, chunks of 100 and steps of 10 ms, ms",
                published="2 chunks",
                said=lambda r: r.ms("two_to_one", "clients.chat.itl.max"),
                answer=2 * 100 + 10,
                kind="predicted",
            ),
            Figure(
                what="at 1 : 1, ms",
                said=lambda r: r.ms("one_to_one", "clients.chat.itl.max"),
                answer=100 + 10,
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B24",
        scenario="b24_cold_wake_ups",
        source="onnxruntime-qnn issues 38 and 781",
        remark="figures of zzh-www/qcom_htp, whose only cold run is its first: what later ones cost is open",
        figures=(
            Figure(
                what="warm, every 100 ms, us",
                published=37.031,
                said=lambda r: r.ms("busy", "clients.loop.job.p50") * 1e3,
                answer=37.031,
                kind="fitted",
            ),
            Figure(
                what="the first run, us",
                published=410.885,
                said=lambda r: r.ms("first", "clients.loop.job.max") * 1e3,
                answer=410.885,
                kind="fitted",
            ),
            Figure(
                what="cold, every second, us",
                published=410.885,
                said=lambda r: r.ms("sparse", "clients.loop.job.p50") * 1e3,
                answer=37.031 + 309.167,
                within=0.16,
                kind="predicted",
            ),
            Figure(
                what="cold of 600 calls every 100 ms",
                said=lambda r: r("busy").clients["loop"].costs["cold"].mean.n,
                answer=1,
                kind="predicted",
            ),
            Figure(
                what="warm at random times, p95, us",
                said=lambda r: r.ms("random", "clients.loop.costs.warm.p95") * 1e3,
                answer=37.031,
                kind="predicted",
            ),
            Figure(
                what="cold at random times, median, us",
                said=lambda r: r.ms("random", "clients.loop.costs.cold.p50") * 1e3,
                answer=37.031 + 309.167,
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B25",
        scenario="b25_two_engines",
        source="NVIDIA/TensorRT issue 1238",
        remark="a GPU; issue 22778 is of a CPU, where two sessions cost more than their sum",
        figures=(
            Figure(
                what="TensorRT 1238, alone, s",
                published=4,
                said=lambda r: r.s("alone", "clients.engine0.job.mean"),
                answer=4,
                kind="fitted",
            ),
            Figure(
                what="TensorRT 1238, two, s",
                published=8,
                said=lambda r: r.s("both", "clients.engine0.job.mean"),
                answer=8,
                kind="predicted",
            ),
            Figure(
                what="onnxruntime 5363, two, times alone",
                published=2,
                said=lambda r: r.s("both", "clients.engine1.job.mean") / r.s("alone", "clients.engine0.job.mean"),
                answer=2,
                kind="predicted",
            ),
            Figure(
                what="onnxruntime 22778, two, ms",
                published=9.29,
                said=lambda r: r.ms("short_both", "clients.engine1.job.mean"),
                answer=4.64,
                within=0.51,
                kind="predicted",
            ),
            Figure(
                what="4 s each and 5 % a start, s",
                said=lambda r: r.s("switching", "clients.engine0.job.mean"),
                answer=8.4,
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B27",
        scenario="b27_larger_than_one_session",
        source="qualcomm/GenieX issue 1155",
        settings=("run.duration=10s",),
        figures=(
            Figure(
                what="4.3 GB in one session of 3.5 GB",
                published="does not load",
                said=lambda r: r.why("one_session", "chat", "device.pd_bytes", "device.dram_budget_bytes"),
                answer="device.pd_bytes",
                kind="predicted",
            ),
            Figure(
                what="in two sessions, tokens/s",
                published=3.4,
                said=lambda r: r.rate("two_sessions", "chat"),
                answer=3.4,
                exact=1e-5,
                within=1e-5,
                kind="fitted",
            ),
            Figure(
                what="speed of two sessions, times one with room",
                said=lambda r: r.rate("two_sessions", "chat") / r.rate("whole", "chat"),
                answer=1,
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B29",
        scenario="b29_throttling",
        source="microsoft/MegaDetector issue 34",
        settings=("run.duration=90s", "device.throttle_after=30s"),
        remark="three phones, two of them as they settled; the test takes 90 s for the half hour",
        figures=(
            Figure(
                what="Tensor G3, first minute, ms",
                published=196,
                said=lambda r: r.jobs_ms("tensor_g3")[0],
                answer=196,
                kind="fitted",
            ),
            Figure(
                what="Tensor G3, last minute, ms",
                published=400,
                said=lambda r: r.jobs_ms("tensor_g3")[-1],
                answer=196 * 2.041,
                exact=1e-6,
                within=2e-3,
                kind="fitted",
            ),
            Figure(
                what="fastest of the three, first minute",
                said=lambda r: min(PHONES, key=lambda name: r.jobs_ms(name)[0]),
                answer="tensor_g3",
                kind="fitted",
            ),
            Figure(
                what="slowest of the three, last minute",
                published="the order changes",
                said=lambda r: max(PHONES, key=lambda name: r.jobs_ms(name)[-1]),
                answer="tensor_g3",
                kind="fitted",
            ),
            Figure(
                what="mean of the half hour, Tensor G3, ms",
                said=lambda r: r.ms("tensor_g3", "clients.app.job.mean"),
                answer=3 / (1 / 196 + 2 / 400),
                exact=0.005,
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B30",
        scenario="b30_idle_gap",
        source="alibaba/MNN issue 164",
        remark="a phone's CPU, not an NPU: only the form carries over",
        figures=(
            Figure(
                what="in a loop, ms",
                published=25,
                said=lambda r: r.ms("loop", "clients.app.job.mean"),
                answer=25,
                kind="fitted",
            ),
            Figure(
                what="with pauses, ms",
                published=80,
                said=lambda r: r.ms("with_pauses", "clients.app.job.mean"),
                answer=80,
                kind="fitted",
            ),
            Figure(
                what="with pauses shorter than the timer, ms",
                said=lambda r: r.ms("short_pauses", "clients.app.job.mean"),
                answer=25,
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B31",
        scenario="b31_stages_of_a_vlm",
        source="vllm-project/vllm issue 41267",
        remark="a GPU",
        figures=(
            Figure(
                what="TTFT of 2,718 tokens with an image, ms",
                published=293,
                said=lambda r: r.ms("image", "clients.vlm.ttft.mean"),
                answer=167 + 126,
                kind="predicted",
            ),
            Figure(
                what="the same prompt without the encoder, ms",
                said=lambda r: r.ms("text", "clients.vlm.ttft.mean"),
                answer=126,
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B34",
        scenario="b34_polling",
        source="microsoft/Foundry-Local issue 1081",
        settings=("run.duration=10s",),
        figures=(
            Figure(
                what="spinning, tokens/s",
                published=13.5,
                said=lambda r: r.rate("spinning", "chat"),
                answer=13.5,
                exact=1e-5,
                within=1e-5,
                kind="fitted",
            ),
            Figure(
                what="sleeping, tokens/s",
                published=10.5,
                said=lambda r: r.rate("sleeping", "chat"),
                answer=10.5,
                exact=1e-5,
                within=1e-5,
                kind="fitted",
            ),
            Figure(
                what="sleeping, NPU busy, %",
                said=lambda r: r.busy("sleeping"),
                answer=100 * 10.5 / 13.5,
                exact=2e-3,
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B35",
        scenario="b35_beyond_the_context",
        source="qualcomm/GenieX issue 680",
        figures=(
            Figure(
                what="a request that fills 4,096 tokens",
                said=lambda r: f"{r('fits').overall.counts.done} done, {r('fits').overall.counts.refused} refused",
                answer="2 done, 0 refused",
                kind="predicted",
            ),
            Figure(
                what="a second turn that does not fit any more",
                published="a longer one is not to be had",
                said=lambda r: (
                    f"{r('second_turn').overall.counts.done} done, {r('second_turn').overall.counts.refused} refused"
                ),
                answer="1 done, 1 refused",
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B39",
        scenario="b39_vit_slower_on_the_npu",
        source="google-ai-edge/LiteRT-LM issue 2187",
        figures=(
            Figure(
                what="vision stage on the NPU, s",
                published=20,
                said=lambda r: r.s("on_npu", "clients.looker.vit.mean"),
                answer=20.05,
                within=0.003,
                kind="fitted",
            ),
            Figure(
                what="vision stage on the CPU, s",
                published=8,
                said=lambda r: r.s("on_cpu", "clients.looker.vit.mean"),
                answer=8,
                kind="fitted",
            ),
            Figure(
                what="longest gap of a dialog meanwhile, ViT on the NPU, s",
                said=lambda r: r.s("on_npu", "clients.dialog.itl.max"),
                answer=20.1,
                kind="predicted",
            ),
            Figure(
                what="longest gap of a dialog meanwhile, ViT on the CPU, s",
                said=lambda r: r.s("on_cpu", "clients.dialog.itl.max"),
                answer=0.2,  # a step of its own and one of the other's LLM
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B41",
        scenario="b41_vtcm_too_large",
        source="qualcomm/ai-hub-models issue 289",
        remark="htpsim has no error codes: graphs that do not fit beside each other take turns",
        figures=(
            *(
                Figure(
                    what=f"two graphs of 10 ms with {size} MB, each takes, ms",
                    published=published,
                    said=lambda r, name=name: r.ms(name, "clients.loop1.job.p50"),
                    answer=taken_ms,
                    exact=1e-6,
                    kind="predicted",
                )
                for name, size, published, taken_ms in (
                    ("all_of_it", 8, "error 5005", 20),
                    ("half_of_it", 4, "a smaller setting helps", 10 / 0.7),
                    ("not_alike", 5, None, 20),
                )
            ),
        ),
    ),
)
