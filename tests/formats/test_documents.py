"""JSON and YAML agree with the standard readers on what is right, and refuse the rest by line."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from htpsim.errors import FormatError
from htpsim.formats import jsontext, yamltext
from htpsim.formats.source import from_text
from htpsim.formats.tree import DEPTH_MAX, Node

numbers = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters="\ufeff"))
scalars = st.none() | st.booleans() | numbers | words
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4), max_leaves=20
)
layouts = st.sampled_from([None, 0, 1, "\t"])


def plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: plain(member) for key, member in node.value.items()}
    if isinstance(node.value, list):
        return [plain(item) for item in node.value]
    return node.value


def parse_json(text: str) -> Node:
    return jsontext.parse(from_text("a.json", text))


def parse_yaml(text: str) -> Node:
    return yamltext.parse(from_text("a.yaml", text))


@given(documents, layouts, st.booleans())
def test_json_is_read_as_the_standard_library_reads_it(document: Any, indent: Any, ascii_only: bool) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)

    assert plain(parse_json(text)) == json.loads(text)
    assert json.dumps(plain(parse_json(text))) == json.dumps(json.loads(text))


@given(documents)
def test_yaml_is_read_as_its_safe_loader_reads_it(document: Any) -> None:
    text = yaml.safe_dump(document, allow_unicode=True)
    expected = yaml.safe_load(text)

    assert json.dumps(plain(parse_yaml(text)), default=str) == json.dumps(expected, default=str)


@given(st.text(max_size=60))
def test_json_accepts_exactly_what_the_standard_library_does(text: str) -> None:
    """Save for what is refused on purpose: NaN, doubled keys, depth, lone surrogates."""

    def refuse_constant(name: str) -> None:
        raise ValueError(name)

    text = from_text("a", text).text
    try:
        expected = json.loads(text, parse_constant=refuse_constant)
    except ValueError:
        with pytest.raises(FormatError):
            parse_json(text)
    else:
        assert plain(parse_json(text)) == expected


def test_every_node_knows_its_line_and_place() -> None:
    text = '{\n "a": [\n  1,\n  {"b":\n "c"}]}'
    found = parse_json(text).members()["a"].items()[1].members()["b"]

    assert (found.value, found.line, found.where) == ("c", 5, "a[1].b")
    other = parse_yaml("a:\n- 1\n- b: c\n").members()["a"].items()[1].members()["b"]
    assert (other.value, other.line, other.where) == ("c", 3, "a[1].b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.json:1: got an empty file, expected a JSON document"),
        ('{"a": <SOC>}', "a.json:1:7: got '<SOC>}', expected a value; text stands in quotes, placeholders"),
        ('{"a": NaN}', "a.json:1:7: got 'NaN}', expected a finite number"),
        ('{"a": -Infinity}', "a.json:1:7: got '-Infinity}', expected a finite number"),
        ('{"a": 1e999}', "a.json:1:7: got '1e999}', expected a number below 1e308"),
        ('{"a": 01}', "a.json:1:7: got '01}', expected a value"),
        ('{"a": 1.}', "a.json:1:7: got '1.}', expected a value"),
        ("[" + "1" * 400 + "]", "expected a number of at most 300 digits"),
        ('{"a": 1,\n "a": 2}', "a.json:2:2: got a second key 'a' (the first is in line 1), expected each key once"),
        ('{"a": 1,}', "a.json:1:9: got '}', expected a key in quotes"),
        ("{a: 1}", "a.json:1:2: got 'a: 1}', expected a key in quotes"),
        ('{"a" 1}', "a.json:1:6: got '1}', expected ':' after 'a'"),
        ('{"a": 1 "b": 2}', "a.json:1:9: got '\"b\": 2}', expected ',' or '}'"),
        ("[1 2]", "a.json:1:4: got '2]', expected ',' or ']'"),
        ('{"a": {\n"b": 1', "got the end of the file, expected ',' or '}' for the bracket opened in line 1"),
        ("[1,\n[2,", "a.json:2:4: got the end of the file, expected a value"),
        ('{"a": "x\ny"}', "a.json:1:7: got '\"x', expected a string that ends in its own line"),
        ('{"a": "models\\part"}', "expected only the escapes of JSON; a backslash in a path is written twice"),
        (r'{"a": "\ud800"}', "expected both halves of a surrogate pair"),
        ("{} {}", "a.json:1:4: got '{}', expected the end of the file after the document"),
        ("// c\n{}", "a.json:1:1: got '// c', expected a value"),
    ],
)
def test_json_refusals_name_line_column_and_what_to_write(text: str, message: str) -> None:
    with pytest.raises(FormatError) as refusal:
        parse_json(text)

    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.yaml:1: got an empty file"),
        ("# only a comment", "a.yaml:1: got no document"),
        ("a: &x 1", "a.yaml:1: got the anchor &x, expected values written out"),
        ("a: 1\nb: *x", "a.yaml:2: got the alias *x, expected values written out"),
        ("a: !!python/object:os.system 1", "expected plain values without tags"),
        ("a: 1\na: 2", "a.yaml:2: got a second key 'a' (the first is in line 1)"),
        ("? [1, 2]\n: 3", "a.yaml:1: got a collection as a key"),
        ("a: 1\n---\nb: 2", "a.yaml:2: got a second document"),
        ("a: .nan", "expected a finite number"),
        ("a:\n  b: 1\n c: 2", "a.yaml:3: got no valid YAML"),
        ("a: [1, 2", "got no valid YAML"),
        ("a: 'x", "got no valid YAML"),
        ("a: \x01", "got no valid YAML"),
    ],
)
def test_yaml_refusals_name_the_line(text: str, message: str) -> None:
    with pytest.raises(FormatError) as refusal:
        parse_yaml(text)

    assert message in str(refusal.value)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_is_limited_not_crashed_into(opening: str) -> None:
    closing = "]" if opening == "[" else "}"
    allowed = opening * DEPTH_MAX + "1" + closing * DEPTH_MAX

    assert parse_json(allowed).value is not None
    assert parse_yaml(allowed).value is not None
    for parse in (parse_json, parse_yaml):
        with pytest.raises(FormatError, match=f"at most {DEPTH_MAX} levels"):
            parse(opening * (DEPTH_MAX + 2) + "1" + closing * (DEPTH_MAX + 2))
        with pytest.raises(FormatError, match="nesting"):
            parse(opening * 100_000)


def test_a_bomb_of_aliases_is_refused_at_its_first_anchor() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )

    with pytest.raises(FormatError, match=r"^a\.yaml:1: got the anchor &a"):
        parse_yaml(bomb)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda node: node.whole("text"), "a.json:1: got 'x' at text, expected a whole number"),
        (lambda node: node.whole("half"), "got 0.5 at half, expected a whole number"),
        (lambda node: node.whole("flag"), "got true at flag, expected a whole number"),
        (lambda node: node.number("flag"), "got true at flag, expected a number"),
        (lambda node: node.text("one"), "got 1 at one, expected text in quotes"),
        (lambda node: node.flag("half"), "got 0.5 at half, expected true or false"),
        (lambda node: node.flag("text"), "got 'x' at text, expected true or false"),
        (lambda node: node.scalar("list"), "got a list at list, expected a single value"),
        (lambda node: node.find("list", "deeper"), "got a list at list, expected an object"),
        (lambda node: node.find("text", "deeper"), "got 'x' at text, expected an object"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_by_its_place(ask: Any, message: str) -> None:
    node = parse_json('{"text": "x", "half": 0.5, "flag": true, "one": 1, "list": [], "nothing": null}')

    with pytest.raises(FormatError) as refusal:
        ask(node)

    assert message in str(refusal.value)


def test_null_and_absent_are_both_missing() -> None:
    node = parse_json('{"nothing": null, "zero": 0, "three": 3.0}')

    assert node.whole("nothing") is None
    assert node.whole("absent") is None
    assert node.find("nothing", "deeper") is None
    zero, three = node.whole("zero"), node.whole("three")
    assert zero is not None
    assert zero.value == 0
    assert three is not None
    assert repr(three.value) == "3"
