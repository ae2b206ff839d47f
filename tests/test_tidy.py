"""Rules of this repository that no linter knows, as ordinary tests."""

from __future__ import annotations

import ast
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import htpsim

ROOT = Path(__file__).resolve().parents[1]
MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
# Modules that may be longer, each with its reason. Empty, and meant to stay so.
LONGER_MODULES: dict[str, str] = {}

# Written in pieces, so that this file does not contain what it looks for.
UNFINISHED = ["Not" + "ImplementedError", "TO" + "DO", "FIX" + "ME", "XX" + "X"]
MACHINE_PATHS = ["/wo" + "rk/", "/ho" + "me/", "/ro" + "ot/", "/Us" + "ers/", r"C:\\Us" + "ers", r"\.\./sha" + "red"]
REGISTRIES = ["pypi" + r"\.org", "python" + "hosted", "index" + "-url", "find" + "-links", "arti" + "factory"]
PRIVATE_WORDS = [r"\bagen" + r"t(s|ic)?\b", "sub-?agen" + "t", r"AI[- ]gen" + "erated", "AI ass" + "istant"]
PRIVATE_WORDS += ["co-authored" + "-by", "clau" + "de", "anthr" + "opic", "chat" + "gpt", r"\bthis sess" + r"ion\b"]
# Files written in formats of others, byte for byte, are not ours to word.
QUOTED = ("tests/fixtures/", "LICENSE")
TEXT_SUFFIXES = {"", ".cfg", ".css", ".csv", ".html", ".ipynb", ".j2", ".js", ".json", ".md", ".py", ".sh", ".toml"}
TEXT_SUFFIXES |= {".txt", ".yaml", ".yml"}


def repository_files() -> list[Path]:
    """Return every file that is, or would be, in the repository."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
        return sorted({ROOT / name for name in names if name and (ROOT / name).is_file()})
    skipped = {"__pycache__", "build", "dist", "runs", "venv"}
    found: list[Path] = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in skipped and not name.startswith(".")]
        found += [Path(folder) / name for name in files]
    return sorted(found)


FILES = repository_files()
LIBRARY = [path for path in FILES if path.suffix == ".py" and path.is_relative_to(ROOT / "htpsim")]
OUR_TEXTS = [
    path for path in FILES if path.suffix in TEXT_SUFFIXES and not path.relative_to(ROOT).as_posix().startswith(QUOTED)
]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def mentions(text: str, patterns: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the line number and the words of each match."""
    pattern = re.compile("|".join(patterns), re.IGNORECASE)
    for number, line in enumerate(text.splitlines(), start=1):
        for match in pattern.finditer(line):
            yield number, match[0]


def long_functions(text: str) -> Iterator[str]:
    """Yield the functions that do not fit a screen, with their length."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield f"{node.name} has {lines} lines"


def long_module(text: str) -> Iterator[str]:
    """Yield the length of a module that is too long."""
    lines = len(text.splitlines())
    if lines > MODULE_LINES_MAX:
        yield f"{lines} lines"


def prints(text: str) -> Iterator[str]:
    """Yield where a module writes to the terminal."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"print", "sys.stdout.write", "sys.stderr.write"}:
            yield f"line {node.lineno} calls {ast.unparse(node.func)}"


def undocumented(text: str) -> Iterator[str]:
    """Yield a word when a module does not say what it is for."""
    if not ast.get_docstring(ast.parse(text)):
        yield "has no docstring"


def problems(files: list[Path], rule: Callable[[str], Iterator[object]]) -> list[str]:
    return [f"{name_of(path)}: {found}" for path in files for found in rule(path.read_text(encoding="utf-8"))]


def test_there_is_something_to_check() -> None:
    assert {"pyproject.toml", "Makefile", ".ci/run", "LICENSE"} <= {name_of(path) for path in OUR_TEXTS + FILES}
    assert len(LIBRARY) > 3


def test_modules_have_one_job() -> None:
    assert problems([path for path in LIBRARY if name_of(path) not in LONGER_MODULES], long_module) == []


def test_functions_fit_a_screen() -> None:
    assert problems(LIBRARY, long_functions) == []


def test_the_library_does_not_print() -> None:
    speakers = ("htpsim/cli", "htpsim/report/")

    assert problems([path for path in LIBRARY if not name_of(path).startswith(speakers)], prints) == []


def test_every_module_says_what_it_is_for() -> None:
    assert problems(LIBRARY, undocumented) == []


def test_nothing_is_left_unfinished() -> None:
    assert problems(OUR_TEXTS, lambda text: mentions(text, [rf"\b{word}\b" for word in UNFINISHED])) == []


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    assert problems(OUR_TEXTS, lambda text: mentions(text, MACHINE_PATHS)) == []


def test_no_file_names_a_package_registry() -> None:
    assert problems(OUR_TEXTS, lambda text: mentions(text, REGISTRIES)) == []


def test_the_repository_is_about_htpsim() -> None:
    assert problems(OUR_TEXTS, lambda text: mentions(text, PRIVATE_WORDS)) == []


def test_every_page_that_is_mentioned_exists() -> None:
    pages = {path.name for path in FILES if path.suffix == ".md"}

    def missing(text: str) -> Iterator[str]:
        return (page for _, page in mentions(text, [r"[\w.-]+\.md\b"]) if page not in pages)

    assert problems([path for path in OUR_TEXTS if not name_of(path).startswith("tests/test_tidy")], missing) == []


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for path in FILES:
        if path.suffix == ".md" and path in OUR_TEXTS:
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8")):
                if "://" not in target and not (path.parent / target).exists():
                    broken.append(f"{name_of(path)}: {target}")

    assert broken == []


def test_every_public_name_can_be_imported() -> None:
    modules = [module.name for module in pkgutil.walk_packages(htpsim.__path__, "htpsim.")]
    public_names = 0
    missing = []
    for name in ["htpsim", *modules]:
        if not name.endswith("__main__"):
            module = importlib.import_module(name)
            public_names += len(getattr(module, "__all__", []))
            missing += [f"{name}.{public}" for public in getattr(module, "__all__", []) if not hasattr(module, public)]

    assert missing == []
    assert public_names > 0


def test_packages_declare_their_public_names() -> None:
    packages = [module.name for module in pkgutil.iter_modules(htpsim.__path__, "htpsim.") if module.ispkg]

    assert [name for name in packages if not hasattr(importlib.import_module(name), "__all__")] == []


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        pytest.param(long_module, "x = 1\n" * (MODULE_LINES_MAX + 1), id="long module"),
        pytest.param(long_functions, "def f():\n" + "    x = 1\n" * FUNCTION_LINES_MAX, id="long function"),
        pytest.param(prints, "def f():\n    print('x')", id="print"),
        pytest.param(undocumented, "x = 1", id="no docstring"),
        pytest.param(lambda text: mentions(text, UNFINISHED), "# TO" + "DO later", id="unfinished"),
        pytest.param(lambda text: mentions(text, MACHINE_PATHS), "see /ho" + "me/someone/file", id="machine path"),
        pytest.param(lambda text: mentions(text, REGISTRIES), "https://pypi" + ".org/simple", id="registry"),
        pytest.param(lambda text: mentions(text, PRIVATE_WORDS), "an agen" + "t wrote it", id="private word"),
    ],
)
def test_a_planted_fault_is_found(rule: Callable[[str], Iterator[object]], text: str) -> None:
    assert list(rule(text))


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        pytest.param(long_module, "x = 1\n" * MODULE_LINES_MAX, id="module at the limit"),
        pytest.param(
            long_functions, "def f():\n" + "    x = 1\n" * (FUNCTION_LINES_MAX - 1), id="function at the limit"
        ),
        pytest.param(prints, "def pprint(x): ...\npprint('x')", id="another name"),
        pytest.param(lambda text: mentions(text, PRIVATE_WORDS), "AI Hub, reagent, a session", id="words of the field"),
    ],
)
def test_what_is_allowed_passes(rule: Callable[[str], Iterator[object]], text: str) -> None:
    assert not list(rule(text))
