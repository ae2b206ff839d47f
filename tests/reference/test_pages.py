"""The pages of the reference are what the code says, and what the code says is what it does."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from htpsim.cli.app import cli
from htpsim.cli.commandspage import page as commands_page
from htpsim.cli.reference import PAGES, made, write
from htpsim.cli.shapes import JSON, WRITES
from htpsim.errors import HtpsimError
from htpsim.experiments.fit import FIT_COLUMNS
from htpsim.experiments.fit import fit as fit_instances
from htpsim.experiments.sensitivity import COLUMNS as EFFECT_COLUMNS
from htpsim.experiments.sensitivity import sensitivity
from htpsim.experiments.single import Single, run_one
from htpsim.experiments.sweep import sweep
from htpsim.experiments.tidy import metric_rows
from htpsim.report import directory
from htpsim.report.columnspage import TABLES, columns_of, summary_rows
from htpsim.report.directory import FILES, write_single
from htpsim.results.metric import unit_of
from htpsim.scenario.checks import problems
from htpsim.scenario.checks_models import models_of
from htpsim.scenario.keys import keys_of
from htpsim.scenario.keyspage import PLACES, SECTIONS
from htpsim.scenario.keyspage import page as keys_page
from htpsim.scenario.schema import json_schema
from htpsim.sched.policies import POLICIES
from htpsim.spec import Device, Instance, Model, OtherClient, Scenario
from htpsim.spec.fielddocs import field_docs
from htpsim.spec.ranges import RANGES, WORDS
from tests.cli.support import FIXTURES, ROOT
from tests.scenario.support import llm, scenario, vit

DOCS = ROOT / "docs"
PAIR = FIXTURES / "pair.toml"
AGAIN = "is not what the code says; write it again with: python -m htpsim.cli.reference"


def cells(text: str) -> Iterator[list[str]]:
    """Yield the cells of every row of every table of a page, heads left out."""
    head = True
    for line in text.splitlines():
        if not line.startswith("|"):
            head = True
        elif not head and "---" not in line:
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        else:
            head = False


@pytest.fixture(scope="module")
def pages() -> dict[Path, str]:
    return made(DOCS)


@pytest.mark.parametrize("name", [*PAGES, "model.md"])
def test_a_page_is_what_the_code_says(name: str, pages: dict[Path, str]) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == pages[DOCS / name], f"docs/{name} {AGAIN}"


def test_one_command_writes_them_again(tmp_path: Path) -> None:
    (tmp_path / "model.md").write_text((DOCS / "model.md").read_text(encoding="utf-8") + "| planted |\n", "utf-8")

    assert sorted(path.name for path in write(tmp_path)) == sorted(["model.md", *(Path(name).name for name in PAGES)])
    assert write(tmp_path) == []
    assert (tmp_path / "model.md").read_bytes() == (DOCS / "model.md").read_bytes()


def test_a_folder_without_the_page_on_the_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HtpsimError, match="expected the folder of the docs"):
        made(tmp_path)


def test_every_row_says_what_it_means(pages: dict[Path, str]) -> None:
    silent = []
    for path, text in pages.items():
        if path.parent.name == "reference":
            meaning = 5 if path.name == "scenario.md" else -1
            silent += [row for row in cells(text) if len(row) > 1 and not row[min(meaning, len(row) - 1)]]

    assert silent == []


def test_every_key_of_the_schema_is_on_the_page() -> None:
    text = keys_page()
    sections = {title: body for title, _, body in (part.partition("\n") for part in text.split("\n## ")[1:])}
    defs = json_schema()["$defs"]
    for section, spec in SECTIONS:
        told = {row[0].strip("`") for row in cells(sections[f"[{section}]"])}
        assert told == set(defs[spec.__name__]["properties"]), section
    top = {row[0].strip("`") for row in cells(sections["The top of a file"])}
    tables = {section.split(".")[0] for section, _ in SECTIONS} - {"arrivals"}
    assert top == set(json_schema()["properties"]) - tables
    assert set(PLACES) == {section for section, _ in SECTIONS}


def with_value(spec: type, field: str, value: Any) -> Scenario:
    """Return a sound scenario in which one parameter has a value."""
    device = Device(cores=2, dram_bandwidth=40_000_000_000, throttle_after_ns=10**12)
    instance = Instance(name="vlm0", vit=vit(), llm=llm())
    client = OtherClient(name="c", model=replace(vit(), name="other", role="other"))
    whole = scenario(device=device, instances=(instance,), clients=(client,))
    if spec is Instance:
        return replace(whole, instances=(replace(instance, **{field: value}),))
    if spec is OtherClient:
        return replace(whole, clients=(replace(client, **{field: value}),))
    if spec is Model:
        changed = llm() if field in ("ar", "context_tokens") else vit()
        role = changed.role
        return replace(whole, instances=(replace(instance, **{role: replace(changed, **{field: value})}),))
    section = spec.__name__.lower()
    return replace(whole, **{section: replace(getattr(whole, section), **{field: value})})


def complaints(name: str, value: Any) -> list[str]:
    """Return what is said about one parameter that has a value."""
    spec = {spec.__name__: spec for _, spec in SECTIONS}[name.partition(".")[0]]
    field = name.partition(".")[2]
    (key,) = (key.key for key in keys_of(spec).values() if key.field == field)
    return [text for text in problems(with_value(spec, field, value)) if text.split(": ")[0].split(".")[-1] == key]


@pytest.mark.parametrize("name", RANGES)
def test_a_range_is_where_the_checks_draw_it(name: str) -> None:
    least, most, above = RANGES[name]
    if least is None:
        assert complaints(name, -3) == []
        return
    assert complaints(name, least if above else least - 1)
    assert complaints(name, least + 1 if most != 1 else 0.5) == []
    if most is not None:
        assert complaints(name, most) == []
        assert complaints(name, most + 1)


@pytest.mark.parametrize("name", WORDS)
def test_words_are_those_that_the_checks_take(name: str) -> None:
    assert [word for word in WORDS[name] if any("expected one of" in text for text in complaints(name, word))] == []
    assert "expected one of" in complaints(name, "no such word")[0]


def test_what_has_no_range_of_its_own_is_refused_below_zero() -> None:
    kept = []
    for _, spec in SECTIONS:
        if spec.__name__ in ("Device", "Guard", "Instance", "OtherClient", "Run"):
            for key in keys_of(spec).values():
                name = f"{spec.__name__}.{key.field}"
                if key.type is int and key.shape.value == "scalar" and name not in RANGES:
                    kept += [name] if not complaints(name, -1) else []

    assert kept == []


@pytest.fixture(scope="module")
def single() -> Single:
    return run_one(PAIR, variant="guarded", case="weighted", set_values=["run.duration=2s", "run.replications=1"])


def columns(name: str, in_file: bool = False) -> list[str]:
    rows = columns_of(name, TABLES[name][2])
    return [row[0].strip("`") for row in rows if not (in_file and "in the frame only" in row[2])]


@pytest.mark.parametrize("name", TABLES)
def test_frames_have_the_columns_of_the_page(name: str, single: Single) -> None:
    assert getattr(single.result, name).columns.tolist() == columns(name)


def test_a_run_directory_has_the_files_and_columns_of_the_page(
    single: Single, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "save_run_plots", lambda result, folder: None)
    write_single(single, tmp_path / "run", ["htpsim"])

    assert {path.name for path in (tmp_path / "run").iterdir()} == set(FILES) - {"*.png"}
    for name, (_, file, _) in TABLES.items():
        if file:
            with (tmp_path / "run" / file).open(newline="", encoding="utf-8") as lines:
                assert next(csv.reader(lines)) == columns(name, in_file=True)
    log = json.loads((tmp_path / "run" / "log.json").read_text(encoding="utf-8"))
    told = (DOCS / "reference" / "columns.md").read_text(encoding="utf-8")
    assert [key for key in log if f"`{key}`" not in told and key not in told] == []


def open_names(path: str) -> str:
    """Write the path of a figure as the page has it: names left open, a distribution as one."""
    path = re.sub(r"\.(mean|p50|p95|p99|max)$", "", path)
    path = re.sub(r"\.parts\.[a-z]+", ".parts.STAGE", path)
    path = re.sub(r"^roles\.\w+", "roles.ROLE", re.sub(r"^cores\.core \d+", "cores.core N", path))
    path = re.sub(r"^memory\.\w+", "memory.LEDGER", path)
    path = re.sub(r"\.places\..*\.(\w+)$", r".places.NAME.\1", path)
    path = re.sub(r"parts_ns\.\w+$", "parts_ns", path)
    return re.sub(r"^clients\.\w+\.", "clients.NAME.", path)


def test_every_figure_of_a_summary_is_on_the_page_with_its_unit(single: Single) -> None:
    told = {row[0].strip("`"): row[2] for row in summary_rows()}
    told |= {path.replace("overall.", "clients.NAME."): unit for path, unit in told.items()}
    found = {open_names(path): unit for path, _, unit, _, _ in metric_rows(single.result.summary())}

    assert {path for path in found if path not in told} == set()
    assert {path: unit for path, unit in found.items() if (told[path] or "count") != unit} == {}
    assert {path.split(".")[0].split("[")[0] for path in told} - {"clients"} == {
        f.name for f in fields(single.result.summary())
    } - {"clients"}


def test_the_unit_of_a_figure_by_its_name_is_the_unit_that_it_has(single: Single) -> None:
    figures = [row for row in metric_rows(single.result.summary()) if row[3] is not None]

    assert {path: unit for path, _, unit, _, _ in figures if unit_of(path) != unit} == {}


def test_other_tables_have_the_columns_of_the_page() -> None:
    short = ["run.duration=1s", "run.replications=1"]
    swept = sweep(PAIR, ["guard.slots=1,2"], set_values=short, variant="guarded", case="equal", workers=1)
    moved = sensitivity(PAIR, only=["guard.slots"], set_values=short, workers=1)

    assert fit_instances(PAIR, most=2).to_dataframe().columns.tolist() == list(FIT_COLUMNS)
    assert moved.to_dataframe().columns.tolist() == list(EFFECT_COLUMNS)
    assert swept.to_dataframe().columns.tolist() == ["point", "replication", "guard.slots", *swept.metrics, "why"]


def test_every_parameter_of_a_policy_has_a_range() -> None:
    assert [name for name, one in POLICIES.items() if set(one.params) - set(getattr(one, "limits", {}))] == []


def test_every_command_prints_json_or_says_what_it_leaves() -> None:
    with_json = {name for name, one in cli.commands.items() if "--json" in {o for p in one.params for o in p.opts}}

    assert with_json == set(JSON)
    assert set(cli.commands) == set(JSON) | set(WRITES)
    assert not set(JSON) & set(WRITES)


def test_every_option_is_on_the_page_of_commands() -> None:
    sections = {part.partition("\n")[0]: part for part in commands_page().split("\n## ")[1:]}
    for name, one in cli.commands.items():
        for param in one.params:
            for option in (*param.opts, *param.secondary_opts):
                if option.startswith("--") and option != "--quiet":
                    assert f"`{option}`" in sections[name], (name, option)


def test_text_below_a_field_is_found_and_only_there() -> None:
    docs = field_docs(Instance)

    assert docs["vit"].startswith("Its ViT")
    assert "weight" not in docs
    assert models_of(scenario())
