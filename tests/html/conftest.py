"""One small comparison for all tests of the report, live and as a run directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from htpsim.experiments.compare import Comparison, compare
from htpsim.report.directory import write_comparison
from htpsim.report.html import from_comparison, from_directory, write_report
from htpsim.report.html.material import Material

TINY = Path(__file__).with_name("tiny.toml")
COMMAND = ["/somewhere/bin/htpsim", "compare", "my tiny.toml", "--out", "out"]


@pytest.fixture(scope="session")
def comparison() -> Comparison:
    return compare(TINY, workers=1)


@pytest.fixture(scope="session")
def run_directory(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("html") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "htpsim.report.directory.save_compare_plots", lambda *_: []
        )  # they take seconds, and none is read
        write_comparison(comparison, folder, COMMAND)
    return folder


@pytest.fixture(scope="session")
def material(run_directory: Path) -> Material:
    return from_directory(run_directory)


@pytest.fixture(scope="session")
def live(comparison: Comparison) -> Material:
    return from_comparison(comparison, COMMAND)


@pytest.fixture(scope="session")
def pages(material: Material, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the report in each language."""
    folder = tmp_path_factory.mktemp("pages")
    for language in ("en", "zh"):
        write_report(material, folder / f"{language}.html", language)
    return {language: folder / f"{language}.html" for language in ("en", "zh")}
