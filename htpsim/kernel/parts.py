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
    """A function that is called from outside, with all parts that it reaches."""

    def _optimize_final_module(self) -> None:
        own = {function.name for function in _defined(self._final_module)}
        _take_in(self._final_module, self._parts)
        for function in _defined(self._final_module):
            if function.name not in own:
                function.linkage = "internal"
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def finalize(self) -> None:
        """Link, optimise and make executable."""
        self._parts = tuple(self._linking_libraries)
        self._linking_libraries = []
        super().finalize()


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


class WholeCompiler(compiler.Compiler):
    """Numba's compiler, for a function that is called from outside."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any) -> None:
        library = WholeLibrary(targetctx.codegen(), "whole")
        library.enable_object_caching()
        super().__init__(typingctx, targetctx, library, *rest)


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
            typing, target = cpu_target.typing_context, cpu_target.target_context
            flags: Any = compiler.Flags()
            flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_rewrites = True
            flags.nrt = True
            flags.error_model = "numpy"
            flags.forceinline = self.inline
            library = PartLibrary(target.codegen(), self.function.__qualname__)
            found = compiler.compile_extra(typing, target, self.function, arguments, None, flags, {}, library=library)
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
