"""The page is one file that asks nothing of the network, says what the run's JSON says, and escapes what it is told."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest

from htpsim.errors import HtpsimError
from htpsim.experiments.compare import Comparison, compare
from htpsim.experiments.precision import Reached
from htpsim.experiments.single import run_one
from htpsim.report.cells import number
from htpsim.report.decision import ROWS
from htpsim.report.directory import write_single
from htpsim.report.html import from_comparison, from_directory, from_single, html_report
from htpsim.report.html.material import Material
from tests.html.conftest import TINY

FIGURES = {
    "TTFT mean [ms]": ("overall", "ttft", "mean"),
    "ITL p50 [ms]": ("overall", "itl", "p50"),
    "ITL p99 [ms]": ("overall", "itl", "p99"),
    "slow tokens [%]": ("overall", "slow_tokens"),
    "tokens/s": ("overall", "tokens_per_s"),
    "ViT mean [ms]": ("overall", "vit", "mean"),
    "guard wait [ms]": ("overall", "guard_wait", "mean"),
    "device wait [ms]": ("overall", "device_wait", "mean"),
}


class Page(HTMLParser):
    """What a test wants to know of a page: tags with their attributes, texts of table cells, ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[tuple[str | None, list[list[str]]]] = []
        self._cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append((dict(attrs).get("data-case"), []))
        elif tag == "tr":
            self.tables[-1][1].append([])
        elif tag in ("td", "th"):
            self._cell = True
            self.tables[-1][1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._cell = self._cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._cell:
            self.tables[-1][1][-1][-1] += data


@pytest.fixture(scope="module")
def english(pages: dict[str, Path]) -> str:
    return pages["en"].read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_figures_are_those_of_the_runs_json(pages: dict[str, Path], run_directory: Path, language: str) -> None:
    summary = json.loads((run_directory / "summary.json").read_text(encoding="utf-8"))
    page = Page(pages[language].read_text(encoding="utf-8"))
    decisions = {case: rows for case, rows in page.tables if case is not None}
    order = [label for label, *_ in decisions["equal"]]

    assert set(decisions) == set(summary["cases"])
    compared = 0
    for case, rows in decisions.items():
        english_rows = dict(zip(_labels(), rows[1:], strict=False)) if language == "zh" else {r[0]: r for r in rows}
        assert rows[0][1:] == list(summary["cases"][case])
        for label, path in FIGURES.items():
            row = english_rows[label]
            for text, runs in zip(row[1:], summary["cases"][case].values(), strict=True):
                metrics = [_at(run, path) for run in runs]
                values = [m["value"] for m in metrics]
                expected = "n/a" if None in values else number(fmean(values), metrics[0]["unit"])
                assert re.split("[\u00a0⁰¹²³⁴-⁹]", text)[0] == expected, (case, label)
                compared += expected != "n/a"
    assert compared > 20
    assert order[0] in ("figure", "指标")


def _labels() -> list[str]:
    dropped = ("jobs mean [ms]", "TTFT late", "ITL late")
    return [label for label, _ in ROWS if label not in dropped]


def _at(tree: dict, path: tuple[str, ...]) -> dict:  # type: ignore[type-arg]
    for name in path:
        tree = tree[name]
    return tree


@pytest.mark.slow
def test_the_verdict_says_the_changes_of_the_runs_json(english: str, run_directory: Path) -> None:
    summary = json.loads((run_directory / "summary.json").read_text(encoding="utf-8"))
    found = summary["changes"]["equal"]["high"]["overall.itl.p50"]
    assert found["clear"], found

    text = f"{100 * found['share']:+,.0f}"
    assert re.search(rf"<dt>ITL p50</dt><dd><span[^>]*></span>{re.escape(text)}", english)


@pytest.mark.slow
def test_the_slowest_token_is_the_largest_gap_of_the_records(english: str, material: Material) -> None:
    for (case, variant), run in material.runs.items():
        slow = _data(english)["runs"][f"{case}.{variant}"]["slow"]
        gaps = run.samples("itl")["value_ns"]

        assert slow[0]["total"] == number(int(gaps.max()), "ns")
        assert sum(float(part["share"]) for part in slow[0]["parts"]) == pytest.approx(100, abs=1)


def _data(text: str) -> dict:  # type: ignore[type-arg]
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])  # type: ignore[no-any-return]


@pytest.mark.slow
def test_nothing_is_asked_of_the_network(english: str) -> None:
    page = Page(english)
    names = {tag for tag, _ in page.tags}

    assert not names & {"link", "img", "iframe", "object", "embed", "base", "form"}
    assert [a for _, a in page.tags for key in ("src", "action", "data", "poster") if key in a] == []
    assert all(a["href"].startswith("#") for _, a in page.tags if a.get("href"))  # type: ignore[union-attr]
    assert not re.search(r"https?://|//[a-z]+\.|@import|url\(", english)
    policy = next(a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


@pytest.mark.slow
def test_what_the_scenario_says_is_escaped(english: str) -> None:
    assert "<h1>Tiny &lt;b&gt;&amp; quick&lt;/b&gt;</h1>" in english
    assert "<b>& quick" not in english
    assert ' lang="en"' not in english.partition("<body>")[2]
    assert "Does &#34;it&#34; escape?" in english


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_everything_has_a_name(pages: dict[str, Path], language: str) -> None:
    text = pages[language].read_text(encoding="utf-8")
    page = Page(text)
    ids = [a["id"] for _, a in page.tags if "id" in a]

    assert len(ids) == len(set(ids))
    assert next(a["lang"] for tag, a in page.tags if tag == "html") == {"en": "en", "zh": "zh-Hans"}[language]
    for tag, a in page.tags:
        for key in ("aria-labelledby", "aria-describedby", "for"):
            assert a.get(key) is None or a[key] in ids, (tag, a)
        if a.get("href", "") not in ("", None):
            assert str(a["href"])[1:] in ids
    assert text.count("<table") == text.count("<caption")
    assert all("scope" in a for tag, a in page.tags if tag == "th")
    headings = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(headings))


@pytest.mark.slow
def test_live_and_from_its_directory_are_the_same_page(live: Material, material: Material) -> None:
    def told(one: Material) -> str:
        return re.sub(r"<dd>\d{4}-\d\d-\d\dT[^<]*</dd>", "", html_report(one))

    assert told(live) == told(material)


@pytest.mark.slow
def test_precision_is_told_where_it_was_asked_for(comparison: Comparison, live: Material) -> None:
    asked = from_comparison(replace(comparison, reached=Reached(0.05, 0.031, "ITL p99 of high", 4)))

    assert "Precision asked for:" not in html_report(live)
    assert "4 replications; the widest interval is ±3.1 % (ITL p99 of high)." in html_report(asked)


@pytest.mark.slow
def test_the_command_is_told_without_the_place_of_the_program(english: str) -> None:
    assert '<code id="command">htpsim compare &#39;my tiny.toml&#39; --out out</code>' in english


@pytest.mark.slow
def test_one_scenario_has_a_report_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htpsim.report.directory.save_run_plots", lambda *_: [])
    single = run_one(TINY, variant="legacy", case="equal", workers=1)
    write_single(single, tmp_path / "one", ["htpsim", "run", "tiny.toml"])
    text = html_report(from_directory(tmp_path / "one"))

    assert "nothing to compare it with" in text
    assert _data(text) == _data(html_report(from_single(single)))
    assert '<section id="flips"' not in text


@pytest.mark.slow
def test_a_run_without_a_token_has_a_report(tmp_path: Path) -> None:
    single = run_one(TINY, set_values=["run.duration=1ms"], replication=0)
    text = html_report(from_single(single), "zh")

    assert "测量窗口内没有 token 结束" in text


@pytest.mark.verify
def test_five_minutes_of_the_main_question_take_less_than_three_megabytes() -> None:
    found = compare("vit_migration", set_values=["run.duration=300s", "run.replications=1"], grid=False)

    assert len(html_report(from_comparison(found, [])).encode()) < 3_000_000


@pytest.mark.slow
def test_a_damaged_summary_of_a_comparison_is_refused_with_its_path(run_directory: Path, tmp_path: Path) -> None:
    whole = json.loads((run_directory / "summary.json").read_text(encoding="utf-8"))
    shutil.copytree(run_directory, tmp_path / "out")
    for key in (
        "title",
        "question",
        "variants",
        "case_titles",
        "option_titles",
        "options",
        "warnings",
        "cases",
        "grid",
    ):
        for value in (None, 7, [], {}, ["a"], {"a": 1}, "text"):
            if isinstance(value, type(whole[key])) and (isinstance(value, str) or not value):
                continue
            if (key, value) in (("grid", None), ("options", ["a"]), ("warnings", ["a"]), ("option_titles", {"a": 1})):
                continue
            (tmp_path / "out/summary.json").write_text(json.dumps({**whole, key: value}), encoding="utf-8")

            with pytest.raises(HtpsimError, match=re.escape(str(tmp_path))):
                from_directory(tmp_path / "out")
