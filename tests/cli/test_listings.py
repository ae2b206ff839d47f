"""The commands that list, read and check: scenarios, inspect, policies, validate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest
from rich.cells import cell_len

from htpsim.experiments.theory import OracleResult
from htpsim.sched import POLICIES
from tests.cli.support import FIXTURES, call


def test_every_shipped_scenario_is_listed_with_its_question_and_variants(capsys: pytest.CaptureFixture[str]) -> None:
    page = call(capsys, "scenarios")
    told = json.loads(call(capsys, "scenarios", "--json").out)

    assert page.code == 0
    assert told["vit_migration"]["variants"]["genie_registry"] == "Genie ViT + registry"
    assert [name for name, one in told.items() if "fault" in one] == []
    assert [line for line in page.out.splitlines() if cell_len(line) > 80] == []
    text = " ".join(page.out.split())
    for name, one in told.items():
        assert name in text
        assert one["question"] in text
        assert "/" in name or not one["variants"] or f"variants: {', '.join(one['variants'])}" in text
    headings = [line.split(":")[0] for line in page.out.splitlines() if line.startswith(("Shipped", "Field", "Other"))]
    assert headings == ["Shipped scenarios", "Field reports", "Other workloads"]


def test_a_shipped_scenario_that_cannot_be_read_does_not_hide_the_others(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("[[[")
    monkeypatch.setattr("htpsim.scenario.shipped", lambda: {"broken": broken, "pair": FIXTURES / "pair.toml"})

    page = call(capsys, "scenarios")

    assert page.code == 0
    assert "Does the ViT of one hold up the other?" in page.out
    assert "broken cannot be read" in page.out


def test_inspect_prints_values_with_their_lines_and_notes(capsys: pytest.CaptureFixture[str]) -> None:
    page = call(capsys, "inspect", str(FIXTURES / "genie_config.json"))
    told = json.loads(call(capsys, "inspect", str(FIXTURES / "genie_config.json"), "--json").out)

    assert page.code == 0
    assert "2,048 tokens" in page.out
    assert "not stated" in page.out
    assert told["format"] == "genie-config"


def test_the_schema_is_written_and_printed_alike(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    written = call(capsys, "schema", "-o", str(tmp_path / "scenario.schema.json"))
    printed = call(capsys, "schema")

    assert written.code == printed.code == 0
    assert written.out == ""
    assert (tmp_path / "scenario.schema.json").read_text(encoding="utf-8") == printed.out
    assert json.loads(printed.out)["$schema"].startswith("https://json-schema.org/")


def test_every_policy_is_listed_with_its_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    page = call(capsys, "policies")
    told = {one["name"]: one for one in json.loads(call(capsys, "policies", "--json").out)}

    assert page.code == 0
    assert list(told) == sorted(POLICIES)
    for name, policy in POLICIES.items():
        assert f"\n{name} " in page.out
        assert {key: one["default"] for key, one in told[name]["params"].items()} == {
            key: default for key, (default, _) in policy.params.items()
        }
    assert "- period = 100ms: length of a period" in page.out


def result(verdict: Literal["ok", "miss"]) -> OracleResult:
    return OracleResult(
        name=f"a law, {verdict}", unit="service", theory=0.5, simulated=0.75, half_width=0.125, n=10, basis="exact",
        verdict=verdict,
    )  # fmt: skip


@pytest.mark.parametrize(("missed", "code"), [(False, 0), (True, 1)], ids=["agrees", "misses"])
def test_validate_fails_exactly_when_theory_is_missed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, missed: bool, code: int
) -> None:
    asked: list[bool] = []

    def validate(quick: bool, progress: object) -> list[OracleResult]:
        asked.append(quick)
        return [result("ok"), result("miss")] if missed else [result("ok")]

    monkeypatch.setattr("htpsim.experiments.theory.validate", validate)

    page = call(capsys, "validate", "--full")
    told = call(capsys, "validate", "--json")

    assert page.code == told.code == code
    assert asked == [False, True]
    assert ("MISS" in page.out) == missed
    assert ("1 of 2 missed" if missed else "all 1 agree with theory") in page.out
    assert json.loads(told.out)["missed"] == (["a law, miss"] if missed else [])
    assert json.loads(told.out)["results"][0]["simulated"] == 0.75
