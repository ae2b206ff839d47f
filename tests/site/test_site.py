"""The documentation as a site: every page is in the navigation, every link leads somewhere, nothing is fetched."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CONFIG = ROOT / ".mkdocs.yml"
FETCHED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
slow = pytest.mark.slow


def in_navigation(node: Any) -> Iterator[str]:
    """Yield the pages that a part of the navigation names."""
    for item in node if isinstance(node, list) else [node]:
        if isinstance(item, dict):
            for inner in item.values():
                yield from in_navigation(inner)
        else:
            yield str(item)


def pages() -> set[str]:
    return {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}


def test_every_page_is_in_the_navigation_once() -> None:
    named = list(in_navigation(yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["nav"]))

    assert sorted(named) == sorted(pages()), "add the page to `nav` in .mkdocs.yml"


class Page(HTMLParser):
    """What a page of the site links to, fetches and can be linked to at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            if (tag, name) in FETCHED and value:
                self.fetched.append(value)
            elif (tag, name) == ("a", "href") and value:
                self.links.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as its readers would; a warning is an error."""
    pytest.importorskip("mkdocs", reason="no site: MkDocs is not installed (the extra docs)")
    pytest.importorskip("material", reason="no site: its theme is not installed (the extra docs)")
    target = tmp_path_factory.mktemp("site") / "built"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-f", str(CONFIG), "-d", str(target)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return target


@pytest.fixture(scope="module")
def built(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}


@slow
def test_every_page_is_built(site: Path, built: dict[Path, Page]) -> None:
    made = {path.relative_to(site).with_suffix(".md").as_posix() for path in built}

    assert {name.replace("README", "index") for name in pages()} <= made


@slow
def test_every_link_leads_somewhere(site: Path, built: dict[Path, Page]) -> None:
    broken = []
    for path, page in built.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (target in built and unquote(parts.fragment) not in built[target].anchors):
                broken.append(f"{path.relative_to(site)}: {link}")

    assert broken == []


@slow
def test_nothing_is_fetched_from_elsewhere(site: Path, built: dict[Path, Page]) -> None:
    fetched = [f"{path.name}: {link}" for path, page in built.items() for link in page.fetched if urlsplit(link).netloc]
    styles = [
        f"{path.name}: {found}"
        for path in site.rglob("*.css")
        for found in re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\"']*", path.read_text(encoding="utf-8"))
    ]

    assert fetched == []
    assert styles == []


class Quiet(SimpleHTTPRequestHandler):
    """A server that does not tell what it serves."""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.verify
@pytest.mark.parametrize("width", [360, 1280])
def test_a_browser_needs_nothing_else_and_finds_what_it_searches_for(browser: Any, address: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    elsewhere: list[str] = []
    page.on("request", lambda asked: None if asked.url.startswith((address, "data:")) else elsewhere.append(asked.url))
    page.on("console", lambda told: elsewhere.append(told.text) if told.type == "error" else None)
    for name in ("index.html", "reference/scenario.html", "zh/vit-migration.html"):
        page.goto(f"{address}/{name}")
        assert page.locator("h1").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.goto(f"{address}/index.html")
    if width > 1000:
        page.locator(".md-search__input").fill("slots_per")
        page.locator(".md-search-result__item").first.wait_for(timeout=20_000)
        found = page.locator(".md-search-result__link").evaluate_all("links => links.map(link => link.href)")
        assert any("reference/scenario.html" in link for link in found)
    page.close()

    assert elsewhere == []
