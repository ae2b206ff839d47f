"""Write the pages that the code knows better than anybody: ``python -m htpsim.cli.reference [FOLDER]``.

FOLDER is the folder of the documentation, by default docs. Each page is replaced whole; of the page on the model only
what stands below its mark.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from htpsim.cli import commandspage
from htpsim.errors import HtpsimError
from htpsim.report import columnspage, policiespage
from htpsim.scenario import keyspage, modelpage

PAGES: Final[dict[str, Callable[[], str]]] = {
    "reference/scenario.md": keyspage.page,
    "reference/columns.md": columnspage.page,
    "reference/commands.md": commandspage.page,
    "reference/policies.md": policiespage.page,
}
"""Page -> what makes it."""
MODEL: Final = "model.md"


def made(folder: Path) -> dict[Path, str]:
    """Return every page that the code writes, by where it stands in a folder of documentation.

    Raises
    ------
    HtpsimError
        When the page on the model is not there, or has lost its mark.
    """
    model = folder / MODEL
    kept, mark, _ = model.read_text(encoding="utf-8").partition(modelpage.BEGIN) if model.is_file() else ("", "", "")
    if not mark:
        raise HtpsimError(f"{model}: got no page with the line '{modelpage.BEGIN}', expected the folder of the docs")
    pages = {folder / name: make() for name, make in PAGES.items()}
    return pages | {model: f"{kept}{mark}\n{modelpage.tables()}"}


def write(folder: Path) -> list[Path]:
    """Write the pages that are not as the code has them, and return which."""
    changed = []
    for path, text in made(folder).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            changed.append(path)
    return changed


if __name__ == "__main__":
    for page in write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs")):
        print(f"Written: {page}")
