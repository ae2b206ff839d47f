"""Record arrays as Numba sees them here: bare pointers with named fields, in place of Numba's own arrays.

Numba's arrays carry a reference count and seven numbers with them; passed from function to function, they cost more
than the rules do. These types are one pointer each. They own nothing and check nothing: who makes the arrays keeps
them, and the engine's own indices are right by construction. Only the accounts that a user's policy sees are checked.

Every field is declared to overlap no other (LLVM's type-based alias analysis), so that a value just read need not be
read again after another field was written.

Imported only where something is compiled: it imports Numba.
"""

# Numba types its own code in part only.
# mypy: disable-error-code="attr-defined, misc, no-untyped-call, override, untyped-decorator"

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.core.imputils import lower_builtin, lower_getattr_generic, lower_setattr_generic
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import intrinsic

ir = cgutils.ir
_I64 = ir.IntType(64)
_ROOT = "htpsim"


class Record(types.Type):
    """A record: int64 fields one behind the other, some of them fixed: code is compiled for their values."""

    def __init__(self, table: str, fields: tuple[str, ...], fixed: Mapping[str, int] | None = None) -> None:
        self.table = table
        self.places = {field: n for n, field in enumerate(fields)}
        self.fixed = dict(fixed or {})
        super().__init__(name=f"record.{table}.{sorted(self.fixed.items())}")


class Records(types.Type):
    """Records one behind the other; where it is checked, their number stands one record before the first."""

    def __init__(self, record: Record, checked: bool = False) -> None:
        self.record = record
        self.checked = checked
        super().__init__(name=f"records.{record.name}.{checked}")


class Several(types.Type):
    """Addresses of `Records` one behind the other."""

    def __init__(self, records: Records) -> None:
        self.records = records
        super().__init__(name=f"several.{records.name}")


class Integers(types.Type):
    """Integers one behind the other."""

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(name=f"integers.{table}")


class WorldType(types.Type):
    """Addresses of all tables of a run, by name."""

    def __init__(self, name: str, tables: dict[str, Any]) -> None:
        self.tables = tables
        self.places = {table: n for n, table in enumerate(tables)}
        super().__init__(name=f"world.{name}")


class _Pointer(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _I64.as_pointer())


for _kind in (Record, Records, Several, Integers, WorldType):
    register_default(_kind)(_Pointer)


def _apart(builder: Any, instruction: Any, name: str) -> Any:
    """Declare that what an instruction reads or writes overlaps nothing of another name."""
    module, zero = builder.module, ir.Constant(_I64, 0)
    root = module.add_metadata([ir.MetaDataString(module, _ROOT)])
    kind = module.add_metadata([ir.MetaDataString(module, name), root, zero])
    instruction.set_metadata("tbaa", module.add_metadata([kind, kind, zero]))
    return instruction


def _at(builder: Any, pointer: Any, place: Any) -> Any:
    """Return the pointer to a place, counted in integers."""
    if isinstance(place, int):
        place = ir.Constant(_I64, place)
    return builder.gep(pointer, [place], inbounds=True)


@infer_getattr
class _RecordFields(AttributeTemplate):
    key = Record

    def generic_resolve(self, record: Record, field: str) -> Any:
        """Type a field."""
        return types.int64 if field in record.places else None


@lower_getattr_generic(Record)
def _read_field(context: Any, builder: Any, kind: Record, value: Any, field: str) -> Any:
    if field in kind.fixed:
        return ir.Constant(_I64, kind.fixed[field])
    place = _at(builder, value, kind.places[field])
    return _apart(builder, builder.load(place), f"{kind.table}.{field}")


@lower_setattr_generic(Record)
def _write_field(context: Any, builder: Any, sig: Any, arguments: Any, field: str) -> None:
    kind = sig.args[0]
    if field in kind.fixed:
        return
    place = _at(builder, arguments[0], kind.places[field])
    _apart(builder, builder.store(arguments[1], place), f"{kind.table}.{field}")


@infer_getattr
class _WorldTables(AttributeTemplate):
    key = WorldType

    def generic_resolve(self, world: WorldType, table: str) -> Any:
        """Type a table."""
        return world.tables.get(table)


@lower_getattr_generic(WorldType)
def _read_table(context: Any, builder: Any, kind: WorldType, value: Any, table: str) -> Any:
    address = _apart(builder, builder.load(_at(builder, value, kind.places[table])), f"world.{table}")
    return builder.inttoptr(address, _I64.as_pointer())


@infer_global(operator.getitem)
class _Item(AbstractTemplate):
    def generic(self, arguments: Any, keywords: Any) -> Any:
        """Type an item."""
        table, index = arguments
        if isinstance(index, types.Integer):
            if isinstance(table, Records):
                return signature(table.record, table, types.int64)
            if isinstance(table, Several):
                return signature(table.records, table, types.int64)
            if isinstance(table, Integers):
                return signature(types.int64, table, types.int64)
        return None


@lower_builtin(operator.getitem, Records, types.int64)
def _record_at(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
    kind, (pointer, index) = sig.args[0], arguments
    size = ir.Constant(_I64, len(kind.record.places))
    if kind.checked:
        zero = ir.Constant(_I64, 0)
        count = builder.load(_at(builder, pointer, builder.neg(size)))
        index = builder.select(builder.icmp_signed("<", index, zero), builder.add(index, count), index)
        with builder.if_then(builder.icmp_unsigned(">=", index, count), likely=False):
            context.call_conv.return_user_exc(builder, IndexError, ("no such account",))
    return _at(builder, pointer, builder.mul(index, size))


@lower_builtin(operator.getitem, Several, types.int64)
def _records_at(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
    name = f"several.{sig.args[0].records.record.table}"
    address = _apart(builder, builder.load(_at(builder, *arguments)), name)
    return builder.inttoptr(address, _I64.as_pointer())


@lower_builtin(operator.getitem, Integers, types.int64)
def _integer_at(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
    return _apart(builder, builder.load(_at(builder, *arguments)), f"integers.{sig.args[0].table}")


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, arguments: Any, keywords: Any) -> Any:
        """Type the writing of an integer."""
        if isinstance(arguments[0], Integers) and isinstance(arguments[1], types.Integer):
            return signature(types.none, arguments[0], types.int64, types.int64)
        return None


@lower_builtin(operator.setitem, Integers, types.int64, types.int64)
def _set_integer(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
    pointer, index, value = arguments
    _apart(builder, builder.store(value, _at(builder, pointer, index)), f"integers.{sig.args[0].table}")
    return context.get_dummy_value()


def world_at(world: WorldType) -> Any:
    """Return the compiled function that takes an address for a world of this type."""

    @intrinsic
    def at(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], _I64.as_pointer())

        return signature(world, types.int64), generate

    return at


@intrinsic
def fetch(typing_context: Any, table: Any, place: Any) -> Any:
    """Have a place of a list of integers fetched into the nearest cache."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        flag = ir.IntType(32)
        pointer = builder.bitcast(_at(builder, *arguments), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, flag, flag, flag])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(prefetch, [pointer, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return signature(types.none, table, types.int64), generate
