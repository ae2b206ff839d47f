"""Each known fault F01 to F32 has its test, which says what the fault is and where it was reported."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent


def test_every_fault_has_a_test_that_says_what_it_is() -> None:
    told: dict[str, str] = {}
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and (found := re.match(r"test_(f\d\d)_", node.name)):
                told[found[1]] = told.get(found[1], "") + (ast.get_docstring(node) or "")

    assert sorted(told) == [f"f{number:02}" for number in range(1, 33)]
    assert [
        name for name, words in told.items() if not re.search(r"https://github\.com/[\w.-]+/[\w.-]+/\w+", words)
    ] == []
