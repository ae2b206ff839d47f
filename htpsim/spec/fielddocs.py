"""What is written below each field of a class: its meaning, read from the source, for the pages of the reference."""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from types import MappingProxyType


@cache
def field_docs(cls: type) -> MappingProxyType[str, str]:
    """Return the text below each field of a class and of its bases, on one line; a field without one is left out.

    Raises
    ------
    OSError
        When the source of the class is not there.

    Examples
    --------
    >>> from htpsim.spec import Model
    >>> field_docs(Model)["name"]
    'What is loaded: two instances naming the same model share a copy where the registry lets them.'
    """
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("htpsim."):
            found |= _own(base)
    return MappingProxyType(found)


def _own(cls: type) -> dict[str, str]:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            text = below.value.value if isinstance(below.value, ast.Constant) else None
            if isinstance(text, str):
                found[field.target.id] = " ".join(text.split())
    return found
