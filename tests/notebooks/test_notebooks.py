"""The notebooks run from the top, and what is stored in them is what they say."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install 'htpsim[test]'")
pytest.importorskip("nbclient", reason="nbclient is not installed: pip install 'htpsim[test]'")
pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install 'htpsim[test]'")

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
AGAIN = "execute them again: python notebooks/execute.py"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("execute_notebooks", FOLDER / "execute.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXECUTE: Any = script()


def stored(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def test_there_are_eight() -> None:
    assert [path.name[:2] for path in NOTEBOOKS] == [f"{number:02}" for number in range(1, 9)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_stored_whole_and_without_noise(path: Path) -> None:
    notebook = stored(path)
    text = path.read_text(encoding="utf-8")

    nbformat.validate(notebook)
    assert EXECUTE.faults(notebook) == []
    assert notebook.metadata == EXECUTE.METADATA
    assert all(cell.metadata == {} for cell in notebook.cells)
    assert [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"] == list(
        range(1, 1 + sum(cell.cell_type == "code" for cell in notebook.cells))
    )
    assert all(word not in text for word in (str(Path.home()) + "/", str(FOLDER.parent), "0x7f", "Traceback"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_begins_with_a_title_and_leads_to_notebooks_that_exist(path: Path) -> None:
    cells = [cell.source for cell in stored(path).cells if cell.cell_type == "markdown"]
    links = [part.split(")")[0] for cell in cells for part in cell.split("](")[1:]]

    assert cells[0].startswith(f"# {int(path.name[:2])}. ")
    assert all((FOLDER / link).exists() for link in links)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    # The default run has the first; CI and `make verify` execute them all.
    [NOTEBOOKS[0], *(pytest.param(path, marks=pytest.mark.verify) for path in NOTEBOOKS[1:])],
    ids=lambda path: path.stem,
)
def test_it_says_what_is_stored(path: Path) -> None:
    again = EXECUTE.executed(path)

    assert EXECUTE.faults(again) == []
    assert EXECUTE.said(again) == EXECUTE.said(stored(path)), AGAIN


def test_a_planted_fault_is_found() -> None:
    cell = nbformat.v4.new_code_cell("1 / 0", outputs=[nbformat.v4.new_output("stream", name="stderr", text="hot")])
    notebook = nbformat.v4.new_notebook(cells=[cell])

    assert EXECUTE.faults(notebook) == ["cell 1 was not run", "cell 1 leaves an error or a warning"]
    assert EXECUTE.said(notebook) == ["hot"]
    assert json.loads(nbformat.writes(notebook))["cells"]
