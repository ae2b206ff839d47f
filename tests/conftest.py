"""What every test shares: how hard hypothesis tries, plots without a screen, a browser, the count of mutated files."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Must be set before matplotlib is first imported by any test.
os.environ.setdefault("MPLBACKEND", "Agg")

# No deadline anywhere: a busy machine is not a defect of the code under test.
settings.register_profile("default", deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
# Continuous integration repeats itself exactly; new cases are looked for at a desk, and by `make verify`.
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None, print_blob=True)
settings.register_profile("verify", settings.get_profile("default"), max_examples=1_000, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

MUTANTS = "mutants of "


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Start a headless browser for the tests that look at a page; without one they are skipped."""
    from htpsim.cli.doctor import BROWSERS

    playwright = pytest.importorskip("playwright.sync_api", reason="no browser test: Playwright is not installed")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser test: none of {', '.join(BROWSERS)} is installed (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield made
        made.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many mutants of which format the readers met, and what they made of them, whichever worker ran them."""
    found: dict[str, Counter[str]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            # What a test said stands in the reports of its teardown as well.
            said = report.user_properties if getattr(report, "when", "") == "call" else ()
            for name, counts in said:
                if str(name).startswith(MUTANTS):
                    found.setdefault(str(name), Counter()).update(counts)
    if not found:
        return
    terminalreporter.section("mutated files")
    for name in sorted(found):
        terminalreporter.write_line(f"{name}: {dict(sorted(found[name].items()))}")
    total = sum(counts["mutants"] for counts in found.values())
    terminalreporter.write_line(f"{total} mutants of {len(found)} formats")
