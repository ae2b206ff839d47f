"""htpsim doctor: what is here, in 80 columns and as JSON, whatever is missing."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest

import htpsim.cli.doctor as doctor_module
from htpsim.cli.doctor import ADDS, Extra, requirements, version_of
from htpsim.scenario import shipped
from tests.cli.support import ROOT, call


def test_the_page_fits_and_names_every_part(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "doctor")

    assert done.code == 0
    assert done.out.startswith("htpsim ")
    assert all(part in done.out for part in ("compiled engine", "scenarios", "browser", "simpy", "notebook"))
    assert max(map(len, done.out.splitlines())) <= 80


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(call(capsys, "doctor", "--json").out)

    assert found["packages"]["simpy"] == version_of("simpy")
    assert found["parts"]["compiled engine"]["works"] is True
    assert f"{len(shipped())} in " in found["parts"]["scenarios"]["note"]
    assert {extra["name"]: extra["installed"] for extra in found["extras"]}["notebook"] is not None


def test_every_extra_of_the_project_says_what_it_adds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert set(ADDS) == set(project["optional-dependencies"])


def test_requirements_are_those_of_the_installation() -> None:
    asked = set(requirements())

    assert {("click", ""), ("numpy", ""), ("pyarrow", "parquet"), ("hypothesis", "test")} <= asked


def test_without_the_compiled_engine_it_says_so_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "htpsim.experiments.engine_diff", None)
    done = call(capsys, "doctor", "--json")

    assert done.code == 0
    part = json.loads(done.out)["parts"]["compiled engine"]
    assert part["works"] is False
    assert "the reference engine does it all" in part["note"]


def test_an_extra_that_is_not_here_says_what_it_lacks_and_how_to_add_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed = doctor_module.version_of
    monkeypatch.setattr(doctor_module, "version_of", lambda name: None if name == "pyarrow" else installed(name))
    done = call(capsys, "doctor")

    assert "lacks pyarrow" in done.out
    assert Extra("parquet", "", ("pyarrow",)).command == 'pip install "htpsim[parquet]"'


def test_without_a_browser_or_scenarios_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    none: dict[str, Path] = {}
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("htpsim.scenario.shipped", lambda: none)
    parts = json.loads(call(capsys, "doctor", "--json").out)["parts"]

    assert (parts["browser"]["works"], parts["scenarios"]["works"]) == (False, False)
    assert "any browser shows a report" in parts["browser"]["note"]
