"""What each kind of file gives: values with their place and count, warnings, and refusals that leave nothing behind."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import htpsim
from htpsim.errors import HtpsimError
from htpsim.experiments.calibrate import Calibration, Leaf, calibrate
from tests.calibrate.support import EXAMPLES, FIXTURES, TENTH, VerboseLog, csv_profile, viewer_text


def value(found: Calibration, key: str) -> Leaf:
    return dict(found.values)[key]


def said(found: Calibration, words: str) -> bool:
    return any(words in warning for warning in found.warnings)


def steps(log: VerboseLog, graph: str) -> list[int]:
    return [spent for name, spent in log.executions if name == graph]


# --- a verbose console log --------------------------------------------------------------------------------------------


def test_a_verbose_log_gives_each_part_its_own_times(tmp_path: Path) -> None:
    log = VerboseLog()
    found = calibrate(log.write(tmp_path))

    for graph in (f"token_ar1_cl{length}_{part}_of_2" for length in (128, 256) for part in (1, 2)):
        own = steps(log, graph)
        leaf = value(found, f"models.llm.decode.{graph}.service")
        assert leaf.model is not None
        assert leaf.model.mean_ns == round(sum(own) / len(own))
        assert (leaf.n, leaf.mark) == (len(own), "measured")


def test_host_gaps_are_the_means_of_the_log(tmp_path: Path) -> None:
    found = calibrate(VerboseLog(gap_graph=(2,), gap_step=(5,)).write(tmp_path))

    assert value(found, "instances.vlm.host_gap_graph").value == "200us"
    assert value(found, "instances.vlm.host_gap_step").value == "500us"


def test_every_value_names_file_lines_and_count(tmp_path: Path) -> None:
    folder = tmp_path / "somewhere"
    folder.mkdir()
    found = calibrate(VerboseLog().write(folder, "my run.log"))
    text = found.to_toml()

    assert str(tmp_path) not in text
    leaf = value(found, "models.llm.decode.token_ar1_cl256_2_of_2.service")
    first, last = map(int, re.findall(r"my run\.log:(\d+)-(\d+) execute of token_ar1_cl256_2_of_2", leaf.source)[0])
    lines = (folder / "my run.log").read_text().splitlines()
    assert "Graph token_ar1_cl256_2_of_2 execution finished" in lines[first - 1]
    assert "Graph token_ar1_cl256_2_of_2 execution finished" in lines[last - 1]
    assert "n = 60" in leaf.source


def test_the_same_files_give_the_same_bytes_wherever_they_lie(tmp_path: Path) -> None:
    texts = set()
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        texts.add(calibrate(VerboseLog().write(folder)).to_toml())

    assert len(texts) == 1


def test_prompt_and_answer_are_those_of_the_run(tmp_path: Path) -> None:
    found = calibrate(VerboseLog(chunks=3, ar=32).write(tmp_path))

    assert value(found, "instances.vlm.text_tokens").value == 96
    assert value(found, "instances.vlm.output_tokens").value == 121
    assert value(found, "models.llm.ar").value == 32
    assert value(found, "models.llm.context_tokens").value == 256


# --- profiles of graphs -----------------------------------------------------------------------------------------------


def test_a_profile_alone_is_another_client(tmp_path: Path) -> None:
    found = calibrate(csv_profile(tmp_path / "p.csv", [900] * 6, "adas"))

    assert value(found, "models.other.graphs.adas.service").value == "900us"
    assert [client["model"] for client in found.tree["clients"]] == ["other"]


def test_a_profile_given_as_vit_is_the_vit(tmp_path: Path) -> None:
    found = calibrate([], vit=csv_profile(tmp_path / "p.csv", [900] * 6), image_tokens=64)

    assert found.tree["models"]["vit"]["role"] == "vit"
    assert found.tree["models"]["vit"]["tokens_per_image"] == 64


def test_a_detailed_profile_is_warned_about_and_never_preferred(tmp_path: Path) -> None:
    slow = csv_profile(tmp_path / "detailed.csv", [20_000] * 50, detailed=True)
    assert said(calibrate([], vit=slow), "slows a graph about 20-fold")

    found = calibrate([], vit=[slow, csv_profile(tmp_path / "basic.csv", [1000] * 6)])
    assert value(found, "models.vit.graphs.vit.service").value == "1ms"
    assert "basic.csv" in value(found, "models.vit.graphs.vit.service").source


def test_a_viewer_never_says_how_many_inferences(tmp_path: Path) -> None:
    leaf = value(calibrate([], vit=viewer_text(tmp_path / "v.txt", 2952, 338.0)), "models.vit.graphs.vit.service")

    assert (leaf.value, leaf.n) == ("2852us", None)
    assert "number of inferences is not stated" in leaf.source


def test_a_rate_that_is_not_one_over_the_latency_is_told(tmp_path: Path) -> None:
    """The numbers of a published log: 214.9 inferences a second beside 2952 us."""
    assert said(calibrate([], vit=viewer_text(tmp_path / "a.txt", 2952, 214.8888)), "IPS is not 1/latency")
    assert not said(calibrate([], vit=viewer_text(tmp_path / "b.txt", 2952, 338.7)), "IPS")


def test_a_rate_off_by_a_thousand_is_a_unit(tmp_path: Path) -> None:
    assert said(calibrate([], vit=viewer_text(tmp_path / "a.txt", 2952, 0.3387)), "a unit looks wrong")


def test_a_cold_first_execution_is_told_and_left_out(tmp_path: Path) -> None:
    found = calibrate([], vit=csv_profile(tmp_path / "p.csv", [2000, 1000, 1000, 1000, 1000, 1000]))

    assert said(found, "a cold start, left out")
    assert value(found, "models.vit.graphs.vit.service").value == "1ms"


def test_a_cold_start_becomes_the_first_call_of_the_device(tmp_path: Path) -> None:
    found = calibrate([], vit=csv_profile(tmp_path / "p.csv", [2000, 1000, 1000, 1000, 1000, 1000]))

    assert value(found, "device.first_call").value == "1ms"
    slow_later = calibrate([], vit=csv_profile(tmp_path / "q.csv", [2000, 1000, 1000, 1000, 1000, 2100]))
    assert "device.first_call" not in dict(slow_later.values)


def test_too_few_runs_are_told(tmp_path: Path) -> None:
    found = calibrate([], vit=csv_profile(tmp_path / "p.csv", [1000, 1010, 1020]))

    assert said(found, "3 executions, too few to say")
    assert value(found, "models.vit.graphs.vit.service").n == 3


def test_a_part_beyond_the_last_is_a_part_all_the_same(tmp_path: Path) -> None:
    prompt = csv_profile(tmp_path / "a.csv", [5000] * 6, "prompt_ar128_cl512_3_of_2")
    token = csv_profile(tmp_path / "b.csv", [3000] * 6, "token_ar1_cl512_1_of_2")
    found = calibrate([prompt, token])

    assert [row["context"] for row in found.tree["models"]["llm"]["decode"]] == ["part0", "part1", "part2"]


def test_there_is_no_part_zero(tmp_path: Path) -> None:
    prompt = csv_profile(tmp_path / "a.csv", [5000] * 6, "prompt_ar128_cl512_0_of_2")
    token = csv_profile(tmp_path / "b.csv", [3000] * 6, "token_ar1_cl512_1_of_2")

    with pytest.raises(HtpsimError, match="counted from 1"):
        calibrate([prompt, token])


def test_a_part_that_nobody_timed_is_assumed_and_told(tmp_path: Path) -> None:
    prompt = csv_profile(tmp_path / "a.csv", [5000] * 6, "prompt_ar128_cl512_2_of_4")
    token = csv_profile(tmp_path / "b.csv", [3000] * 6, "token_ar1_cl512_2_of_4")
    found = calibrate([prompt, token])

    assert value(found, "models.llm.decode.token_ar1_cl512_2_of_4.service").mark == "measured"
    assert value(found, "models.llm.decode.decode3.service").mark == "assumed"
    assert said(found, "no time of part 1, 3, 4 of 4")


# --- published tables -------------------------------------------------------------------------------------------------

PERF = """precisions:
  float:
    components:
      VIT:
        performance_metrics:
"""
ROW = """          {name}:
            qnn:
              inference_time_milliseconds: {ms}
              inferences_per_second: {ips}
"""


def perf(path: Path, rows: dict[str, tuple[float, float]]) -> Path:
    text = PERF + "".join(ROW.format(name=name, ms=ms, ips=ips) for name, (ms, ips) in rows.items())
    path.write_text(text, encoding="utf-8")
    return path


FAMILY = {"A": (10.0, 100.0), "B": (12.0, 83.333), "C": (15.0, 66.667), "D": (16.0, 125.0), "E": (90.0, 11.111)}


def test_a_doubled_rate_is_told_and_the_latency_taken(tmp_path: Path) -> None:
    found = calibrate([], vit=perf(tmp_path / "perf.yaml", FAMILY), device="D")

    assert value(found, "models.vit.graphs.VIT.service").value == "16ms"
    assert said(found, "IPS is 2 x 1/latency")


def test_an_outlier_against_sibling_devices_is_told(tmp_path: Path) -> None:
    path = perf(tmp_path / "perf.yaml", FAMILY)

    assert said(calibrate([], vit=path, device="E"), "5.6 times the slowest of 4 sibling devices")
    assert not said(calibrate([], vit=path, device="C"), "sibling")


def test_a_table_of_several_devices_asks_which(tmp_path: Path) -> None:
    with pytest.raises(HtpsimError, match="give device"):
        calibrate([], vit=perf(tmp_path / "perf.yaml", FAMILY))


def test_an_llm_of_a_table_has_its_chunk_from_its_range() -> None:
    found = calibrate(FIXTURES / "perf_genie.yaml", precision="w4a16")

    assert value(found, "models.llm.ar").value == 128
    assert value(found, "models.llm.context_tokens").value == 4096
    assert said(found, "gaps in it")


def test_every_context_length_of_a_table_has_graphs_of_its_own(tmp_path: Path) -> None:
    """Two published lengths: steps of 50 and 62.5 ms, over two binaries."""
    (tmp_path / "genie_config.json").write_text(
        '{"dialog": {"engine": {"model": {"binary": {"ctx-bins": ["a.bin", "b.bin"]}}}}}', encoding="utf-8"
    )
    found = calibrate([FIXTURES / "perf_genie.yaml", tmp_path / "genie_config.json"], precision="w4a16")
    decode = {
        (row["tier_tokens"], row["context"]): row["service"].value for row in found.tree["models"]["llm"]["decode"]
    }

    assert decode == {
        (1024, "part0"): "25ms", (1024, "part1"): "25ms", (4096, "part0"): "31.25ms", (4096, "part1"): "31.25ms",
    }  # fmt: skip
    found.write(tmp_path / "model.toml")


def test_the_longest_length_that_was_timed_stands_for_the_longer_ones(tmp_path: Path) -> None:
    prompt = csv_profile(tmp_path / "a.csv", [5000] * 6, "prompt_ar128_cl512_1_of_1")
    short = csv_profile(tmp_path / "b.csv", [3000] * 6, "token_ar1_cl512_1_of_1")
    longer = csv_profile(tmp_path / "c.csv", [4000] * 6, "token_ar1_cl1024_1_of_1")
    (tmp_path / "genie_config.json").write_text('{"dialog": {"context": {"size": 4096}}}', encoding="utf-8")
    found = calibrate([prompt, short, longer, tmp_path / "genie_config.json"])

    assert [row["tier_tokens"] for row in found.tree["models"]["llm"]["decode"]] == [512, 4096]
    assert said(found, "decode: no graph for a context longer than 1024 was timed")
    found.write(tmp_path / "model.toml")


# --- configurations and sizes -----------------------------------------------------------------------------------------


def example(**more: Any) -> Calibration:
    files = [EXAMPLES / name for name in ("genie_verbose.log", "genie_config.json", "htp_backend_ext_config.json")]
    given: dict[str, Any] = {"vit": EXAMPLES / "vit_profile.csv", "sizes": EXAMPLES / "sizes.toml", "image_tokens": 64}
    return calibrate(files, **(given | more))


@pytest.mark.slow
def test_a_configuration_a_log_and_a_profile_make_instances_that_run(tmp_path: Path) -> None:
    example(instances=4).write(tmp_path / "four.toml")
    single = htpsim.run(tmp_path / "four.toml", set_values=["run.duration=3s", "run.replications=1"], workers=1)
    summary = single.summaries[0]

    assert len(summary.clients) == 4
    assert {(copy.context, copy.copies) for copy in summary.copies} == {("part0", 1), ("part1", 1), ("vit", 4)}
    reserved = {copy.context: copy.reserved_bytes // copy.copies for copy in summary.copies}
    # The five terms of a public log of such a ViT, rounded as its sizes.toml has them.
    assert reserved["vit"] == (406 + 30 + 8) * 2**20 + (4768 + 12032) * 2**10
    assert {client.kind for client in summary.clients.values()} == {"instance"}


def test_configurations_and_profiles_alone_make_instances_that_run(tmp_path: Path) -> None:
    """No console log: each part of the LLM was profiled by qnn-net-run, as one does without Genie."""
    times = {"prompt_ar32_cl256": 9000, "token_ar1_cl256": 5000}
    parts = [
        csv_profile(tmp_path / f"{name}{part}.csv", [us + 10 * part] * 6, f"{name}_{part}_of_2")
        for name, us in times.items()
        for part in (1, 2)
    ]
    files = [*parts, EXAMPLES / "genie_config.json", EXAMPLES / "htp_backend_ext_config.json"]
    found = calibrate(files, vit=csv_profile(tmp_path / "vit.csv", [20_000] * 6), instances=3, image_tokens=64)
    found.write(tmp_path / "three.toml")
    single = htpsim.run(
        tmp_path / "three.toml", replication=0, workers=1,
        set_values=["run.duration=3s", "instances.text_tokens=32", "instances.output_tokens=20"],
    )  # fmt: skip

    assert [client.kind for client in single.summaries[0].clients.values()] == ["instance"] * 3
    # 64 tokens of the image and 32 of text are three chunks, each 18.03 ms; waiting comes on top.
    prefill = single.summaries[0].overall.prefill
    assert prefill.mean.value is not None
    assert prefill.mean.value >= 3 * (9010 + 9020) * 1000


def test_the_image_is_part_of_the_prompt_that_a_log_states() -> None:
    found = example()

    assert value(found, "instances.vlm.text_tokens").value == 80 - 64
    assert "less 64 of the image" in value(found, "instances.vlm.text_tokens").source


def test_loads_of_known_size_give_a_bandwidth() -> None:
    """400 MB in 400.5 ms and 600 MB in 600 ms, by the stamps of the log."""
    assert value(example(), "device.load_bandwidth").value == "999500249B/s"


def test_a_binary_that_lies_beside_its_configuration_is_measured(tmp_path: Path) -> None:
    for name in ("genie_config.json", "genie_verbose.log"):
        (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    (tmp_path / "toy_part_2_of_2.bin").write_bytes(b"\0" * 4096)
    found = calibrate([tmp_path / "genie_verbose.log", tmp_path / "genie_config.json"])

    assert value(found, "models.llm.contexts.part1.weights").value == "4KiB"
    assert value(found, "models.llm.contexts.part1.weights").mark == "derived"
    assert said(found, "no file states the bytes of its context")


def test_sizes_by_hand_and_by_table_are_the_same(tmp_path: Path) -> None:
    table = tmp_path / "sizes.toml"
    table.write_text('[vit]\nweights = "406MiB"\n[llm]\nweights = "800MB"\nkv = "1MiB"\n', encoding="utf-8")
    log = VerboseLog().write(tmp_path)
    profile = csv_profile(tmp_path / "p.csv", [900] * 6)
    one = calibrate(log, vit=profile, sizes=table)
    two = calibrate(log, vit=profile, nbytes=["vit.weights=406MiB", "llm.weights=800MB", "llm.kv=1MiB"])

    keys = ("models.vit.contexts.vit.weights", "models.llm.contexts.part0.weights", "models.llm.kv")
    assert [value(one, key).value for key in keys] == [value(two, key).value for key in keys]
    assert value(one, "models.llm.contexts.part0.weights").value == "400MB"


def test_the_facts_of_a_binary_are_those_of_the_context_that_holds_its_graphs(tmp_path: Path) -> None:
    profiles = [csv_profile(tmp_path / f"{name}.csv", [900] * 6, f"vit_{name}") for name in ("prefill", "decode")]
    found = calibrate([], vit=[FIXTURES / "ctxinfo_two_graphs.json", *profiles], image_tokens=64)
    terms = {key.rpartition(".")[2]: leaf.value for key, leaf in found.values if ".contexts." in key}

    # Shared weights once and each graph's own; run lists and I/O of both; the larger spill-fill and VTCM.
    assert terms == {
        "weights": "2500256B", "run_list": "60kB", "io": "100kB", "spill_fill": "40KiB", "vtcm_backup": "8MiB",
        "file": "3MB",
    }  # fmt: skip
    assert {row["context"] for row in found.tree["models"]["vit"]["graphs"]} == {"vit_prefill"}
    assert value(found, "device.arch").value == "v81"
    found.check()


def test_bytes_over_dram_are_the_compilers_count(tmp_path: Path) -> None:
    log = tmp_path / "generator.log"
    summary = (
        "====== DDR bandwidth summary ======\nspill_bytes=0\nfill_bytes=0\nwrite_total_bytes={}\nread_total_bytes={}\n"
    )
    log.write_text("Starting stage: A\n" + summary.format(1000, 9000), encoding="utf-8")
    profile = csv_profile(tmp_path / "p.csv", [900] * 6)
    found = calibrate([], vit=[profile, log], nbytes=["vit.weights=1MB"], image_tokens=64)

    assert value(found, "models.vit.graphs.vit.dram").value == "10kB"
    found.check()
    more = csv_profile(tmp_path / "q.csv", [900] * 6, "other")
    assert said(calibrate([], vit=[profile, more, log]), "left out")


def test_memory_terms_of_a_service_log_are_the_vits(tmp_path: Path) -> None:
    found = calibrate(FIXTURES / "console_service.log", vit=csv_profile(tmp_path / "p.csv", [900] * 6, "veg"))
    terms = {key.rpartition(".")[2]: leaf.value for key, leaf in found.values if ".contexts.veg." in key}

    assert terms == {"weights": "1kB", "run_list": "30B", "io": "200B", "spill_fill": "4B", "vtcm_backup": "4KiB"}


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_chips_are_not_mixed(tmp_path: Path) -> None:
    log = VerboseLog(soc=60).write(tmp_path)

    with pytest.raises(HtpsimError, match=r"figures of SoC 60 .* and of SoC 88"):
        calibrate([log, EXAMPLES / "htp_backend_ext_config.json"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"nbytes": ["vit.weight=1MB"]}, "did you mean 'weights'"),
        ({"nbytes": ["vitt.weights=1MB"]}, "did you mean 'vit'"),
        ({"nbytes": ["vit.weights=1"]}, "expected a size with a unit"),
        ({"nbytes": ["vit.weights=-1MB"]}, "expected a size from 0"),
        ({"nbytes": ["weights"]}, "expected ROLE.TERM=SIZE"),
        ({"method": "samples"}, "did you mean 'sample'"),
        ({"statistic": "mean"}, "expected one of average, median"),
        ({"instances": 0}, "expected 1 to 1000"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(HtpsimError, match=re.escape(words)):
        calibrate([], vit=csv_profile(tmp_path / "p.csv", [900] * 6), **arguments)


def test_files_without_any_time_are_refused_with_what_was_wrong(tmp_path: Path) -> None:
    with pytest.raises(HtpsimError, match="no time of any graph"):
        calibrate(EXAMPLES / "genie_config.json")
    with pytest.raises(HtpsimError, match=r"expected one with times of graphs or a configuration"):
        calibrate(_trace(tmp_path))


def _trace(folder: Path) -> Path:
    path = folder / "t.jsonl"
    path.write_text('{"htpsim_trace": 1}\n{"ev": "call", "t": 5, "id": 0, "thread": "a"}\n', encoding="utf-8")
    return path


def test_what_makes_no_scenario_is_not_written(tmp_path: Path) -> None:
    """An answer that is longer than the context would be refused at every request."""
    target = tmp_path / "model.toml"
    target.write_text("precious", encoding="utf-8")
    log = VerboseLog(tiers=((32, 60, 70),), chunks=1)
    found = calibrate(log.write(tmp_path))

    with pytest.raises(HtpsimError, match="nothing was written"):
        found.write(target)
    assert target.read_text(encoding="utf-8") == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.toml", "verbose.log"]


def test_a_written_file_can_be_a_preset_of_another(tmp_path: Path) -> None:
    calibrate(VerboseLog().write(tmp_path)).write(tmp_path / "model.toml")
    (tmp_path / "mine.toml").write_text(
        '[device]\npreset = "model.toml"\n[models.llm]\npreset = "model.toml"\n'
        '[[instances]]\nllm = "llm"\ntext_tokens = 10\noutput_tokens = 10\n',
        encoding="utf-8",
    )
    loaded = htpsim.load(tmp_path / "mine.toml")
    llm = loaded.base.instances[0].llm

    assert loaded.base.device.arch == "v81"
    assert llm is not None
    assert [graph.tier_tokens for graph in llm.decode] == [128, 128, 256, 256]
    assert [graph.context for graph in llm.decode] == ["part0", "part1"] * 2
    assert any("verbose.log" in source.source for source in loaded.sources)
    assert llm.decode[0].service.expected == pytest.approx(75 * TENTH, rel=0.1)
