"""The records of a trace file, whichever form it has: one dict a record, checked field by field against the schema.

The schema *is* the dataclasses of ``htpsim.invariants.trace``: a record's keys are their fields, without those that
have their default. Two keys are shorter: ``t`` for the time [ns] and ``id`` for the number of the graphExecute.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from htpsim.errors import nearest
from htpsim.formats.source import shown
from htpsim.invariants.trace import (
    KINDS,
    PATHS,
    REQUEST_KINDS,
    USE_KINDS,
    VERSION,
    Account,
    Call,
    DeviceFacts,
    Event,
    GuardFacts,
    MemoryEvent,
    Parts,
    RequestEvent,
    Trace,
    UseEvent,
)

LARGEST: Final = 2**62
MARK: Final = "htpsim_trace"
"""Key of the header that holds the version of the schema."""

Record = dict[str, Any]


class Wrong(Exception):
    """A record that does not fit: what is there, and what was expected. It becomes a FormatError with file and line."""

    def __init__(self, got: str, expected: str) -> None:
        super().__init__(got, expected)
        self.got = got
        self.expected = expected


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -LARGEST < value < LARGEST


def _text(value: object) -> bool:
    """Tell whether this is text that any file can hold: half of a surrogate pair is no character."""
    return isinstance(value, str) and (value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value))


_FITS: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = MappingProxyType(
    {
        "int": (_whole, "a whole number below 2^62"),
        "str": (_text, "text in quotes, of whole characters"),
        "bool": (lambda value: isinstance(value, bool), "true or false"),
        "list": (lambda value: isinstance(value, list) and all(map(_whole, value)), "a list of whole numbers"),
        "object": (lambda value: isinstance(value, dict), "an object"),
    }
)
_LEAST: Final[Mapping[str, int]] = MappingProxyType({"t": 0, "id": 0, "weight": 1, "slots": 1, "cores": 1, "bytes": 1})
"""Least value of a field; -1, which stands for what does not apply, where none is given."""


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """One key of a record."""

    kind: str
    """Key of _FITS."""
    required: bool = False
    words: tuple[str, ...] = ()
    """The words it may be; any, where there are none."""


def fields_of(spec: type[Any], **other: Field) -> dict[str, Field]:
    """Return the keys of a dataclass or named tuple of plain values, with `other` ones beside or instead.

    >>> fields_of(Account)["weight"]
    Field(kind='int', required=True, words=())
    """
    defaults = getattr(spec, "_field_defaults", None)
    if defaults is None:
        defaults = {f.name: f.default for f in dataclasses.fields(spec) if f.default is not dataclasses.MISSING}
    hints = {name: str(getattr(hint, "__forward_arg__", hint)) for name, hint in spec.__annotations__.items()}
    kinds = {name: hint.removesuffix(" | None") for name, hint in hints.items()}
    plain = {name: "list" if kind.startswith("tuple") else kind for name, kind in kinds.items()}
    made = {name: Field(kind, name not in defaults) for name, kind in plain.items() if kind in _FITS}
    return made | other


_EVENT: Final = {"ev": Field("str", True), "t": Field("int", True)}
_ID: Final = _EVENT | {"id": Field("int", True)}
_RETURN: Final = _ID | {"parts": Field("object")}


def _without(fields: dict[str, Field], *names: str) -> dict[str, Field]:
    return {name: field for name, field in fields.items() if name not in names}


_CALL: Final = _ID | _without(fields_of(Call, path=Field("str", words=PATHS)), "execute")
_REQUEST: Final = _EVENT | _without(fields_of(RequestEvent), "time_ns", "kind")
_MEMORY: Final = _EVENT | _without(fields_of(MemoryEvent, bytes=Field("int", True)), "time_ns", "delta_bytes")
_USE: Final = _EVENT | _without(fields_of(UseEvent), "time_ns", "kind")
_PARTS: Final = {name.removesuffix("_ns"): Field("int", True) for name in Parts._fields}
_ACCOUNT: Final = fields_of(Account)
_GUARD: Final = fields_of(
    GuardFacts,
    params=Field("object"),
    accounts=Field("object"),
    weight_sums=Field("object"),
    slots_per=Field("str", words=("process", "core")),
)
_DEVICE: Final = fields_of(DeviceFacts, limits=Field("object"), yield_rule=Field("str", words=("latency", "grid")))
_HEADER: Final = {
    MARK: Field("int", True),
    "clock": Field("str", words=("ns",)),
    "source": Field("str"),
    "engine": Field("str"),
    "replay": Field("str"),
    "end": Field("int"),
    "guard": Field("object"),
    "device": Field("object"),
}
EVENT_KINDS: Final = (*KINDS, *REQUEST_KINDS, "take", "free", *USE_KINDS)


def checked(record: object, fields: Mapping[str, Field], what: str) -> Record:
    """Return a record of the given keys, without those that are null.

    Raises
    ------
    Wrong
        For a key that is missing, unknown, or holds something else.

    Examples
    --------
    >>> checked({"process": 0, "handle": "vlm0", "weight": 4}, fields_of(Account), "an account")["weight"]
    4
    """
    if not isinstance(record, dict):
        raise Wrong(f"{shown(str(record))} for {what}", "an object")
    record = {key: value for key, value in record.items() if value is not None}
    for key, value in record.items():
        field = fields.get(key)
        if field is None:
            close = nearest(key, fields)
            raise Wrong(
                f"key {shown(key)} in {what}",
                f"one of {', '.join(fields)}" + (f"; did you mean '{close}'?" if close else ""),
            )
        _check_value(key, value, field)
    missing = [key for key, field in fields.items() if field.required and key not in record]
    if missing:
        raise Wrong(
            f"{what} without '{missing[0]}'", f"the keys {', '.join(k for k, f in fields.items() if f.required)}"
        )
    return record


def _check_value(key: str, value: Any, field: Field) -> None:
    fits, expected = _FITS[field.kind]
    if not fits(value):
        raise Wrong(f"{shown(str(value))} for '{key}'", expected)
    if field.words and value not in field.words:
        close = nearest(value, field.words)
        raise Wrong(
            f"{shown(value)} for '{key}'",
            f"one of {', '.join(field.words)}" + (f"; did you mean '{close}'?" if close else ""),
        )
    least = _LEAST.get(key, -1)
    if field.kind == "int" and value < least:
        raise Wrong(f"{value} for '{key}'", f"at least {least}")
    if field.kind == "list" and min(value, default=0) < 0:
        raise Wrong(f"{min(value)} in '{key}'", "at least 0")


class TraceBuilder:
    """Makes a trace of records, the header first."""

    def __init__(self, header: object) -> None:
        self.trace = read_header(header)

    def add(self, record: object) -> None:
        """Enter one record.

        Raises
        ------
        Wrong
            When it does not fit the schema, or what came before it.
        """
        kind = record.get("ev") if isinstance(record, dict) else None
        if not isinstance(record, dict) or not isinstance(kind, str):
            raise Wrong(shown(str(record)), "an object with 'ev' and 't'")
        if kind in KINDS:
            self._execute_event(kind, record)
        elif kind in REQUEST_KINDS:
            record = checked(record, _REQUEST, f"'{kind}'")
            self.trace.requests.append(RequestEvent(kind=kind, time_ns=record["t"], **_rest(record)))
        elif kind in ("take", "free"):
            record = checked(record, _MEMORY, f"'{kind}'")
            rest = _rest(record)
            count_bytes = rest.pop("bytes")
            delta_bytes = count_bytes if kind == "take" else -count_bytes
            self.trace.memory.append(MemoryEvent(time_ns=record["t"], delta_bytes=delta_bytes, **rest))
        elif kind in USE_KINDS:
            record = checked(record, _USE, f"'{kind}'")
            self.trace.uses.append(UseEvent(kind=kind, time_ns=record["t"], **_rest(record)))
        else:
            close = nearest(kind, EVENT_KINDS)
            hint = f"; did you mean '{close}'?" if close else ""
            raise Wrong(f"event {shown(str(kind))}", f"one of {', '.join(EVENT_KINDS)}{hint}")

    def _execute_event(self, kind: str, record: Record) -> None:
        trace = self.trace
        if kind == "call":
            record = checked(record, _CALL, "'call'")
            facts = _rest(record)
            number = facts.pop("id")
            if number in trace.calls:
                raise Wrong(f"a second call of graphExecute {number}", "each id once")
            trace.calls[number] = Call(execute=number, **facts | {"cores": tuple(facts.get("cores", ()))})
        else:
            record = checked(record, _RETURN if kind == "return" else _ID, f"'{kind}'")
            number = record["id"]
            if number not in trace.calls:
                raise Wrong(f"'{kind}' of graphExecute {number}, which was not called", "its 'call' before it")
        if "parts" in record:
            parts = checked(record["parts"], _PARTS, "'parts'")
            trace.parts[number] = Parts(**{f"{name}_ns": value for name, value in parts.items()})
        trace.events.append(Event(record["t"], kind, number))

    def finish(self) -> Trace:
        """Return the trace; records that were written out of order are put in order of time."""
        trace = self.trace
        for entries in (trace.events, trace.requests, trace.memory, trace.uses):
            entries.sort(key=lambda entry: entry.time_ns)
        return trace


def _rest(record: Record) -> Record:
    return {key: value for key, value in record.items() if key not in ("ev", "t")}


def read_header(header: object) -> Trace:
    """Return an empty trace with the facts of a header.

    Raises
    ------
    Wrong
        When it is none, or of another version.

    Examples
    --------
    >>> read_header({"htpsim_trace": 1, "guard": {"policy": "fifo", "slots": 2}}).guard.slots
    2
    """
    if not isinstance(header, dict) or MARK not in header:
        raise Wrong(shown(str(header)), f'a header such as {{"{MARK}": {VERSION}, "source": "my recorder"}}')
    if header[MARK] != VERSION or isinstance(header[MARK], bool):
        raise Wrong(f"version {shown(str(header[MARK]))} of the schema", f"version {VERSION}")
    header = checked(header, _HEADER, "the header")
    device = header.get("device")
    return Trace(
        source=header.get("source", ""),
        engine=header.get("engine", ""),
        replay=header.get("replay", ""),
        end_ns=header.get("end"),
        guard=_guard_facts(header.get("guard", {})),
        device=None if device is None else _device_facts(device),
    )


def _guard_facts(record: object) -> GuardFacts:
    facts = dict(record) if isinstance(record, dict) else {}
    accounts, sums = facts.pop("accounts", []), facts.pop("weight_sums", [])
    facts = checked(facts, _GUARD, "'guard'")
    if not isinstance(accounts, list) or not isinstance(sums, list):
        raise Wrong("'accounts' or 'weight_sums' that is no list", "a list")
    for entry in sums:
        if not (isinstance(entry, list) and len(entry) == 3 and all(map(_whole, entry)) and entry[2] > 0):
            raise Wrong(f"{shown(str(entry))} in 'weight_sums'", "[process, core or -1, sum of weights]")
    return GuardFacts(
        **facts
        | {
            "params": _pairs(facts.get("params", {}), "params"),
            "accounts": tuple(Account(**checked(account, _ACCOUNT, "an account")) for account in accounts),
            "weight_sums": tuple((process, core, weights) for process, core, weights in sums),
        }
    )


def _device_facts(record: object) -> DeviceFacts:
    facts = checked(record, _DEVICE, "'device'")
    return DeviceFacts(**facts | {"limits": _pairs(facts.get("limits", {}), "limits")})


def _pairs(record: Mapping[str, Any], what: str) -> tuple[tuple[str, int], ...]:
    for name, value in record.items():
        if not _whole(value):
            raise Wrong(f"{shown(str(value))} for '{name}' in '{what}'", "a whole number below 2^62")
    return tuple(record.items())


def header_record(trace: Trace) -> Record:
    """Return the header of a trace; `read_header` reads it back.

    >>> header_record(Trace(source="demo"))
    {'htpsim_trace': 1, 'clock': 'ns', 'source': 'demo'}
    """
    header: Record = {MARK: VERSION, "clock": "ns"}
    for key, value in (("source", trace.source), ("engine", trace.engine), ("replay", trace.replay)):
        if value:
            header[key] = value
    if trace.end_ns is not None:
        header["end"] = trace.end_ns
    guard = _changed(trace.guard)
    if guard:
        if "params" in guard:
            guard["params"] = dict(trace.guard.params)
        if "accounts" in guard:
            guard["accounts"] = [account._asdict() for account in trace.guard.accounts]
        header["guard"] = guard
    if trace.device is not None:
        device = _changed(trace.device)
        header["device"] = device | ({"limits": dict(device["limits"])} if "limits" in device else {})
    return header


def _changed(facts: Any) -> Record:
    """Return the fields of a dataclass that do not have their default."""
    return {
        f.name: value for f in dataclasses.fields(facts) if (value := getattr(facts, f.name)) != f.default
    }  # fmt: skip


def records(trace: Trace) -> Iterator[Record]:
    """Yield the records of a trace after its header, in order of time; `TraceBuilder` reads them back."""
    entries: list[tuple[int, int, Record]] = []
    told: set[int] = set()
    for event in trace.events:
        record: Record = {"ev": event.kind, "t": event.time_ns, "id": event.execute}
        if event.kind == "call" and event.execute not in told:
            told.add(event.execute)
            facts = _changed(trace.calls[event.execute])
            record |= {
                key: list(value) if key == "cores" else value for key, value in facts.items() if key != "execute"
            }
        if event.kind == "return" and event.execute in trace.parts:
            parts = trace.parts[event.execute]
            record["parts"] = {
                name.removesuffix("_ns"): value for name, value in zip(parts._fields, parts, strict=True)
            }
        entries.append((event.time_ns, 1, record))
    for request in trace.requests:
        entries.append((request.time_ns, 0, _named("kind", request)))
    for change in trace.memory:
        record = _named("", change)
        delta_bytes = record.pop("delta_bytes")
        record |= {"ev": "take" if delta_bytes > 0 else "free", "bytes": abs(delta_bytes)}
        entries.append((change.time_ns, 0, record))
    for use in trace.uses:
        entries.append((use.time_ns, 0, _named("kind", use)))
    entries.sort(key=lambda entry: entry[:2])
    yield from (record for _, _, record in entries)


def _named(kind: str, event: RequestEvent | MemoryEvent | UseEvent) -> Record:
    """Return an event with its short keys, without what has its default."""
    values = event._asdict()
    record: Record = {"ev": values.pop(kind) if kind else "", "t": values.pop("time_ns")}
    return record | {key: value for key, value in values.items() if value != event._field_defaults.get(key)}
