"""The variants of vit_migration as files of their own, and the comparison through the Python API."""

from __future__ import annotations

import os
import runpy
from dataclasses import replace

import pytest

from htpsim.experiments.compare import compare
from htpsim.scenario import load
from tests.scenarios.support import ONE_BY_ONE, SCENARIOS

MIGRATION = SCENARIOS / "vit_migration.toml"


def test_every_variant_has_a_file_of_its_own() -> None:
    assert sorted(ONE_BY_ONE.values()) == sorted(load(MIGRATION).variants)


@pytest.mark.parametrize(("name", "variant"), ONE_BY_ONE.items())
@pytest.mark.parametrize("case", [None, "equal", "weights_4211"])
def test_a_file_of_one_variant_is_that_variant(name: str, variant: str, case: str | None) -> None:
    alone = load(SCENARIOS / f"{name}.toml").resolve(case=case).scenario
    in_company = load(MIGRATION).resolve(variant, case).scenario

    assert replace(alone, name="", title="") == replace(in_company, name="", title="")


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_the_variants_a_file_inherits_mean_what_they_mean_in_vit_migration(name: str) -> None:
    migration, file = load(MIGRATION), load(SCENARIOS / f"{name}.toml")

    for variant in migration.variants:
        inherited, own = file.resolve(variant).scenario, migration.resolve(variant).scenario
        assert replace(inherited, name="", title="") == replace(own, name="", title="")


def test_what_the_variants_differ_in_is_what_they_say() -> None:
    file = load(MIGRATION)
    found = {}
    for variant in file.variants:
        scenario = file.resolve(variant).scenario
        instance = scenario.instances[0]
        assert instance.vit is not None
        found[variant] = (instance.vit_path, scenario.registry.vit, instance.llm_priority, instance.vit.split)

    assert found == {
        "legacy": ("qnn", False, "NORMAL", 1),
        "legacy_one_copy": ("qnn", True, "NORMAL", 1),
        "genie": ("genie", False, "NORMAL", 1),
        "genie_registry": ("genie", True, "NORMAL", 1),
        "legacy_llm_high": ("qnn", False, "HIGH", 1),
        "genie_vit_split": ("genie", False, "NORMAL", 4),
    }


@pytest.mark.slow
def test_the_script_says_what_the_comparison_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ["run.duration=8s", "run.replications=1"]
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # no second process for so little
    monkeypatch.setattr("sys.argv", ["compare_vit.py", *settings])

    runpy.run_path(str(SCENARIOS / "compare_vit.py"), run_name="__main__")

    header, *rows = capsys.readouterr().out.splitlines()
    assert "tokens_per_s" in header
    comparison = compare(MIGRATION, set_values=settings, cases=["equal"], grid=False, keep_logs=False)
    assert len(rows) == len(comparison.variants)
    for row, (name, title) in zip(rows, comparison.variants.items(), strict=True):
        (found,) = comparison.summaries["equal"][name]
        assert row.startswith(title)
        assert str(found.metric("overall.itl.p99")) in row
        assert f"{found.memory['device'].steady_bytes / 2**30:.2f} GiB" in row


def test_the_script_is_short_enough_to_read() -> None:
    assert len((SCENARIOS / "compare_vit.py").read_text(encoding="utf-8").splitlines()) <= 24
