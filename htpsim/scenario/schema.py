"""The JSON Schema of scenario files, for editors: the generated models, loosened to what an author may write.

The models describe a scenario after everything has been applied. In a file any value may also carry its source, any
key may be left to a preset or to ``extends``, a list may be spread over a ``count``, and a list may be patched.
"""

from __future__ import annotations

from typing import Any

from htpsim.scenario.keys import NAMED_LISTS, Key, Shape, keys_of
from htpsim.scenario.outline import PARTS
from htpsim.scenario.quantities import quantity_schema
from htpsim.scenario.sourced import MARKS
from htpsim.scenario.tables import NONE, SPEC_OF, document
from htpsim.spec import Arrivals, Device, Model

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_TEXT: dict[str, Any] = {"type": "string"}
_UNITS = {"ns": "time", "bytes": "size", "bytes_per_s": "rate"}
SPREAD = frozenset({Arrivals, *NAMED_LISTS.values()})
"""Tables whose keys may hold a list, one value for each of a count."""
EXTRA_KEYS: dict[type, dict[str, str]] = {
    Device: {
        "preset": "a device preset by name, or a .toml file, whose values these overlay",
        "chip": "which chip the figures are of; chips are never mixed",
        "htp_backend_ext": "a htp_backend_ext_config.json that states architecture and cores",
    },
    Model: {
        "preset": "a model preset by name, or a .toml file, whose values these overlay",
        "chip": "which chip the figures are of; chips are never mixed",
        "genie_config": "a genie_config.json that states context length, loading and context binaries",
    },
}
"""Keys of a table that become no field: they bring values of other keys."""

TOP_TEXTS: dict[str, tuple[str, str]] = {
    "title": ("text", "what the scenario is called in tables"),
    "question": ("text", "what the scenario is to answer, in one line"),
    "extends": ("text", "a .toml file, or the name of a shipped scenario, that this one builds on"),
    "variants": ("table of overlays by name", "what `htpsim compare` sets side by side; the first is compared with"),
    "cases": ("table of overlays by name", "circumstances under which all variants are compared"),
    "assumptions": ("table of tables of overlays", "open questions by name, each with its options by name"),
}
"""What stands at the top of a file beside the simulated tables: what it holds, and what that is. An overlay and an
assumption have a ``title`` and a ``text`` of their own."""


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a scenario file.

    >>> json_schema()["properties"]["question"]["type"]
    'string'
    """
    made = document().model_json_schema()
    defs: dict[str, Any] = {_UNITS[unit]: quantity_schema(unit) for unit in _UNITS}
    defs |= {name: _shortened(schema) for name, schema in made["$defs"].items() if not name.startswith("Unknown")}
    tables = [*SPEC_OF.values(), Model, Arrivals, *dict.fromkeys(NAMED_LISTS.values())]
    for spec in tables:
        defs[spec.__name__] = _table(spec, defs[spec.__name__])
    for spec in dict.fromkeys(NAMED_LISTS.values()):
        defs[f"{spec.__name__}Patch"] = _patch(spec, defs[spec.__name__])
    parts = {name: _ref(SPEC_OF[name]) for name in SPEC_OF}
    parts["models"] = {"type": "object", "additionalProperties": _ref(Model)}
    parts |= {name: _list(NAMED_LISTS[name]) for name in PARTS if name in NAMED_LISTS}
    defs["Overlay"] = _closed({"title": _TEXT, "text": _TEXT} | parts)
    overlay = {"$ref": "#/$defs/Overlay"}
    options = {"type": "object", "properties": {"title": _TEXT, "text": _TEXT}, "additionalProperties": overlay}
    top: dict[str, Any] = {
        "title": _TEXT,
        "question": _TEXT | {"description": TOP_TEXTS["question"][1]},
        "extends": _TEXT | {"description": TOP_TEXTS["extends"][1]},
    }
    named = {"type": "object", "additionalProperties": overlay}
    top |= {"variants": named, "cases": named, "assumptions": {"type": "object", "additionalProperties": options}}
    return {"$schema": DIALECT, "title": "htpsim scenario"} | _closed(top | parts) | {"$defs": defs}


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _ref(spec: type) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{spec.__name__}"}


def _list(spec: type) -> dict[str, Any]:
    return {"anyOf": [{"type": "array", "items": _ref(spec)}, {"$ref": f"#/$defs/{spec.__name__}Patch"}]}


def _shortened(schema: Any) -> Any:
    """Return a schema with quantities by reference, `oneOf` as `anyOf`, and null as the word that a file writes."""
    if isinstance(schema, list):
        kept = [inner for inner in schema if not (isinstance(inner, dict) and "Unknown" in str(inner.get("$ref")))]
        return [_shortened(inner) for inner in kept]
    if not isinstance(schema, dict):
        return schema
    for unit, name in _UNITS.items():
        if schema.get("anyOf") == quantity_schema(unit)["anyOf"]:
            return {"$ref": f"#/$defs/{name}"} | {
                key: schema[key] for key in ("description", "default") if key in schema
            }
    if schema == {"type": "null"}:
        return {"const": NONE}
    renamed = {"anyOf" if key == "oneOf" else key: inner for key, inner in schema.items() if key != "discriminator"}
    return {key: _shortened(inner) for key, inner in renamed.items() if not (key == "default" and inner is None)}


def _table(spec: type, schema: dict[str, Any]) -> dict[str, Any]:
    properties = {
        key.key: _property(key, schema["properties"][key.key], spread=spec in SPREAD) for key in keys_of(spec).values()
    }
    properties |= {name: _TEXT | {"description": text} for name, text in EXTRA_KEYS.get(spec, {}).items()}
    if spec in NAMED_LISTS.values():
        properties["count"] = {"type": "integer", "minimum": 1, "description": "make this many, numbered from 0"}
    return {"title": schema["title"]} | _closed(properties)


def _property(key: Key, schema: dict[str, Any], spread: bool) -> dict[str, Any]:
    """Return what may stand for one key: its value, the value with its source, or one value for each of a count."""
    if key.shape is Shape.TABLES:
        return _list(key.type)
    if key.shape is Shape.TABLE:
        return _ref(key.type)
    about = {name: schema[name] for name in ("description", "default") if name in schema and schema[name] is not None}
    value = {name: inner for name, inner in schema.items() if name not in {"description", "default", "title"}}
    described = {"description": key.text} if key.text else {}
    forms = [value, _sourced(value)]
    if spread and key.shape in {Shape.SCALAR, Shape.DISTRIBUTION, Shape.REFERENCE}:
        each = {"type": "array", "items": value}
        forms += [each, _sourced(each)]
    return about | described | {"anyOf": forms}


def _sourced(value: dict[str, Any]) -> dict[str, Any]:
    source = {"type": "string", "minLength": 1}
    return _closed({"value": value, "source": source, "mark": {"enum": list(MARKS)}}) | {
        "required": ["value", "source", "mark"]
    }


def _patch(spec: type, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the table that changes a list: plain keys for all, and tables by name."""
    return {"type": "object", "properties": schema["properties"], "additionalProperties": _ref(spec)}
