"""Every word of the report, by key, in each language it can be written in.

The words stand in ``words/LANGUAGE.toml``. What comes from a scenario file or is said about a run (titles, notes,
reasons) is quoted as it is, in English.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

from htpsim.errors import HtpsimError, unknown_name

LANGUAGES: Final = ("en", "zh")


class Wording:
    """The words of one language.

    >>> Wording("en")("memory.level", limit="3 GiB")
    'limit 3 GiB'
    """

    def __init__(self, language: str) -> None:
        if language not in LANGUAGES:
            raise HtpsimError(unknown_name("language", language, LANGUAGES))
        self.language = language
        self.words = catalogue(language)

    def __call__(self, key: str, **values: object) -> str:
        """Return the words of a key, with values put in."""
        return self.words[key].format(**values) if values else self.words[key]

    def name(self, group: str, text: str) -> str:
        """Return the words for a label of the other reports; the label itself where the group has none.

        >>> Wording("en").name("row", "tokens/s"), Wording("en").name("row", "camera [ms]")
        ('tokens/s', 'camera [ms]')
        """
        return self.words.get(f"{group}.{text}", text)

    def group(self, group: str) -> dict[str, str]:
        """Return the words of a group by the rest of their key."""
        start = f"{group}."
        return {key[len(start) :]: text for key, text in self.words.items() if key.startswith(start)}


def catalogue(language: str) -> dict[str, str]:
    """Return the words of a language by dotted key."""
    text = resources.files("htpsim.report.html").joinpath("words", f"{language}.toml").read_text(encoding="utf-8")
    return dict(_flat(tomllib.loads(text), ""))


def _flat(tree: Mapping[str, Any], prefix: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in tree.items():
        found += _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else [(prefix + key, value)]
    return found
