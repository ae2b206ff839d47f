"""Bring into the site what its pages link to outside the documentation: the READMEs, scenarios, notebooks.

Read by MkDocs as a hook. A link such as ``../scenarios/field/x.toml`` is right in the repository; here the file it
names is copied into the site, below ``repository/``, and the link is led there. Markdown becomes a page, a folder a
page that lists it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
HOME = "repository"
PAGE = ".md"
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def outside(text: str, folder: Path) -> list[Path]:
    """Return what a text in a folder of the repository links to that is no file of the documentation, each once."""
    targets = [(folder / found[2]).resolve() for found in LINK.finditer(CODE.sub("", text)) if "://" not in found[2]]
    return list(dict.fromkeys(path for path in targets if path.exists() and (path.is_dir() or not _in_docs(path))))


def _in_docs(path: Path) -> bool:
    return path.is_relative_to(DOCS)


def name_in_site(path: Path) -> str:
    """Return where a file or folder of the repository lies in the site.

    >>> name_in_site(ROOT / "pyproject.toml"), name_in_site(ROOT / "notebooks").removesuffix(PAGE)
    ('repository/pyproject.toml', 'repository/notebooks/contents')
    """
    name = path.relative_to(DOCS).as_posix() if _in_docs(path) else f"{HOME}/{path.relative_to(ROOT).as_posix()}"
    if path.is_dir():
        return f"{name}/contents{PAGE}"
    if _in_docs(path):
        return name
    # A page called README would become the index of its folder.
    return name.replace("README", "readme")


def led(text: str, folder: Path, here: str) -> str:
    """Return a text of a folder of the repository with its links as the site needs them on the page `here`."""

    def there(found: re.Match[str]) -> str:
        target = (folder / found[2]).resolve()
        if "://" in found[2] or not target.exists() or not target.is_relative_to(ROOT):
            return found[0]
        link = os.path.relpath(name_in_site(target), PurePosixPath(here).parent)
        return f"[{found[1]}]({link}{found[3] or ''})"

    pieces, end = [], 0
    for code in CODE.finditer(text):
        pieces += [LINK.sub(there, text[end : code.start()]), code[0]]
        end = code.end()
    # A link whose text is code has code within it, so that its halves are joined before they are looked at.
    whole = "".join([*pieces, LINK.sub(there, text[end:])])
    return re.sub(r"\[(`[^`\n]*`)\]\(([^)\s#]+)(#[^)\s]*)?\)", there, whole)


def listing(folder: Path) -> str:
    """Return a page that lists the files of a folder."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    lines = [f"# {folder.relative_to(ROOT).as_posix()}", "", *(f"- [{name}]({name})" for name in names)]
    return "\n".join(lines) + "\n"


def on_files(files: Any, *, config: Any) -> Any:
    """Add what the pages link to, and what that links to."""
    from mkdocs.structure.files import File

    waiting = []
    for page in files.documentation_pages():
        source = Path(page.abs_src_path)
        waiting += outside(source.read_text(encoding="utf-8"), source.parent)
    done: set[Path] = set()
    while waiting:
        path = waiting.pop(0)
        if path in done or not path.is_relative_to(ROOT):
            continue
        done.add(path)
        name = name_in_site(path)
        if path.is_dir():
            text = listing(path)
            held = [each for each in path.iterdir() if each.is_file() and not each.name.startswith(".")]
            waiting += [each for each in held if not _in_docs(each)]
            made = File.generated(config, name, content=text)
        elif path.suffix == PAGE:
            text = path.read_text(encoding="utf-8")
            waiting += outside(text, path.parent)
            made = File.generated(config, name, content=led(text, path.parent, name))
        else:
            made = File.generated(config, name, abs_src_path=str(path))
        made.inclusion = made.inclusion.NOT_IN_NAV
        files.append(made)
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Lead the links of a page of the documentation."""
    if page.file.src_uri.startswith(f"{HOME}/"):
        return markdown
    return led(markdown, (DOCS / page.file.src_uri).parent, page.file.src_uri)
