"""Execute the notebooks and store them with their outputs: ``python notebooks/execute.py [NAME ...]``.

What depends on the machine or the moment is left out, so that a notebook changes only when an output does. The tests
execute them in the same way and compare.
"""

from __future__ import annotations

import argparse
import base64
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
PICTURE_BYTES_MAX = 150_000
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def notebooks() -> list[Path]:
    """Return the notebooks, in the order in which one reads them."""
    return sorted(HERE.glob("*.ipynb"))


def executed(path: Path) -> Any:
    """Return a notebook as it is after its cells were run from the top, without what changes from run to run.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        When a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(HERE)}},
        extra_arguments=["--log-level=ERROR"],
    )  # fmt: skip
    client.execute()
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = {}
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if not _gone(output)]
        for output in cell.get("outputs", []):
            if "metadata" in output:
                output.metadata = {}
    return notebook


def _gone(output: Any) -> bool:
    """Tell whether an output shows nothing any more, as a line of progress does when it is done."""
    return output.output_type == "display_data" and not any(output.data.values())


def said(notebook: Any) -> list[str]:
    """Return what the cells said in words and tables, and that they showed a picture; fonts may differ."""
    return [text for cell in notebook.cells for output in cell.get("outputs", []) for text in _words(output)]


def _words(output: Any) -> Iterator[str]:
    if output.output_type == "stream":
        yield output.text
        return
    for kind, value in sorted(output.get("data", {}).items()):
        yield "a picture" if kind == "image/png" else value


def faults(notebook: Any) -> list[str]:
    """Return what a stored notebook must not hold: cells that were not run, errors, warnings, large pictures."""
    found = []
    for number, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type == "code" and cell.execution_count is None:
            found.append(f"cell {number} was not run")
        for output in cell.get("outputs", []):
            if output.output_type == "error" or output.get("name") == "stderr":
                found.append(f"cell {number} leaves an error or a warning")
            picture = output.get("data", {}).get("image/png", "")
            if len(base64.b64decode(picture)) > PICTURE_BYTES_MAX:
                found.append(f"cell {number} shows a picture above {PICTURE_BYTES_MAX:,} bytes")
    return found


def main() -> None:
    """Execute and store those that were named, by default all."""
    parser = argparse.ArgumentParser(description="Execute the notebooks and store them with their outputs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as 02; by default all")
    wanted = tuple(parser.parse_args().names)
    unknown = [name for name in wanted if not any(path.name.startswith(name) for path in notebooks())]
    if unknown:
        parser.error(f"got {', '.join(unknown)}, expected the beginning of a notebook's name, such as 02")
    for path in notebooks():
        if path.name.startswith(wanted or ""):
            notebook = executed(path)
            problems = faults(notebook)
            if problems:
                sys.exit(f"{path.name}: {'; '.join(problems)}")
            path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
            print(path.name)


if __name__ == "__main__":
    main()
