"""The page on the registry: every point says where it comes from, and every test it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from htpsim.invariants import RULES

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "registry-for-the-vit.md"
TEXT = PAGE.read_text(encoding="utf-8")
MARK = re.compile(r"\[(seed|doc|read|assumed)\]")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def sections() -> dict[str, str]:
    """Return the text of each section by its heading."""
    parts = re.split(r"^## (.+)\n", TEXT, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def points(section: str) -> list[str]:
    """Return the bullets and table rows of a section."""
    lines = [line for line in section.splitlines() if line.startswith(("- ", "| "))]
    return [line for line in lines if not line.startswith(("| what |", "| ---"))]


@cache
def defined_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


NUMBERED = {name: text for name, text in sections().items() if name[0].isdigit()}


@pytest.mark.parametrize(("path", "name"), sorted(set(NAMED.findall(TEXT))))
def test_a_test_that_is_named_exists(path: str, name: str) -> None:
    assert name.startswith("test_")
    assert name in defined_in(path)


def test_nothing_that_looks_like_a_test_is_left_unread() -> None:
    assert len(NAMED.findall(TEXT)) == TEXT.count("::test_")
    assert TEXT.count("tests/") == len(NAMED.findall(TEXT)) + TEXT.count("`tests/registry_doc/stand_in.py`")


@pytest.mark.parametrize("section", sorted(NUMBERED))
def test_every_point_has_one_mark_and_is_held_by_a_test(section: str) -> None:
    found = points(NUMBERED[section])

    assert found
    assert [point for point in found if len(MARK.findall(point)) != 1] == []
    assert [point for point in found if not NAMED.findall(point)] == []


def test_what_is_known_of_the_two_classes_is_no_assumption() -> None:
    known = points(sections()["What the two classes do today"])

    assert known
    assert all(len(MARK.findall(point)) == 1 and "[assumed]" not in point for point in known)


def test_every_test_of_this_folder_holds_a_point_or_guards_the_page() -> None:
    """A test that the page no longer needs is to go, or the page is to say what it holds."""
    own = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in Path(__file__).parent.glob("test_*.py")
        if path.name != Path(__file__).name
        for name in defined_in(path.relative_to(ROOT).as_posix())
        if name.startswith("test_")
    }
    unnamed = {name for path, name in own - set(NAMED.findall(TEXT))}

    assert unnamed == {
        "test_every_planted_fault_has_a_script",
        "test_two_users_of_the_same_share_one_key_and_one_copy",
        "test_a_user_that_leaves_takes_its_own_and_nothing_of_the_others",
    }


def test_the_number_of_planted_faults_is_as_said() -> None:
    tree = ast.parse((ROOT / "tests/registry_doc/test_stand_in.py").read_text(encoding="utf-8"))
    faulty = [node for node in tree.body if isinstance(node, ast.ClassDef) and ast.unparse(node.bases[0]) == "Runtime"]

    assert "get it wrong in eight ways" in TEXT
    assert len(faulty) == 8
    assert len((ROOT / "tests/registry_doc/stand_in.py").read_text(encoding="utf-8").splitlines()) < 200


def test_every_rule_that_is_named_exists() -> None:
    named = {name for name in re.findall(r"`([a-z]+(?:-[a-z]+)*)`", TEXT) if "-" in name or name == "references"}

    assert named >= {"memory-balance", "memory-in-use", "references"}
    assert named <= set(RULES)
