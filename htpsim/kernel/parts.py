"""Functions compiled as parts of one whole, which is optimised once and made executable once.

Numba optimises each function when it is compiled and once more within every function that calls it, and makes each
executable. With a hundred small rules, one deep in the other, that takes most of the time. A part is only translated;
the function that is called from outside takes in all parts that it reaches, hides them, so that LLVM may put each in
the place where it is called or drop it, and is then optimised.

Imported only where something is compiled: it imports Numba.
"""

# Numba types its own code in part only.
# mypy: disable-error-code="attr-defined, misc, no-untyped-call, untyped-decorator"

from __future__ import annotations

import types as python
from collections.abc import Iterator
from typing import Any

from numba.core import compiler, imputils, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.datamodel import models, register_default
from numba.core.registry import cpu_target
from numba.extending import typeof_impl


class PartLibrary(JITCodeLibrary):
    """The code of one part, as it was translated, and the libraries of what it calls."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave them as they are: the whole will be optimised."""

    def finalize(self) -> None:
        """Take note that nothing more comes."""
        self._raise_if_finalized()
        self._finalized = True

    def reached(self, found: dict[Any, None]) -> None:
        """Add this library and those that it calls to what was found."""
        if self not in found:
            found[self] = None
            for library in self._linking_libraries:
                if isinstance(library, PartLibrary):
                    library.reached(found)
                else:
                    found[library] = None

    def _get_module_for_linking(self) -> Any:
        """Return the code of this part and of all that it calls, for a function that is compiled by itself."""
        module = self._final_module.clone()
        _take_in(module, (self,))
        for function in _defined(module):
            function.linkage = "linkonce_odr"
        return module


class WholeLibrary(JITCodeLibrary):
    """A function that is called from outside, to be optimised with all parts that it reaches."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave them as they are: the whole will be optimised."""

    def object_file(self) -> bytes:
        """Return the machine code."""
        module = self._final_module
        own = {function.name for function in _defined(module)}
        _take_in(module, self._linking_libraries)
        for function in _defined(module):
            if function.name not in own:
                function.linkage = "internal"
        passes, builder = self._codegen._module_pass_manager()
        passes.run(module, builder)
        module.verify()
        made: bytes = self._codegen._tm.emit_object(module)
        return made


def _defined(module: Any) -> Iterator[Any]:
    """Yield the functions that a module defines."""
    return (function for function in module.functions if not function.is_declaration)


def _take_in(module: Any, libraries: Any) -> None:
    """Link the code of libraries, and of all parts that they reach, into a module, each once."""
    found: dict[Any, None] = {}
    for library in libraries:
        if isinstance(library, PartLibrary):
            library.reached(found)
        else:
            found[library] = None
    for library in found:
        if isinstance(library, PartLibrary):
            if library._final_module is not module:
                module.link_in(library._final_module, preserve=True)
        else:
            module.link_in(library._get_module_for_linking(), preserve=True)


def _translated(function: python.FunctionType, arguments: tuple[Any, ...], library: Any, *, inline: bool) -> Any:
    """Return what Numba makes of a function before it is optimised."""
    flags: Any = compiler.Flags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_rewrites = True
    flags.nrt = True
    flags.error_model = "numpy"
    flags.forceinline = inline
    typing, target = cpu_target.typing_context, cpu_target.target_context
    return compiler.compile_extra(typing, target, function, arguments, None, flags, {}, library=library)


@global_compiler_lock
def compile_whole(function: python.FunctionType, arguments: tuple[Any, ...]) -> tuple[str, bytes]:
    """Return the name by which a function is called, and the object file with it and all parts that it reaches."""
    cpu_target.typing_context.refresh()
    library = WholeLibrary(cpu_target.target_context.codegen(), function.__qualname__)
    found = _translated(function, arguments, library, inline=False)
    return found.fndesc.llvm_func_name, library.object_file()


class Part:
    """A function that becomes part of those that call it.

    Parameters
    ----------
    function : function
        Its text; what it calls among its globals are parts, or functions that Numba compiles by themselves.
    inline : bool
        Whether it is put into the place of each call, however often it is called.
    """

    def __init__(self, function: python.FunctionType, *, inline: bool) -> None:
        self.function = function
        self.inline = inline
        self.compiled: dict[tuple[Any, ...], Any] = {}

    def compile(self, arguments: tuple[Any, ...]) -> Any:
        """Return what the function is for arguments of some types."""
        found = self.compiled.get(arguments)
        if found is None:
            target = cpu_target.target_context
            library = PartLibrary(target.codegen(), self.function.__qualname__)
            found = _translated(self.function, arguments, library, inline=self.inline)
            found.library._ensure_finalized()
            target.insert_user_function((self, arguments), found.fndesc, [found.library])
            self.compiled[arguments] = found
        return found


class PartType(types.Callable, types.Opaque):
    """The type of one part."""

    def __init__(self, part: Part) -> None:
        self.part = part
        super().__init__(name=f"part.{part.function.__qualname__}.{id(part)}")

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """Type a call."""
        if kws:
            return None
        return self.part.compile(tuple(types.unliteral(a) for a in args)).signature

    def get_call_signatures(self) -> Any:
        """Return what it was compiled for."""
        return [found.signature for found in self.part.compiled.values()], True

    def get_impl_key(self, sig: Any) -> Any:
        """Return the key under which its code was registered."""
        return self.part, tuple(sig.args)


register_default(PartType)(models.OpaqueModel)


@typeof_impl.register(Part)
def _type_of_part(part: Part, context: Any) -> PartType:
    return PartType(part)


@imputils.lower_constant(PartType)
def _part_itself(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return context.get_dummy_value()
