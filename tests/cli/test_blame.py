"""htpsim blame: a table that fits, JSON that sums, and complaints in a line."""

from __future__ import annotations

import json

import pytest

from tests.cli.support import PAIR, call


def test_the_page_says_what_the_slowest_tokens_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "blame", PAIR, "--variant", "legacy", "--for", "2s", "--slowest", "20%")
    assert done.code == 0
    assert "What made the slowest 20 % slow" in done.out
    assert "others vit" in done.out
    assert "Who delayed whom" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_one_token_is_taken_apart_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "blame", PAIR, "--variant", "legacy", "--for", "2s", "--json")
    first = json.loads(done.out)["delays"][0]
    name = f"{first['client']}:{first['request']}:{first['token']}"
    alone = call(capsys, "blame", PAIR, "--variant", "legacy", "--for", "2s", "--token", name, "--json")
    assert json.loads(alone.out)["delays"] == [first]
    assert sum(part["delay_ns"] for part in first["parts"]) == first["total_ns"]
    page = call(capsys, "blame", PAIR, "--variant", "legacy", "--for", "2s", "--token", name)
    assert f"What {name} took its time for: a gap between tokens of" in page.out


def test_a_first_token_counts_from_the_arrival(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "blame", PAIR, "--for", "2s", "--metric", "ttft", "--slowest", "50%", "--json")
    said = json.loads(done.out)
    assert said["measure"] == "ttft"
    assert all(delay["token"] == 0 for delay in said["delays"])
    assert {part["stage"] for part in said["together"]} >= {"vit", "prefill"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--slowest", "0"], "expected a percentage above 0 %"),
        (["--token", "vlm0:1"], "expected CLIENT:REQUEST:TOKEN"),
        (["--token", "vlm0:0:1", "--client", "vlm0"], "expected one of them"),
        (["--token", "vlm0:0:9999"], "expected one that the run yielded"),
        (["--client", "vlm"], "expected one of vlm0, vlm1"),
        (["--metric", "itk"], "itk"),
    ],
)
def test_a_wrong_word_is_told_in_a_line(capsys: pytest.CaptureFixture[str], arguments: list[str], told: str) -> None:
    done = call(capsys, "blame", PAIR, "--for", "1s", *arguments)
    assert done.code == 2
    assert told in done.err
    assert not done.out
