"""What a reader sees, in a real browser: no error, a timeline that zooms and finds, nothing on top of anything else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

PROBES = Path(__file__).with_name("probes.js").read_text(encoding="utf-8").strip()
WIDTHS = (360, 414, 768, 1024, 1280, 1920)


def probe(page: Any, name: str) -> list[str]:
    found: list[str] = page.evaluate(f"{PROBES}.{name}()")
    return found


def state(page: Any) -> dict[str, float]:
    known = page.eval_on_selector("#timeline", "(e) => ({...e.dataset})")
    return {key: float(known[key]) for key in ("from", "until", "rank", "chosen")}


def length(page: Any) -> float:
    return state(page)["until"] - state(page)["from"]


@pytest.fixture(scope="module")
def opened(browser: Any, pages: dict[str, Path]) -> Iterator[dict[str, Any]]:
    """Return the report open in each language; at the end, hold it to never having complained or asked for anything."""
    complaints: list[str] = []
    open_pages = {}
    for language, path in pages.items():
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: complaints.append(asked.url) if not asked.url.startswith("file:") else None)
        page.goto(path.as_uri())
        page.wait_for_selector("#timeline[data-ready]")
        open_pages[language] = page
    yield open_pages
    for page in open_pages.values():
        page.close()
    assert complaints == []


@pytest.fixture
def page(opened: dict[str, Any]) -> Any:
    """Return the English report as it is on opening it."""
    found = opened["en"]
    found.set_viewport_size({"width": 1280, "height": 900})
    found.emulate_media(media="screen", color_scheme="light")
    found.select_option("#which", "equal.legacy")
    found.click("#slowest")
    return found


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_overlaps_or_sticks_out(opened: dict[str, Any], language: str) -> None:
    page = opened[language]
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
        for name in ("overlaps", "labels", "beyond"):
            assert probe(page, name) == [], (width, name)


def test_the_title_of_a_wide_table_is_read_without_scrolling(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 900})
    ends = page.eval_on_selector_all(
        "caption:not(.hidden)",
        """captions => captions.map(caption => {
        const range = document.createRange();
        range.selectNodeContents(caption);
        return range.getBoundingClientRect().right;
    })""",
    )

    assert len(ends) >= 4
    assert max(ends) <= 390


def test_text_can_be_read_in_light_and_dark(page: Any) -> None:
    for scheme, paper in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 24, 28)")):
        page.emulate_media(color_scheme=scheme)

        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
        assert probe(page, "pale") == []


def test_one_click_finds_the_slowest_token_and_says_what_it_waited_for(page: Any) -> None:
    page.click("#whole")
    whole = state(page)
    page.click("#faster")
    page.click("#faster")
    assert state(page)["rank"] == 2
    page.click("#slowest")
    found = state(page)
    slowest = page.evaluate("JSON.parse(document.getElementById('data').textContent).runs['equal.legacy'].slow[0]")

    assert found["rank"] == 0
    assert whole["from"] == 0 < found["from"] < slowest["start"] < slowest["end"] < found["until"] < whole["until"]
    text = page.inner_text("#picked")
    assert page.text_content("[role=status]") == f"{slowest['title']}. {slowest['said']}"
    assert slowest["title"] in text
    assert slowest["total"] in text
    assert all(part["what"] in text and part["ms"] in text for part in slowest["parts"])


def test_the_timeline_zooms_and_moves(page: Any) -> None:
    start = length(page)
    page.click("#zoom-in")
    near = state(page)
    assert length(page) == pytest.approx(start / 2)
    page.focus("#view")
    page.keyboard.press("ArrowRight")
    assert state(page)["from"] > near["from"]
    page.keyboard.press("-")
    assert length(page) == pytest.approx(start)
    page.keyboard.press("0")
    assert state(page)["from"] == 0
    page.keyboard.press("s")
    before, box = state(page), page.locator("#view").bounding_box()
    page.mouse.move(box["x"] + 500, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 20, steps=5)
    page.mouse.up()
    assert state(page)["from"] > before["from"]


def test_a_call_is_picked_by_key_and_by_click(page: Any) -> None:
    page.focus("#view")
    page.keyboard.press("]")
    first = state(page)["chosen"]
    page.keyboard.press("]")
    assert state(page)["chosen"] > first >= 0
    assert "Called at" in page.inner_text("#picked")

    page.click("#slowest")
    box = page.locator("#view").bounding_box()
    for x in range(140, 1100, 60):
        page.mouse.click(box["x"] + x, box["y"] + 22)
        if state(page)["chosen"] >= 0:
            break
    assert state(page)["chosen"] >= 0
    assert "core 0" in page.inner_text("#picked h4")


def test_another_run_can_be_chosen_and_a_row_shown(opened: dict[str, Any]) -> None:
    page = opened["zh"]
    page.select_option("#which", "uneven.high")
    page.wait_for_selector("#timeline[data-run='uneven.high']")
    assert page.locator(".look:visible").count() == 1
    page.locator(".look:visible .show").nth(3).click()

    assert state(page)["rank"] == 3
    assert page.evaluate("document.activeElement.id") == "view"


def test_the_keyboard_reaches_the_controls_and_shows_where_it_is(page: Any) -> None:
    page.focus("#which")
    reached = []
    for _ in range(7):
        page.keyboard.press("Tab")
        where = page.evaluate("[document.activeElement.id, getComputedStyle(document.activeElement).outlineStyle]")
        reached.append(tuple(where))

    names = ["slowest", "slower", "faster", "zoom-in", "zoom-out", "whole", "view"]
    assert [name for name, _ in reached] == names
    assert all(outline != "none" for _, outline in reached)


def test_it_prints(page: Any) -> None:
    page.emulate_media(color_scheme="dark")
    assert page.pdf(format="A4").startswith(b"%PDF")
    assert page.evaluate("document.documentElement.dataset.theme") is None
    page.emulate_media(media="print")

    assert page.locator(".tools").is_hidden()
    assert page.locator("#decision table").first.is_visible()


def test_without_script_all_but_the_timeline_is_there(browser: Any, pages: dict[str, Path]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages["en"].as_uri())

    assert page.locator(".look:visible").count() == 4
    assert "needs JavaScript" in page.inner_text("#timeline")
    context.close()


def test_the_probes_see_what_they_look_for(browser: Any, pages: dict[str, Path]) -> None:
    page = browser.new_page()
    page.goto(pages["en"].as_uri())
    page.evaluate(
        "document.querySelector('h2').style.marginBottom = '-30px';"
        "document.querySelector('.x-ticks').lastElementChild.style.left = '4%';"
        "document.querySelector('.x-ticks').firstElementChild.style.left = '3%';"
        "document.querySelector('h1').style.cssText = 'width: 3000px; color: #999'"
    )

    assert [name for name in ("overlaps", "labels", "beyond", "pale") if not probe(page, name)] == []
    page.close()
