"""htpsim fit: tables that fit the terminal, JSON with the packing, and words for what is wrong."""

from __future__ import annotations

import json

import pytest

from tests.cli.support import PAIR, call


def test_the_page_names_the_limit_and_the_packing(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "fit", PAIR, "--set", "device.dram_budget=300MB", "--most", "8")
    assert done.code == 0
    assert "How many instances fit" in done.out
    assert "device DRAM" in done.out
    assert "Packing of" in done.out
    assert "Not asked" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_the_json_has_the_same_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "fit", PAIR, "--set", "device.dram_budget=300MB", "--json", "--variant", "legacy")
    said = json.loads(done.out)
    assert list(said) == ["legacy"]
    assert said["legacy"]["limit"] == "dram_budget_bytes"
    assert (
        said["legacy"]["dram_bytes"]
        <= 300_000_000
        < said["legacy"]["dram_bytes"] + said["legacy"]["one_more_needs"] * 9
    )
    assert said["legacy"]["packing"][0]["contexts"]


def test_a_wrong_variant_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "fit", PAIR, "--variant", "legcy")
    assert done.code == 2
    assert "did you mean 'legacy'" in done.err
