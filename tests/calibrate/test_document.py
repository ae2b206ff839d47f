"""The scenario as TOML: whatever stands in it reads back, and the same files give the same bytes."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from htpsim.experiments.calibrate import Leaf
from htpsim.experiments.calibrate.document import leaves, toml_text

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
SCALARS = st.integers(-(2**62), 2**62) | st.booleans() | TEXTS
LEAVES = st.builds(
    Leaf,
    value=SCALARS | st.fixed_dictionaries({"sample": st.lists(TEXTS, max_size=3)}),
    mark=st.sampled_from(["measured", "derived"]),
    source=TEXTS,
)
ROWS = st.lists(st.dictionaries(TEXTS, SCALARS | LEAVES, min_size=1, max_size=3), min_size=1, max_size=3)
TREES = st.dictionaries(
    TEXTS,
    st.recursive(SCALARS | LEAVES, lambda inner: st.dictionaries(TEXTS, inner | ROWS, max_size=3), max_leaves=8),
    max_size=4,
)


def plain(node: Any) -> Any:
    if isinstance(node, Leaf):
        return {"value": plain(node.value), "mark": node.mark, "source": node.source}
    if isinstance(node, dict):
        return {key: plain(value) for key, value in node.items()}
    return [plain(value) for value in node] if isinstance(node, list) else node


@given(TREES, st.lists(st.text(max_size=300), max_size=3))
def test_what_is_written_reads_back(tree: dict[str, Any], head: list[str]) -> None:
    assert tomllib.loads(toml_text(tree, head)) == plain(tree)


def test_leaves_are_named_by_the_tables_around_them() -> None:
    leaf = Leaf(value=1, mark="measured", source="a")
    tree = {"device": {"cores": leaf}, "instances": [{"name": "vlm", "weight": leaf}]}

    assert [key for key, _ in leaves(tree)] == ["device.cores", "instances.vlm.weight"]
