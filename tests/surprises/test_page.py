"""The page on surprises: every figure in it is what its command gives, and nothing is left out."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from htpsim.cli import cli
from htpsim.scenario import load
from tests.scenarios.support import SCENARIOS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "surprises.md"
NAMES = sorted(path.stem for path in SCENARIOS.glob("surprise_*.toml"))
SCALES = {"[%]": 100, "[ms]": 1e-6}
"""What a column's heading ends with -> by what its field is multiplied."""


@dataclass(slots=True)
class Section:
    """One section of the page: its command, its table and the fields of the table's columns."""

    command: list[str]
    headings: list[str] = field(default_factory=list)
    rows: dict[str, list[str]] = field(default_factory=dict)
    fields: list[str] = field(default_factory=list)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def sections(text: str) -> list[Section]:
    """Return the sections of the page that have a command."""
    found = []
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        (command,) = re.findall(r"^```sh\nhtpsim (.+)\n```$", part, flags=re.MULTILINE)
        heading, rule, *rows = [line for line in part.splitlines() if line.startswith("|")]
        assert set(rule) <= set("|-: ")
        (named,) = re.findall(r"^Fields: (.+)\.$", part, flags=re.MULTILINE)
        table = {cells(row)[0].strip("`"): cells(row)[1:] for row in rows}
        found.append(Section(command.split(), cells(heading)[1:], table, re.findall(r"`([^`]+)`", named)))
    return found


def given(summary: Any, path: str) -> float:
    """Return the value of a field of a summary in JSON."""
    for key in path.split("."):
        summary = summary[key]
    value = summary["value"]
    assert value is not None, f"{path}: {summary['why']}"
    return float(value)


SECTIONS = sections(PAGE.read_text(encoding="utf-8"))


def test_every_scenario_has_a_section_in_which_every_variant_has_a_row() -> None:
    assert sorted(section.command[1] for section in SECTIONS) == NAMES
    assert len(NAMES) == 5
    for section in SECTIONS:
        assert list(section.rows) == list(load(SCENARIOS / f"{section.command[1]}.toml").variants)


def mismatches(section: Section, variants: Any) -> list[str]:
    """Return the figures of a section that are not those of the runs, each by variant and heading."""
    wrong = []
    for variant, printed in section.rows.items():
        (summary,) = variants[variant]
        for heading, path, figure in zip(section.headings, section.fields, printed, strict=True):
            (scale,) = [scale for unit, scale in SCALES.items() if heading.endswith(unit)]
            decimals = len(figure.partition(".")[2])
            measured = f"{given(summary, path) * scale:.{decimals}f}"
            if measured != figure:
                wrong.append(f"{variant}, {heading}: the page says {figure}, the command {measured}")
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.command[1])
def test_the_figures_are_what_the_command_gives(section: Section) -> None:
    assert section.command[0] == "compare"
    assert len(section.headings) == len(section.fields)

    ran = CliRunner().invoke(cli, [*section.command, "--json", "--workers", "1"])

    assert ran.exit_code == 0, ran.output
    (variants,) = json.loads(ran.output)["cases"].values()
    assert mismatches(section, variants) == []


def test_a_wrong_figure_would_be_found() -> None:
    def run(share: float) -> Any:
        return {"a": [{"share": {"value": share, "why": ""}}]}

    section = Section(["compare", "x"], ["share [%]"], {"a": ["25.0"]}, ["share"])

    assert mismatches(section, run(0.25)) == []
    assert mismatches(section, run(0.251)) == ["a, share [%]: the page says 25.0, the command 25.1"]
