"""One door to all formats: by content, each reader for itself, nothing heavy until it is needed."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from htpsim import formats
from htpsim.errors import FormatError
from htpsim.formats import registry
from htpsim.formats.form import Format, Match
from htpsim.formats.source import Source
from htpsim.formats.values import Report

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "formats"
PREFIXES = {
    "viewer": "qnn-viewer",
    "perf": "aihub-perf",
    "genie": "genie-config",
    "htp": "htp-backend-ext",
    "netrun": "qnn-csv",
    "trace": "qnn-trace",
    "profile": "genie-profile",
    "console": "genie-console",
    "ortprofile": "ort-profile",
    "ortcsv": "ort-qnn-csv",
    "throughput": "qnn-throughput",
    "ctxinfo": "qnn-context-info",
    "ctxlog": "qnn-context-log",
    "qnnreport": "qnn-report",
    "snpe": "snpe-diagview",
    "executorch": "executorch-log",
    "bench": "llm-bench-csv",
    "service": "service-tests",
    "htpsimtrace": "htpsim-trace",
}
FILES = sorted(FIXTURES.iterdir())
READABLE = [path for path in FILES if path.name != "htp_template.json"]


def format_of(path: Path) -> str:
    return PREFIXES[path.name.split("_")[0]]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_content_decides_not_the_name(path: Path, tmp_path: Path) -> None:
    (tmp_path / "unnamed").write_bytes(path.read_bytes())

    assert formats.recognise(tmp_path / "unnamed") == format_of(path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.name)
def test_encoding_line_ends_and_colours_change_nothing(path: Path, encoding: str, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    colour = "\x1b[36m" if path.suffix == ".txt" else ""
    copy = tmp_path / "copy"
    copy.write_bytes((colour + text.replace("\n", "\r\n")).encode(encoding))

    original = formats.read(path, lenient=True).to_json()
    assert formats.read(copy, lenient=True).to_json() == {**original, "path": str(copy)}


@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.name)
def test_a_report_is_json_and_its_facts_carry_lines(path: Path) -> None:
    report = formats.read(path, lenient=True)
    lines = path.read_text(encoding="utf-8").count("\n") + 1

    assert json.loads(json.dumps(report.to_json(), allow_nan=False))["format"] == format_of(path)
    assert report.path == str(path)
    assert report.facts
    for fact in report.facts:
        assert fact.line is None or 1 <= fact.line <= lines


def test_no_reader_changes_what_another_returns() -> None:
    """Read everything in many orders, twice: each report is the same every time."""
    first = {path: formats.read(path, lenient=True).to_json() for path in READABLE}
    order = random.Random(1)
    for _ in range(3):
        for path in order.sample(READABLE * 2, 2 * len(READABLE)):
            assert formats.read(path, lenient=True).to_json() == first[path]


def test_each_reader_knows_only_itself() -> None:
    """No reader imports another one; what they share is text, JSON, YAML, values."""
    root = Path(formats.__file__).parent
    readers = {item.read.__module__.split(".")[2] for item in formats.FORMATS.values()}
    assert len(readers) == len(formats.FORMATS)
    for reader in readers:
        folder = root / reader
        files = folder.glob("*.py") if folder.is_dir() else [root / f"{reader}.py"]
        for file in files:
            text = file.read_text(encoding="utf-8")
            imported = " ".join(re.findall(r"^\s*(?:from|import) .*", text, re.MULTILINE))
            others = [other for other in readers - {reader} if re.search(rf"\b{other}\b", imported)]
            assert not others, file


def test_what_fits_nothing_is_refused_with_the_list(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\nbackend,tokens\n")

    with pytest.raises(FormatError) as refusal:
        formats.recognise(tmp_path / "a.csv")
    assert f"{tmp_path / 'a.csv'}:2: got 'backend,tokens', which fits no known format, expected one of: " in str(
        refusal.value
    )
    assert all(name in str(refusal.value) for name in formats.FORMATS)


def test_a_log_that_quotes_a_configuration_is_no_configuration(tmp_path: Path) -> None:
    quoted = (FIXTURES / "genie_dialog.json").read_text(encoding="utf-8")
    (tmp_path / "service.log").write_text(f"[INFO] loading\n{quoted}\n[INFO] done\n")

    with pytest.raises(FormatError, match="fits no known format"):
        formats.recognise(tmp_path / "service.log")


def test_an_unknown_format_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(FormatError, match="did you mean 'genie-config'"):
        formats.read(FILES[0], format="genie_config")


def test_a_named_format_overrides_recognition() -> None:
    with pytest.raises(FormatError, match="expected a genie_config"):
        formats.read(FIXTURES / "htp_inner.json", format="genie-config")


def test_a_new_format_is_one_module_and_one_registration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def sniff(source: Source) -> Match:
        return Match.YES if source.text.startswith("TOY") else Match.NO

    def read(source: Source, lenient: bool) -> Report:
        return Report("toy", source.name, len(source.text), ())

    toy = Format("toy", "Toy", "a format that a test invents", sniff, read)
    monkeypatch.setattr(registry, "FORMATS", {**formats.FORMATS, "toy": toy})
    (tmp_path / "a").write_text("TOY")

    assert formats.read(tmp_path / "a").data == 3
    with pytest.raises(FormatError, match="got Toy, which holds no times, expected one of: qnn-viewer, aihub-perf"):
        formats.service_time_ns(tmp_path / "a")


def test_two_formats_that_fit_alike_are_not_guessed_between(monkeypatch: pytest.MonkeyPatch) -> None:
    double = formats.FORMATS["qnn-viewer"]
    monkeypatch.setattr(registry, "FORMATS", {**formats.FORMATS, "double": Format(
        "double", "Double", "fits what the viewer fits", double.sniff, double.read
    )})  # fmt: skip

    with pytest.raises(FormatError, match="fits qnn-viewer and double alike, expected one format; say which"):
        formats.recognise(FIXTURES / "viewer_cpu.txt")


def test_service_times_come_through_the_same_door() -> None:
    viewer = FIXTURES / "viewer_cpu.txt"
    perf = FIXTURES / "perf_precisions.yaml"

    assert formats.service_time_ns(viewer, "toy").source == f"{viewer}:41 GRAPH_EXECUTE of toy"
    assert formats.service_time_ns(perf, "Encoder", precision="w8a8").value_ns == 3_500_000
    with pytest.raises(FormatError, match="Genie configuration, which holds no times"):
        formats.service_time_ns(FIXTURES / "genie_dialog.json")


def test_every_format_describes_itself_in_one_line() -> None:
    for name, item in formats.FORMATS.items():
        assert item.name == name
        assert item.title
        assert item.description
        assert "\n" not in item.description


def test_yaml_is_loaded_by_the_reader_that_needs_it_only() -> None:
    code = (
        "import sys; from htpsim import formats; assert 'yaml' not in sys.modules; "
        f"formats.read({str(FIXTURES / 'viewer_cpu.txt')!r}); assert 'yaml' not in sys.modules; "
        f"formats.read({str(FIXTURES / 'perf_single.yaml')!r}); assert 'yaml' in sys.modules"
    )

    subprocess.run([sys.executable, "-c", code], check=True)
