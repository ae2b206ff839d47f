"""Machine code of the loop: kept in files, and made callable from them without Numba, which takes a second to import.

A file is written at once or not at all. It says for which processor it is, by what name the code is called, and what
its digest is; one for another processor, or a damaged one, is passed over, so that the code is compiled anew. So is one
that somebody else may have written: what is in it would be executed.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

_I64: Final = ctypes.c_int64
_CALL: Final = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(_I64), ctypes.POINTER(ctypes.c_void_p), _I64, _I64, _I64)
"""How Numba lets compiled code be called: it returns a status, and where the results lie is told first."""


class Stopped(Exception):
    """A user's policy stopped the run: it divided by nothing, or asked for an account that there is not."""


@lru_cache(maxsize=1)
def processor() -> str:
    """Return what code is compiled for: this processor."""
    import llvmlite.binding as llvm

    return f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


def write_code(path: Path, name: str, code: bytes) -> None:
    """Keep an object file, in which `name` is called, for other processes."""
    told = {"processor": processor(), "name": name, "sha256": hashlib.sha256(code).hexdigest()}
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps(told).encode() + b"\n" + code)
        Path(temporary).replace(path)
    except BaseException:  # also an interrupt: nobody else would ever remove it
        Path(temporary).unlink(missing_ok=True)
        raise


def read_code(path: Path) -> tuple[str, bytes] | None:
    """Return the name and the object file that were kept, or None where there is none for this processor."""
    try:
        with path.open("rb") as file:
            if not _is_ours(os.fstat(file.fileno())):
                return None
            told, _, code = file.read().partition(b"\n")
        header = json.loads(told)
        sound = header["processor"] == processor() and header["sha256"] == hashlib.sha256(code).hexdigest()
        return (header["name"], code) if sound else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_ours(status: os.stat_result) -> bool:
    """Tell whether only this user, or the administrator, can have written a file; asked of the file that is open."""
    if not hasattr(os, "getuid"):  # Windows: a user's folders are their own
        return True
    return status.st_uid in (0, os.getuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def callable_of(name: str, code: bytes) -> Callable[[int, int, int], int]:
    """Return the function `name` of an object file; while it runs, it holds no lock of the interpreter."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine()
    engine: Any = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    call = _CALL(engine.get_function_address(name))

    def enter(world: int, what: int, j: int) -> int:
        result, fault = _I64(), ctypes.c_void_p()
        if call(ctypes.byref(result), ctypes.byref(fault), world, what, j):
            raise Stopped
        return result.value

    enter.engine = engine  # type: ignore[attr-defined]  # which owns the code
    return enter
