"""What the tools around context binaries write: the utility's JSON, the generator's log, the throughput test's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim import formats
from htpsim.errors import FormatError
from htpsim.formats import qnn_context_info, qnn_context_log, qnn_throughput
from htpsim.formats.source import from_text
from htpsim.formats.values import Value

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "formats"
INFO = FIXTURES / "ctxinfo_two_graphs.json"
LOG = FIXTURES / "ctxlog_two_graphs.log"
CONFIG = FIXTURES / "throughput_two.json"


def info(*graphs: dict[str, Any]) -> formats.ContextInfo:
    document = {"info": {"graphs": [{"info": {"graphName": f"g{n}", **graph}} for n, graph in enumerate(graphs)]}}
    return qnn_context_info.parse(from_text("i.json", json.dumps(document)))


def test_a_binary_gives_every_size_with_its_line() -> None:
    data = formats.context_facts(INFO)
    first = data.graphs[0]

    assert (data.build, data.soc_model) == (Value("v2.45.0.260326", "", 4), Value(88, "", 45))
    assert (data.dsp_arch, data.blob) == (Value(81, "", 6), Value(3_000_000, "bytes", 5))
    assert (first.name, first.spill_fill) == (Value("vit_prefill", "", 23), Value(40960, "bytes", 11))
    assert (first.vtcm_mb, first.hvx_threads, first.optimisation) == (
        Value(8, "MB", 11),
        Value(8, "count", 11),
        Value(3, "", 11),
    )
    assert (first.io, first.op_data, first.const) == (
        Value(70000, "bytes", 15),
        Value(50000, "bytes", 15),
        Value(256, "bytes", 15),
    )
    assert first.shared_weights == Value(2_500_000, "bytes", 16)


def test_the_five_terms_of_a_binary_count_what_graphs_share_once() -> None:
    data = formats.context_facts(INFO)

    assert data.weights_bytes == 2_500_000 + 256 + 0
    assert data.run_list_bytes == 50_000 + 10_000
    assert data.io_bytes == 70_000 + 30_000
    assert data.spill_fill_bytes == max(40_960, 20_480)
    assert data.vtcm_backup_bytes == 8 << 20, "vtcmSize counts in MB, the others in bytes"


def test_a_tensor_has_the_size_of_its_elements() -> None:
    data = formats.context_facts(INFO)

    assert data.graphs[0].inputs[0].size_bytes == 3 * 64 * 64 * 2
    assert data.graphs[0].outputs[0].size_bytes == 400
    assert data.graphs[1].inputs[0].size_bytes == 8, "four bits take a byte"


def test_older_tools_state_less_and_nothing_is_taken_for_zero() -> None:
    report = qnn_context_info.read(from_text("i.json", '{"info": {"graphs": [{"info": {"graphName": "g"}}]}}'))

    assert (report.data.weights_bytes, report.data.io_bytes, report.data.vtcm_backup_bytes) == (None, None, None)
    assert [note for note in report.notes if "are missing, not zero" in note]
    assert 0 not in [fact.value for fact in report.facts if fact.unit == "bytes"]


def test_graphs_that_state_different_pools_are_pointed_out() -> None:
    pools = ({"graphBlobInfoV2": {"sharedWeightsSize": size, "constSize": 1}} for size in (10, 30))
    document = {"info": {"graphs": [{"info": {"graphName": "g", **pool}} for pool in pools]}}
    report = qnn_context_info.read(from_text("i.json", json.dumps(document)))

    assert report.data.weights_bytes == 32
    assert [note for note in report.notes if "different pools of shared weights (10, 30)" in note]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ('{"graphs": []}', r"i.json:1: got an object, expected what qnn-context-binary-utility writes"),
        ('{"info": {"graphs": [{"info": {}}]}}', r"expected a graph with 'graphName'"),
        ('{"info": {"graphs": [7]}}', r"i.json:1: got 7 at info.graphs\[0\], expected an object"),
        (
            '{"info": {"contextBlobSize": -1, "graphs": [{"graphName": "g"}]}}',
            r"i.json:1: got -1 at info.contextBlobSize, expected a number from 0 to 2\^63",
        ),
        (
            '{"info": {"graphs": [{"graphName": "g", "graphInputs": [{"name": "x", "dimensions": [1e12]}]}]}}',
            r"at most 16 dimensions below 2\^31",
        ),
    ],
)
def test_what_is_no_such_json_is_refused_by_its_place(document: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        qnn_context_info.read(from_text("i.json", document))


@given(st.lists(st.tuples(*[st.integers(0, 2**40)] * 5), min_size=1, max_size=6), st.integers(0, 2**40))
def test_the_sums_hold_for_any_graphs(graphs: list[tuple[int, ...]], pool: int) -> None:
    data = info(
        *(
            {
                "graphBlobInfo": {"info": {"spillFillBufferSize": spill, "vtcmSize": vtcm % 64}},
                "graphBlobInfoV2": {
                    "ioTensorSize": io,
                    "opDataSize": op,
                    "constSize": const,
                    "sharedWeightsSize": pool,
                },
            }
            for spill, vtcm, io, op, const in graphs
        )
    )

    assert data.weights_bytes == pool + sum(const for *_, const in graphs)
    assert data.io_bytes == sum(io for _, _, io, _, _ in graphs)
    assert data.spill_fill_bytes == max(spill for spill, *_ in graphs)


def test_a_log_gives_stages_and_traffic_graph_by_graph() -> None:
    first, second = formats.read(LOG).data.graphs

    assert [(stage.name, stage.duration) for stage in first.stages] == [
        ("Graph Preparation Initializing", Value(100, "us", 4)),
        ("VTCM Allocation", Value(2000, "us", 6)),
    ]
    assert (first.fill_bytes, first.read_total_bytes) == (Value(4096, "bytes", 10), Value(9000, "bytes", 12))
    assert first.dram_bytes == 10_000
    assert (second.dram_bytes, second.stages[1].duration) == (None, None)
    assert "line 16: the stage VTCM Allocation did not complete" in formats.read(LOG).notes
    assert [error.line for error in formats.read(LOG).data.errors] == [2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Completed stage: VTCM Allocation (fast)\nCompleted stage: B (1 us)\n", "a.log:1: got 'Completed stage"),
        ("Completed stage: VTCM Allocation (-3 us)\n", "expected a stage such as"),
        ("read_total_bytes=9\n", "a.log:1: got read_total_bytes outside a summary"),
        ("== DDR bandwidth summary ==\nread_total_bytes=x\n", "a.log:2: got 'read_total_bytes=x', expected a count"),
        (
            "== DDR bandwidth summary ==\nspill_bytes=1\nspill_bytes=1\n",
            "a.log:3: got spill_bytes outside a summary, expected .DDR bandwidth summary. above it, and each",
        ),
        ("nothing of the kind\n", "a.log:1: got 'nothing of the kind', expected a log with 'Completed stage:'"),
    ],
)
def test_a_stage_or_count_of_another_kind_is_refused(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        qnn_context_log.read(from_text("a.log", text))


def test_a_configuration_gives_who_runs_what() -> None:
    data = formats.throughput_facts(CONFIG)
    vit, lane, pre = data.threads

    assert (vit.model.name, vit.context.priority) == (Value("vit", "", 8), Value("LOW", "", 12))
    assert (vit.interval, vit.loop, vit.loop_unit) == (
        Value(0, "us", 20),
        Value(10, "s", 20),
        Value("second", "", 20),
    )
    assert (lane.interval, lane.loop) == (Value(33000, "us", 22), Value(200, "count", 22))
    assert (vit.outstanding, lane.outstanding) == (1, 4)
    assert (lane.backend.is_htp, pre.backend.is_htp) == (True, False)
    assert lane.backend.perf_profile == Value("burst", "", 5)
    assert data.iteration == Value(1, "count", 16)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"model": "vit"', '"model": "vid"', r"throughput.json:\d+: got 'vid' at testCase.threads\[0\].model, "
         r"expected one of lane detector, vit; did you mean 'vit'\?, of the file's models"),
        ('"low"', '"lowest"', r"expected one of CRITICAL, .* did you mean 'LOW'\?"),
        ('"loopUnit": "second"', '"loopUnit": "hour"', r"got 'hour' at .*loopUnit, expected 'count' or 'second'"),
        ('"interval": 33000', '"interval": -1', r"got -1 at .*interval, expected a number from 0 to 2\^63"),
        ('"executeAsyncQueueDepth": 4', '"executeAsyncQueueDepth": 301', "expected a depth from 1 to 300"),
        ('"threadName": "lane"', '"threadName": "vit_0"', r"another threadName than 'vit_0', which line \d+ has"),
        ('"backendName": "htp_backend", ', "", "expected an entry with 'backendName'"),
        ('"testCase"', '"testCases"', "expected a configuration of qnn-throughput-net-run"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_configuration_is_said_with_the_nearest(old: str, new: str, message: str) -> None:
    text = CONFIG.read_text(encoding="utf-8").replace(old, new, 1)

    with pytest.raises(FormatError, match=message):
        qnn_throughput.read(from_text("throughput.json", text))


@pytest.mark.parametrize("path", ["libQnnHtp.so", "C:\\qnn\\QnnHtp.dll", "/vendor/lib64/libQnnHtpV73.so"])
def test_a_backend_is_known_by_its_library(path: str) -> None:
    assert qnn_throughput.Backend(Value("b", "", 1), Value(path, "", 1), None, None).is_htp
    assert not qnn_throughput.Backend(Value("b", "", 1), Value("/htp/libQnnGpu.so", "", 1), None, None).is_htp


@pytest.mark.parametrize("digits", [1, 2, 3, 4])
def test_a_count_at_the_very_end_of_a_log_may_be_cut_off_and_says_so(digits: int) -> None:
    text = LOG.read_text(encoding="utf-8")
    end = text.index("read_total_bytes=9000") + len("read_total_bytes=") + digits
    cut = qnn_context_log.read(from_text("a.log", text[:end]))
    assert cut.data.graphs[0].read_total_bytes.value == int("9000"[:digits])
    assert any("its last value may be cut off" in note for note in cut.notes)
    for whole in (text, text[: text.index("read_total_bytes=9000")] + "read_total_bytes=9000\n"):
        assert not any("cut off" in note for note in qnn_context_log.read(from_text("a.log", whole)).notes)
