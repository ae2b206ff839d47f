"""Every snippet of README and documentation is run, here or by the test that is named for it."""

from __future__ import annotations

import ast
import atexit
import doctest
import shlex
import shutil
import tempfile
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import settings
from joblib.externals.loky import get_reusable_executor

from htpsim.cli.app import cli
from htpsim.experiments.measured import preset
from htpsim.formats.writers.measured import measured_viewer_lines
from htpsim.formats.writers.whole import write_text
from htpsim.report import directory
from htpsim.scenario import load
from tests.cli.support import INLINE as IN_PROCESS
from tests.cli.support import Outcome, call
from tests.measure.support import MS, measured, measurement
from tests.snippets.pages import BLOCK, COVERED, INLINE, LANGUAGES, MARKS, ROOT, Snippet, blocks, pages, snippets

MAY_FAIL = {"tune", "score", "check", "validate"}
"""Commands whose exit code is an answer: 1 is as good as 0 where a page only shows how to ask."""
SHORT = {"--for": "1s", "--replications": "1", "--points": "2", "--finalists": "1"}
"""What a command is given to be over soon, where it has such an option."""
TOLD = {
    "compare": ("--no-grid", "--warmup", "0s"),
    "run": ("--warmup", "0s"),
    "report": ("--no-grid",),
    "sensitivity": ("--only", "guard.slots_per"),
    "fit": ("--variant", "legacy", "--most", "5"),
}
NEEDED = {"calibrate": ("--image-tokens", "64")}
"""What a command needs because the recordings of the tests are short."""
PAGES = [page for page in pages() if any(not one.why_not for one in snippets(page))]


@cache
def recorded() -> Path:
    """Return a folder with what the commands of the pages read: logs, a configuration, a profile, a trace, a run."""
    folder = Path(tempfile.mkdtemp(prefix="htpsim-snippets-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in ("genie_config.json", "vit_profile.csv"):
        shutil.copy(ROOT / "docs" / "calibrating" / name, folder)
    shutil.copy(ROOT / "docs" / "calibrating" / "genie_verbose.log", folder / "genie.log")
    run = ("run", "vit_genie", "--for", "10s", "--replications", "1", *IN_PROCESS)
    earlier, trace, profile = (str(folder / name) for name in ("earlier", "my-trace.jsonl", "my-profile.txt"))
    for line in ((*run, "--out", earlier, "--trace", trace), ("export", earlier, "-o", profile)):
        with pytest.raises(SystemExit) as left:
            cli.main(line)
        assert left.value.code == 0
    return folder


def recordings(folder: Path) -> None:
    shutil.copytree(recorded(), folder, dirs_exist_ok=True)


def a_recorded_trace(folder: Path) -> None:
    recordings(folder)
    shutil.copy(folder / "my-trace.jsonl", folder / "trace.jsonl")


def a_run_and_a_trace(folder: Path) -> None:
    recordings(folder)
    (folder / "earlier").rename(folder / "DIR")
    shutil.copy(folder / "my-trace.jsonl", folder / "device.jsonl")


def policies(folder: Path) -> None:
    shutil.copytree(ROOT / "docs" / "policies", folder / "docs" / "policies")


def a_project(folder: Path) -> None:
    shutil.copy(ROOT / "docs" / "testing" / "least_served.py", folder)
    (folder / "my_project.py").write_text("from htpsim.memory import Registry as MyRegistry\n", encoding="utf-8")


def measurements(folder: Path) -> None:
    found = measurement(measured([20 * MS] * 10), title="inception_v3.onnx")
    write_text(measured_viewer_lines(found.executions(found.measured[0])), folder / "ort.txt")
    preset(found).write(folder / "ort.toml")
    shutil.copy(ROOT / "scenarios" / "data" / "qnn_cpu_inception_v3.txt", folder / "qnn.txt")


SETUP: dict[str, Callable[[Path], None]] = {
    "README.md": recordings,
    "README.zh.md": recordings,
    "docs/measuring.md": measurements,
    "docs/opening-traces.md": a_run_and_a_trace,
    "docs/tracing-your-device.md": a_recorded_trace,
    "docs/policies/README.md": policies,
    "docs/testing-your-policy.md": a_project,
}
"""What a reader of a page has in the folder already."""


def shortened(words: list[str]) -> list[str]:
    """Return a command that is over soon and starts no processes, with the options of the page otherwise."""
    name, *rest = words
    if name == "report" and Path(rest[0]).is_dir():
        return words
    has = {option for param in cli.commands[name].params for option in param.opts}
    for option, value in SHORT.items():
        if option in rest:
            at = rest.index(option)
            del rest[at : at + 2]
        rest += [option, value] if option in has else []
    more = [word for word in TOLD.get(name, ()) if name != "fit" or "--variant" not in rest]
    return [name, *rest, *more, *(IN_PROCESS if "--workers" in has else ())]


class Reader:
    """Somebody who does what a page says, in a folder of their own."""

    def __init__(self, capsys: pytest.CaptureFixture[str], folder: Path, patience: bool) -> None:
        self.capsys = capsys
        self.folder = folder
        self.patience = patience
        self.names: dict[str, Any] = {"__name__": "snippet"}

    def do(self, one: Snippet) -> None:
        getattr(self, one.kind)(one)

    def sh(self, one: Snippet) -> None:
        for line in one.text.splitlines():
            self.command(line, one)

    def console(self, one: Snippet) -> None:
        """Run the commands, and compare what they print with what the page shows."""
        for part in ("\n" + one.text).split("\n$ ")[1:]:
            line, _, shown = part.partition("\n")
            done = self.command(line, one, whole=True)
            said = done.out + done.err
            assert matches(shown, said), f"{one.page}:{one.line}: the page shows\n{shown}\nbut it prints\n{said}"

    def command(self, line: str, one: Snippet, whole: bool = False) -> Outcome:
        words = shlex.split(line.replace(".venv/bin/", ""), comments=True)
        if not words:
            return Outcome(0, "", "")
        while "=" in words[0]:  # PYTHONPATH=... is arranged by the test
            words.pop(0)
        target = words[words.index(">") + 1] if ">" in words else ""
        words = words[: words.index(">")] if target else words
        assert words[0] == "htpsim", f"{one.page}:{one.line}: got {words[0]}, expected htpsim or a reason why not"
        asked = [*words[1:], *NEEDED.get(words[1], ())]
        done = call(self.capsys, *(asked if whole or self.patience else shortened(asked)))
        fine = {0, 1} if words[1] in MAY_FAIL else {0, 2} if whole else {0}
        assert done.code in fine, f"{one.page}:{one.line}: {line}: {done.err}"
        assert "\x1b" not in done.out + done.err
        if target:
            (self.folder / target).write_text(done.out, encoding="utf-8")
        return done

    def toml(self, one: Snippet) -> None:
        """Keep it as a file, and load it where it is a scenario."""
        path = self.folder / (one.said if one.mark == "file" else "mine.toml")
        path.write_text(one.text, encoding="utf-8")
        if "extends" in one.text or "[[instances]]" in one.text:
            load(path)

    def python(self, one: Snippet) -> None:
        """Execute it among the names of the page, and the tests that it defines."""
        before = set(self.names)
        exec(compile(one.text, f"{one.page}:{one.line}", "exec"), self.names)
        for name in sorted(set(self.names) - before):
            found = self.names[name]
            if name.startswith("test_") and isinstance(found, types.FunctionType):
                settings(max_examples=5)(found)()


def matches(shown: str, said: str) -> bool:
    """Tell whether a text is what a page shows, `...` standing for anything; how it is wrapped does not count.

    >>> matches("a ... d", "a b c d"), matches("a c", "a b c")
    (True, False)
    """
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(shown.strip() + "\n", said.strip() + "\n", flags)


def read(
    page: str, patience: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if patience:  # worker processes that are kept from the page before would not see the folder of this one
        get_reusable_executor().shutdown()
    else:  # pictures are tested elsewhere
        monkeypatch.setattr(directory, "save_run_plots", lambda result, folder: None)
        monkeypatch.setattr(directory, "save_compare_plots", lambda results, folder: None)
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, tmp_path / "docs" / "policies"):
        monkeypatch.syspath_prepend(str(folder))
    SETUP.get(page, lambda folder: None)(tmp_path)
    capsys.readouterr()
    reader = Reader(capsys, tmp_path, patience)
    for one in snippets(page):
        if not one.why_not and (patience or not one.takes_minutes):
            reader.do(one)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if page != "README.zh.md"])
def test_what_a_page_says_can_be_done(
    page: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(page, False, capsys, tmp_path, monkeypatch)


@pytest.mark.verify
@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_says_can_be_done_in_full(
    page: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(page, True, capsys, tmp_path, monkeypatch)


def test_every_mark_is_one_of_ours_and_gives_a_reason() -> None:
    marked = [one for page in pages() for one in snippets(page) if one.mark]

    assert [one for one in marked if one.mark not in MARKS or not one.said] == []
    assert [one for one in marked if one.mark == "run" and one.said != "verify"] == []
    assert [one for one in marked if one.mark == "not run" and len(one.said.split()) < 3] == []


@pytest.mark.parametrize("place", COVERED, ids=lambda place: f"{place[0]}-{place[1]}")
def test_what_is_covered_elsewhere_is(place: tuple[str, str]) -> None:
    page, kind = place
    module, _, name = COVERED[place].partition("::")
    text = (ROOT / module).read_text(encoding="utf-8")
    functions = {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}

    assert [one for one in snippets(page) if one.kind == kind and ">>>" not in one.text], f"{page} has no such block"
    assert name in functions
    assert Path(page).name in text or page == "CONTRIBUTING.md"


def test_no_block_hides_what_could_be_run() -> None:
    """A block without a language that begins with a command would be passed over."""
    hidden = []
    for page in pages():
        for one in blocks((ROOT / page).read_text(encoding="utf-8"), page):
            first = one.text.split(maxsplit=1)[:1]
            if one.kind not in LANGUAGES and first in (["htpsim"], ["$"], [".venv/bin/htpsim"]):
                hidden += [] if page == "docs/reference/commands.md" else [f"{page}:{one.line}"]

    assert hidden == []


def test_the_chinese_readme_has_commands_that_the_english_one_runs() -> None:
    """In the default run they are not run twice."""
    english, chinese = (
        {" ".join(shlex.split(line, comments=True)).removesuffix(" --lang zh") for line in one.text.splitlines()}
        for page in ("README.md", "README.zh.md")
        for one in snippets(page)
        if one.kind == "sh" and not one.why_not
    )

    assert chinese - english == set()


def complaint(words: list[str]) -> str:
    """Return what is wrong with a command, names and options only; "" where nothing is."""
    if not words or words[0].startswith("-") or words[0].isupper():
        return ""
    if words[0] not in cli.commands:
        return f"no command '{words[0]}'"
    known = {option for param in cli.commands[words[0]].params for option in (*param.opts, *param.secondary_opts)}
    known |= {"--help", "-h"}
    options = [word.partition("=")[0].rstrip(",.;") for word in words[1:] if word.startswith("-") and len(word) > 1]
    return ", ".join(f"no option '{one}' of {words[0]}" for one in options if one not in known)


def test_every_command_that_is_named_in_a_sentence_exists() -> None:
    wrong, seen = [], 0
    for page in pages():
        text = BLOCK.sub("", (ROOT / page).read_text(encoding="utf-8"))
        for found in INLINE.finditer(text):
            seen += 1
            told = complaint(shlex.split(found[1].replace("\\|", "|")))
            wrong += [f"{page}: {found[0]}: {told}"] if told else []

    assert wrong == []
    assert seen > 50


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "x", "--for", "3s"], ""),
        (["rum", "x"], "no command 'rum'"),
        (["check", "x", "--slot", "1"], "no option '--slot' of check"),
        (["COMMAND", "--help"], ""),
    ],
)
def test_a_wrong_name_would_be_found(words: list[str], told: str) -> None:
    assert complaint(words) == told


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("```sh\nhtpsim runn x\n```\n", "No such command"),
        ("```sh\nrm -r x\n```\n", "expected htpsim or a reason"),
        ("```console\n$ htpsim run nothing\nhtpsim: all is well\n```\n", "but it prints"),
        ("```toml\nextends = 'vit_genie'\n[guard]\nslotz = 1\n```\n", "slotz"),
        ("```python\nraise KeyError('planted')\n```\n", "planted"),
    ],
)
def test_a_planted_fault_is_found(
    text: str, what: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tests.snippets.test_snippets.shortened", lambda words: words)
    (one,) = blocks(text, "planted")

    with pytest.raises(Exception, match=what):
        Reader(capsys, tmp_path, False).do(one)


def test_marks_and_blocks_are_read() -> None:
    text = "a\n<!-- not run: it needs a device -->\n```sh\nhtpsim run x\n```\n\n```python\n>>> 1\n```\n"
    first, second = blocks(text, "x")

    assert (first.line, first.why_not, first.kind) == (3, "it needs a device", "sh")
    assert second.why_not == "pytest runs it"
    assert isinstance(cli, click.Group)
