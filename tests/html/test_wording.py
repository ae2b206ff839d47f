"""Both languages say the same things: the same keys, the same values put in, none missing, none left over."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

import htpsim.report.html
from htpsim.errors import HtpsimError
from htpsim.experiments.change import HEADLINES
from htpsim.report.blame import WORDS as CAUSES
from htpsim.report.decision import ROWS
from htpsim.report.decision import WORDS as ROWS_OF_WORDS
from htpsim.report.html.wording import LANGUAGES, Wording, catalogue
from htpsim.results.columns import PATHS, STAGES
from htpsim.spec import MARKS

FOLDER = Path(htpsim.report.html.__file__).parent
SOURCES = [*FOLDER.glob("*.py"), *FOLDER.glob("templates/*")]
GROUPS_BY_NAME = ("row", "metric", "measure", "way", "stage", "path", "cause", "per", "ledger", "mark", "script")
"""Groups whose keys are put together from data; each is tested for what the data can be."""


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None} | set(re.findall(r"\[(\w+)\]", text))


def test_both_languages_have_the_same_keys() -> None:
    assert list(catalogue("en")) == list(catalogue("zh"))


@pytest.mark.parametrize("key", [key for key in catalogue("en") if not key.startswith(("row.", "cause."))])
def test_both_languages_put_the_same_values_in(key: str) -> None:
    units = {"ms", "s"} if key == "slow.length" or "[ms]" in key else set()
    assert fields(catalogue("en")[key]) - units == fields(catalogue("zh")[key]) - units


def test_no_text_is_empty_but_where_there_is_nothing_to_say() -> None:
    for language in LANGUAGES:
        assert {key for key, text in catalogue(language).items() if not text} == {"shift.same", "shift.none"}


def test_every_key_that_is_asked_for_exists_and_every_key_is_asked_for() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    asked = set(re.findall(r"""\bt\(\s*f?["']([a-z_]+\.[a-z_-]+)["'][),\s]""", text))
    asked |= set(re.findall(r'"([a-z]+\.[a-z_-]+)" if ', text))
    asked |= set(re.findall(r' else "([a-z]+\.[a-z_-]+)"', text))
    prefixes = {p for p in re.findall(r"""["']([a-z]+\.[a-z_]*)["'] ~|f["']([a-z]+\.)\{""", text) for p in p if p}
    keys, asked = set(catalogue("en")), {key for key in asked if not key.endswith("_")}

    assert asked - keys == set()
    left = {k for k in keys - asked if not k.startswith((*prefixes, *(f"{group}." for group in GROUPS_BY_NAME)))}
    assert left == set()


def test_labels_of_the_terminal_have_words_and_are_the_same_in_english() -> None:
    words = catalogue("en")
    labels = {f"row.{label}" for label, _ in (*ROWS, *ROWS_OF_WORDS)}
    labels |= {f"metric.{label}" for label, _ in HEADLINES.values()} | {f"cause.{words}" for words in CAUSES.values()}

    assert {key: words.get(key) for key in labels} == {key: key.partition(".")[2] for key in labels}
    assert {key for key in words if key.startswith(("row.", "metric.", "cause."))} == labels


def test_every_name_of_the_data_has_words() -> None:
    needed = {f"stage.{s}" for s in STAGES} | {f"path.{p}" for p in PATHS} | {f"way.{p}" for p in PATHS}
    needed |= {f"mark.{m}" for m in MARKS} | {f"mark.means_{m}" for m in MARKS} | {"per.core", "per.process"}
    needed |= {f"ledger.{ledger}" for ledger in ("device", "host", "pd")}
    needed |= {f"because.{kind}" for kind in CAUSES if kind not in ("own", "host", "queue")}
    script = (FOLDER / "templates/report.js").read_text(encoding="utf-8")
    needed |= {f"script.{name}" for name in re.findall(r"\bwords\.(\w+)", script)}

    assert needed - set(catalogue("en")) == set()
    assert {k for k in catalogue("en") if k.startswith("script.")} == {k for k in needed if k.startswith("script.")}


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(HtpsimError, match="got 'zn', expected one of en, zh"):
        Wording("zn")
