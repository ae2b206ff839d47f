"""The reports about memory: what loads, what does not, and what it holds."""

from __future__ import annotations

from tests.field.report import Figure, Report

MEMORY = (
    Report(
        number="B04",
        scenario="b04_two_graph_sets",
        source="hotschmoe/specula",
        figures=(
            Figure(
                what="4 + 4 parts, limit of 5.5 GB",
                published="the eighth fails",
                said=lambda r: r.failed("two_sets"),
                answer="session7 fails",
                kind="fitted",
            ),
            Figure(
                what="held by the seven that load, GB",
                said=lambda r: r.held_gb("two_sets", "device"),
                answer=2 * (0.742 + 0.637 + 0.637) + 1.020,
                kind="predicted",
            ),
            Figure(
                what="one bundle, GB",
                said=lambda r: r.held_gb("one_bundle", "device"),
                answer=0.742 + 0.637 + 0.637 + 1.020,
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B08",
        scenario="b08_vlm_beside_llm",
        source="open-genie-server manual (SA8255P)",
        remark="the allocation that the log prints is the same in all three, and so decides nothing",
        figures=(
            Figure(
                what="a device each",
                published="loads",
                said=lambda r: r.failed("two_devices"),
                answer="all load",
                kind="predicted",
            ),
            Figure(
                what="on one device, two PDs",
                published="does not load",
                said=lambda r: r.failed("one_device"),
                answer="user1 fails",
                kind="fitted",
            ),
            Figure(
                what="a device each, more context lengths",
                published="does not load",
                said=lambda r: r.failed("more_lengths"),
                answer="user0 fails, user1 fails",
                kind="fitted",
            ),
        ),
    ),
    Report(
        number="B11",
        scenario="b11_session_address_space",
        source="powerserve-project/PowerServe issue 6",
        figures=(
            Figure(
                what="6 GB in one binary, 24 GB of RAM",
                published="does not load",
                said=lambda r: r.why("one_bin", "user", "device.pd_bytes", "device.dram_budget_bytes"),
                answer="device.pd_bytes",
                kind="predicted",
            ),
            Figure(
                what="6 GB in two",
                published="loads",
                said=lambda r: r.failed("two_bins"),
                answer="all load",
                kind="predicted",
            ),
            Figure(
                what="most of one process, GB",
                published=15,
                said=lambda r: r.held_gb("four_bins", "device"),
                answer=4 * 3.75,
                kind="fitted",
            ),
            Figure(
                what="15 GB in five sessions",
                published="four at most",
                said=lambda r: r.why("five_bins", "user", "context 3", "context 4", "device.pd_count"),
                answer="context 4, device.pd_count",
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B12",
        scenario="b12_one_buffer_too_large",
        source="quic/ai-hub-models issues 85 and 100",
        figures=(
            Figure(
                what="a buffer of 1,083,146,928 bytes, limit of 1 GB",
                published="fails",
                said=lambda r: r.why("three_bins", "user", "context 1", "context 2", "device.mapping_limit_bytes"),
                answer="context 2, device.mapping_limit_bytes",
                kind="fitted",
            ),
            Figure(
                what="cut in two",
                published="smaller ones load",
                said=lambda r: r.failed("four_bins"),
                answer="all load",
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B15",
        scenario="b15_one_big_buffer",
        source="pytorch/executorch issue 18862",
        figures=(
            Figure(
                what="467 MB in one mapping, limit of 400 MB",
                published="error 1002",
                said=lambda r: r.why("one_buffer", "user", "device.mapping_limit_bytes"),
                answer="device.mapping_limit_bytes",
                kind="fitted",
            ),
            Figure(
                what="inferences before it fails",
                said=lambda r: r("one_buffer").overall.counts.done,
                answer=0,
                kind="predicted",
            ),
            Figure(
                what="in two mappings",
                said=lambda r: r.failed("two_buffers"),
                answer="all load",
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B23",
        scenario="b23_sessions_and_copies",
        source="microsoft/onnxruntime issue 26952",
        remark="sizes are round numbers; host memory is the files and each session's I/O",
        figures=(
            Figure(
                what="four sessions, read, N (w + io), GB",
                published="a copy a session",
                said=lambda r: r.held_gb("read", "host") + r.held_gb("read", "device") - 4 * 3,
                answer=4 * (3 + 0.3),
                kind="predicted",
            ),
            Figure(
                what="four sessions, mapped, w + N io, GB",
                published="one copy",
                said=lambda r: r.held_gb("mapped", "host") + r.held_gb("mapped", "device") - 4 * 3,
                answer=3 + 4 * 0.3,
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B33",
        scenario="b33_unload_to_fit",
        source="microsoft/onnxruntime-genai PR 1346",
        remark="round sizes of ours",
        figures=(
            Figure(
                what="ViT of 0.5 GB and LLM of 3 GB, budget of 3.2 GB",
                published="out of memory",
                said=lambda r: r.failed("both_stay"),
                answer="vlm fails",
                kind="predicted",
            ),
            Figure(
                what="the same, unloading around each stage",
                published="fits",
                said=lambda r: r.failed("unload"),
                answer="all load",
                kind="predicted",
            ),
            Figure(
                what="peak, GB, where 3.5 were needed",
                said=lambda r: r.peak_gb("unload", "device"),
                answer=3.0,
                kind="predicted",
            ),
            Figure(
                what="TTFT with room for both, s",
                said=lambda r: r.s("roomy", "clients.vlm.ttft.max"),
                answer=0.16 + 0.04,
                kind="predicted",
            ),
            Figure(
                what="TTFT when both are loaded for it, at 0.5 GB/s, s",
                said=lambda r: r.s("unload", "clients.vlm.ttft.max"),
                answer=0.5 / 0.5 + 0.16 + 3 / 0.5 + 0.04,
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B43",
        scenario="b43_leak",
        source="qualcomm/qai-appbuilder issue 97",
        remark="round sizes of ours",
        figures=(
            Figure(
                what="loads before one fails, 3 GB and 200 MB a cycle",
                said=lambda r: r.loads("leaking", "owner"),
                answer=15,
                kind="predicted",
            ),
            Figure(
                what="what becomes of the app then",
                published="error 1002",
                said=lambda r: r.why("leaking", "app", "no room", "device.dram_budget_bytes"),
                answer="no room, device.dram_budget_bytes",
                kind="predicted",
            ),
            Figure(
                what="failed loads without the leak",
                said=lambda r: r.loads("sound", "failed"),
                answer=0,
                kind="predicted",
            ),
        ),
    ),
    Report(
        number="B44",
        scenario="b44_rapid_swaps",
        source="jundot/omlx issues 1623, 1774 and 1938",
        remark="a Mac; admission there went by what was live and not by what was promised",
        figures=(
            Figure(
                what="most held of 23 and 29 GB, limit of 50 GB",
                published="both were let in",
                said=lambda r: r.peak_gb("limit_50", "device"),
                answer=29,
                kind="predicted",
            ),
            Figure(
                what="copies loaded less copies unloaded, at the end",
                published="memory never came back",
                said=lambda r: r.loads("limit_50", "owner") - r.loads("limit_50", "unloaded"),
                answer=1,
                kind="predicted",
            ),
            Figure(
                what="most held, limit of 60 GB",
                said=lambda r: r.peak_gb("limit_60", "device"),
                answer=23 + 29,
                kind="predicted",
            ),
            Figure(
                what="unloads, limit of 60 GB",
                said=lambda r: r.loads("limit_60", "unloaded"),
                answer=0,
                kind="predicted",
            ),
        ),
    ),
)
