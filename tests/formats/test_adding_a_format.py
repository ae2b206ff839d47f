"""The page on adding a format, step by step as a user would follow it; and that one reader cannot harm another."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from htpsim import formats
from htpsim.errors import FormatError
from htpsim.formats import plugins, registry
from htpsim.formats.form import Format, Match
from htpsim.formats.source import Source
from htpsim.formats.values import Report

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "formats"
PAGE = (ROOT / "docs" / "adding-a-format.md").read_text(encoding="utf-8")


def block(kind: str, number: int = 0) -> str:
    """Return a code block of the page."""
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)[number]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder as an installed package with the page's format leaves it."""
    (tmp_path / "bench_format.py").write_text(block("python"), encoding="utf-8")
    group, name, value = re.findall(r'\[project.entry-points."(.*?)"\]\n(\w+) = "(.*?)"', block("toml"))[0]
    info = tmp_path / "bench-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bench\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {value}\nbroken = broken_format:FORMAT\n")
    (tmp_path / "runs.txt").write_text(block("text"), encoding="utf-8")
    (tmp_path / "broken.txt").write_text("bench 1.2\nrun vit 5 us\nrun vit soon\n", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("hello\n", encoding="utf-8")
    return tmp_path


COMMANDS = """
import contextlib, io, json, sys
from htpsim.cli import main
told = []
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as left:
            told.append([left.code, out.getvalue(), err.getvalue()])
print(json.dumps(told))
"""


def spawn(folder: Path, *arguments: str) -> str:
    """Run Python where the package is installed, and return what it says."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]), "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False, encoding="utf-8"
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
def test_the_page_is_true_on_the_command_line(package: Path) -> None:
    commands = [["inspect", "runs.txt"], ["inspect", "runs.txt", "--json"], ["inspect", "broken.txt"]]
    told = json.loads(spawn(package, "-c", COMMANDS, json.dumps([*commands, ["inspect", "notes.txt"]])))
    page, data, refused, unknown = told

    assert [code for code, _, _ in told] == [0, 0, 2, 2]
    assert "runs.txt: bench" in page[1]
    assert re.search(r"run +2,952 us +2", page[1])
    facts = json.loads(data[1])["facts"]
    assert facts[1] == {"section": "vit", "name": "run", "value": 2952, "unit": "us", "line": 2, "note": ""}
    assert refused[2] == "htpsim: broken.txt:3: got 'run vit soon', expected a run such as 'run vit 2952 us'\n"
    assert "bench (Bench text)" in unknown[2]
    assert (
        "the format 'broken' of broken_format:FORMAT cannot be loaded (No module named 'broken_format')" in unknown[2]
    )


@pytest.mark.slow
def test_the_page_is_true_in_python(package: Path) -> None:
    code = block("python", 1) + "\nprint(formats.recognise('runs.txt'), formats.samples_ns('runs.txt', 'vit'))\n"
    code += f"print(formats.recognise({str(FIXTURES / 'viewer_cpu.txt')!r}))"

    assert spawn(package, "-c", code).split("\n")[:2] == ["bench (2952000, 2949000)", "qnn-viewer"]


def test_the_page_names_the_registration_that_there_is() -> None:
    text = (ROOT / "htpsim" / "formats" / "registry.py").read_text(encoding="utf-8")

    assert "the tuple `_ALL` of `htpsim/formats/registry.py`" in PAGE
    assert len(re.findall(r"^    \w+\.FORMAT,$", text, re.MULTILINE)) == len(formats.FORMATS)


def test_each_format_is_named_in_two_places_of_the_registry_only() -> None:
    """Once where it is imported and once in the tuple; a shared list of patterns or names would be a third."""
    shared = ("registry", "source", "tree", "values", "form", "stream", "jsontext", "jsonevents", "yamltext", "samples")
    for name in {item.read.__module__.split(".")[2] for item in formats.FORMATS.values()}:
        for module in shared:
            text = (ROOT / "htpsim" / "formats" / f"{module}.py").read_text(encoding="utf-8")
            code = re.sub(r'""".*?"""', "", text, flags=re.DOTALL)
            found = len(re.findall(rf"\b{name}\b", code))
            assert found == (2 if module == "registry" else 0), (name, module)


def boom(*_: object) -> Match:
    raise ZeroDivisionError("a reader of somebody else")


def broken_read(source: Source, lenient: bool) -> Report:
    raise ZeroDivisionError("a reader of somebody else")


BROKEN = Format("broken", "Broken", "raises whatever it is asked", boom, broken_read)
GREEDY = Format("greedy", "Greedy", "is sure of every file", lambda source: Match.YES, broken_read)


@pytest.mark.parametrize("path", sorted(FIXTURES.iterdir()), ids=lambda path: path.name)
def test_a_broken_or_greedy_format_does_not_touch_the_others(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a package beside, neither its recogniser nor its reader changes what any shipped reader returns."""
    before = formats.recognise(path)
    report = formats.read(path, lenient=True).to_json() if path.name != "htp_template.json" else None
    others = plugins.Plugins({"broken": BROKEN, "greedy": GREEDY}, ("the format 'gone' cannot be loaded",))
    monkeypatch.setattr(registry, "plugins", lambda: others)

    if (
        before in {"qnn-viewer", "qnn-csv", "qnn-trace", "genie-profile"}
        and registry.FORMATS[before].sniff(formats.load(path)) < Match.YES
    ):
        return  # only traces of it are there, and somebody is sure
    assert formats.recognise(path) == before
    if report is not None:
        assert formats.read(path, lenient=True).to_json() == report


def test_a_shipped_recogniser_that_fails_fits_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(registry, "FORMATS", {**formats.FORMATS, "broken": BROKEN})
    (tmp_path / "notes.txt").write_text("hello")

    for path in sorted(FIXTURES.glob("*.json")):
        assert formats.recognise(path) != "broken"
    with pytest.raises(FormatError, match=r"the recogniser of broken failed \(ZeroDivisionError"):
        formats.recognise(tmp_path / "notes.txt")


def test_a_format_of_another_package_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    toy = Format("toy", "Toy", "invented", lambda source: Match.NO, lambda source, lenient: Report("toy", "a", 1, ()))
    monkeypatch.setattr(registry, "plugins", lambda: plugins.Plugins({"toy": toy}, ("the format 'gone' is gone",)))
    (tmp_path / "a").write_text("x")

    assert formats.read(tmp_path / "a", format="toy").data == 1
    with pytest.raises(FormatError, match=r"did you mean 'toy'\?; the format 'gone' is gone"):
        formats.read(tmp_path / "a", format="tpy")


def test_a_shipped_format_keeps_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Format("qnn-viewer", "Mine", "takes a name that there is", lambda source: Match.YES, broken_read)
    monkeypatch.setattr(registry, "plugins", lambda: plugins.Plugins({"qnn-viewer": mine}, ()))

    assert registry.known_formats()["qnn-viewer"] is formats.FORMATS["qnn-viewer"]


def test_what_cannot_be_loaded_is_said_and_left_out() -> None:
    points = [
        EntryPoint("gone", "no_such_module:FORMAT", plugins.GROUP),
        EntryPoint("odd", "json:dumps", plugins.GROUP),
        EntryPoint("first", "tests.formats.test_adding_a_format:BROKEN", plugins.GROUP),
        EntryPoint("second", "tests.formats.test_adding_a_format:BROKEN", plugins.GROUP),
    ]
    found = plugins.loaded(tuple(points))

    assert list(found.formats) == ["broken"]
    assert found.faults == (
        "the format 'gone' of no_such_module:FORMAT cannot be loaded (No module named 'no_such_module')",
        "the format 'odd' of json:dumps is a function, not a Format",
        "the format 'second' of tests.formats.test_adding_a_format:BROKEN has the name 'broken', "
        "which another one has already",
    )
