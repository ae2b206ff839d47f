"""The reference of scenario files: every key, what it holds, its default, its range, its mark, where it may stand.

Made from the dataclasses of the specification, as the page on the model is; a test holds the stored page to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Final

from htpsim.scenario.distributions import Profile
from htpsim.scenario.keys import NAMED_LISTS, Key, Shape, keys_of, words_of
from htpsim.scenario.modelpage import SECTIONS, written
from htpsim.scenario.overlay import DEFAULT_NAMES
from htpsim.scenario.quantities import EXPECTED, write
from htpsim.scenario.schema import EXTRA_KEYS, SPREAD, TOP_TEXTS
from htpsim.sched.policies import POLICIES
from htpsim.spec import Model, describe
from htpsim.spec.fielddocs import field_docs
from htpsim.spec.origins import ORIGINS
from htpsim.spec.ranges import RANGES, WORDS, Range

_OPEN: Final = {
    "Guard.policy": f"{', '.join(POLICIES)}, or module:Class",
    "Model.placement": "by-instance, least-loaded, or a core number",
    "Instance.stale_handle_of": "the name of an instance, or none",
}
"""Values of a parameter that takes some words, and others besides."""
_NUMBERED: Final = {NAMED_LISTS[name]: default for name, default in DEFAULT_NAMES.items()}

PLACES: Final = {
    "device": "once in a file; in any overlay",
    "guard": "once in a file; in any overlay",
    "registry": "once in a file; in any overlay",
    "runtime": "once in a file; in any overlay",
    "run": "once in a file; in any overlay",
    "models.NAME": "once for each model; in any overlay",
    "models.NAME.contexts": "a list in a model, or a table that changes such a list",
    "models.NAME.graphs, prefill, decode": "lists in a model, or tables that change such a list",
    "instances": "a list in a file, `[[instances]]`; in an overlay a table that changes it, `[cases.NAME.instances]`",
    "clients": "a list in a file, `[[clients]]`; in an overlay a table that changes it, `[cases.NAME.clients]`",
    "arrivals": "in an instance or a client: `arrivals = { ... }`",
}
"""Table of a file -> where it may stand."""

DESCRIBED: Final = {
    f"{spec.__name__}.{f.name}": describe(spec, f.name)
    for _, spec in SECTIONS
    for f in fields(spec)
    if "param" in f.metadata
}
"""Class and field -> the facts about the parameter."""

_HEAD: Final = """\
# Scenario files: every key

This page is written by the code (`htpsim.scenario.keyspage`); a test holds it to that.
What the rules mean, and how they meet, is told in [the model](../model.md).

## Values

| kind | written as |
| --- | --- |
{kinds}

A value may say where it comes from: `{{ value = "161ms", source = "my log", mark = "measured" }}`, with mark measured,
derived or assumed. The mark in the tables below is what the *rule and its default* rest on: seed, doc, measured,
assumed, or choice, which is yours to make. `none` switches off what can be switched off.

A distribution is a plain value, which is constant, or a table: `{{ kind = "exponential", mean = ... }}`,
`{{ kind = "lognormal", mean = ..., cv = 0 to 10 }}`, `{{ low = ..., high = ... }}`, `{{ sample = [...] }}`,
`{{ kind = "erlang", mean = ..., stages = 1 or more }}`. A service time may be read from a file:

| key | meaning |
| --- | --- |
{profile}

*Spread*: where a table has a `count`, such a key may hold a list, one value for each.
An *overlay* is a table under `variants.NAME`, `cases.NAME` or `assumptions.NAME.OPTION`; it may hold every table
below, and changes only the keys that it names. *Varied* are the values that `htpsim sensitivity` tries.

## The top of a file

| key | holds | meaning |
| --- | --- | --- |
{top}
"""


def page() -> str:
    """Return the whole page.

    >>> page().splitlines()[0]
    '# Scenario files: every key'
    """
    kinds = "\n".join(f"| {name} | {text} |" for name, text in _kinds())
    profile = "\n".join(f"| `{key}` | {one.description} |" for key, one in Profile.model_fields.items())
    top = "\n".join(f"| `{key}` | {holds} | {text} |" for key, (holds, text) in TOP_TEXTS.items())
    parts = [_HEAD.format(kinds=kinds, profile=profile, top=top)]
    for section, spec in SECTIONS:
        parts += [f"## [{section}]", "", f"Stands: {PLACES[section]}.", "", *_rows(spec), ""]
    return "\n".join(parts).rstrip() + "\n"


def _kinds() -> Iterator[tuple[str, str]]:
    yield "time", EXPECTED["ns"]
    yield "size", EXPECTED["bytes"]
    yield "rate", EXPECTED["bytes_per_s"]
    yield "number", EXPECTED[""]
    yield "share", "a number such as 0.8"
    yield "switch", "true or false"


def _rows(spec: type) -> Iterator[str]:
    yield from ("| key | holds | default | range | mark | meaning | why this default |", "| --- " * 7 + "|")
    for key in keys_of(spec).values():
        name = f"{spec.__name__}.{key.field}"
        mark = DESCRIBED[name].mark if name in DESCRIBED else "choice"
        text = key.text or sentence(field_docs(spec).get(key.field, ""))
        cells = (f"`{key.key}`", holds(key, spec), _default(key, spec), values(key, name), mark, text)
        yield "| " + " | ".join(cells) + f" | {ORIGINS.get(name, '')} |"
    for extra, text in EXTRA_KEYS.get(spec, {}).items():
        yield f"| `{extra}` | text | none | | choice | {text} | |"
    if spec in NAMED_LISTS.values():
        yield "| `count` | number | `1` | from 1 | choice | make this many, numbered from 0 | |"


def holds(key: Key, spec: type) -> str:
    """Return what kind of value a key holds, and whether it may be a list over a count."""
    kinds = {"ns": "time", "bytes": "size", "bytes_per_s": "rate", "": "number"}
    scalar = {int: kinds[key.unit], float: "share", bool: "switch"}.get(
        key.type, "word" if words_of(key.type) else "text"
    )
    told = {
        Shape.SCALAR: scalar,
        Shape.DISTRIBUTION: f"distribution of {'times' if key.unit else 'numbers'}",
        Shape.TABLE: f"table [{key.key}]",
        Shape.TABLES: "list of tables",
        Shape.VALUES: f"list of {scalar}s",
        Shape.REFERENCE: "name of a model",
        Shape.PARAMETERS: "table of the policy's parameters",
    }[key.shape]
    spread = spec in SPREAD and key.shape in {Shape.SCALAR, Shape.DISTRIBUTION, Shape.REFERENCE}
    return told + (", spread" if spread and key.key != "name" else "")


def sentence(text: str) -> str:
    """Return the text below a field as a cell has it: no capital, no full stop.

    >>> sentence("Its name in reports."), sentence("ViT of it.")
    ('its name in reports', 'ViT of it')
    """
    word = text.partition(" ")[0]
    ordinary = len(word) == 1 or word[1:].islower()
    return (text[:1].lower() + text[1:] if ordinary else text).removesuffix(".")


def _default(key: Key, spec: type) -> str:
    if key.key == "name" and spec is Model:
        return "NAME of the table"
    if key.key == "name" and spec in _NUMBERED:
        return f"`{_NUMBERED[spec]}`, numbered"
    if key.required:
        return "required"
    if key.shape is Shape.TABLE:
        return "its defaults"
    return f"`{written(key)}`"


def values(key: Key, name: str) -> str:
    """Return the values that a key may take, where there is more to say than its kind does.

    >>> from htpsim.spec import Device
    >>> values(keys_of(Device)["pge_rate"], "Device.pge_rate"), values(keys_of(Device)["cores"], "Device.cores")
    ('above 0, to 1; varied: 0.5, 0.7, 1.0', 'from 1')
    """
    tried = "" if name == "Model.placement" else _varied(key, name)
    return "; ".join(filter(None, (_allowed(key, name), tried and f"varied: {tried}")))


def _varied(key: Key, name: str) -> str:
    """Return the values that `htpsim sensitivity` tries, where they are not all there are."""
    described = DESCRIBED.get(name)
    tried = described.vary if described else ()
    if not tried or set(tried) >= set(words_of(key.type)) != set() or key.type is bool:
        return ""
    return ", ".join(str(write(one, key.unit)) if isinstance(one, int) else str(one) for one in tried)


def _allowed(key: Key, name: str) -> str:
    if name in _OPEN:
        return _OPEN[name]
    words = WORDS.get(name) or words_of(key.type)
    if words:
        told = ", ".join(words)
    elif key.type in {int, float} and key.shape in {Shape.SCALAR, Shape.VALUES}:
        told = _range(RANGES.get(name, Range()), key.unit)
    else:
        return ""
    return told + (", or none" if key.nullable else "")


def _range(allowed: Range, unit: str) -> str:
    if allowed.least is None:
        return "any"
    least = f"{'above' if allowed.above else 'from'} {write(allowed.least, unit)}"
    return least if allowed.most is None else f"{least}{',' * allowed.above} to {write(allowed.most, unit)}"
