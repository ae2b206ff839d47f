"""One model loaded into ONNX Runtime, set up for being measured rather than for being fast.

========================  ==========  =================================================================================
setting                   value       why
========================  ==========  =================================================================================
provider                  CPU         the only one that every machine has, and the one the published question is about
intra-op threads          1           the calling thread does all the work, so binding it to a core binds the work
inter-op, execution mode  sequential  one operator after another, as on an HTP
spinning                  off         a pool that spins for work takes the core from whoever else is being measured
optimisation              all         what a user gets by default
memory arena, pattern     on          what a user gets by default; the first runs grow the arena, later ones do not
outputs                   bound       filled in place, so that no run pays for making or copying arrays in Python
========================  ==========  =================================================================================

ONNX Runtime gives up the interpreter's lock while it runs: several threads run several sessions at once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

from htpsim.errors import HtpsimError
from htpsim.formats.writers.extra import needed
from htpsim.live.inputs import filled, shapes_of
from htpsim.live.models import EXTRA
from htpsim.live.onnxfile import OnnxFile, look_into

PROVIDERS: Final = ("CPUExecutionProvider",)
SETTINGS: Final = MappingProxyType({"session.intra_op.allow_spinning": "0", "session.inter_op.allow_spinning": "0"})
NO_DIMS: Final[Mapping[str, int]] = MappingProxyType({})
_REASON_MAX: Final = 400
_SOURCE: Final = re.compile(r"\S*?\.(?:h|cc|cpp):\d+ (?:(?:[\w:]+ )*[\w:~]+\([^)]*\) )?")
"""Where in its own source something was noticed, with the function: C++ that tells a user nothing."""
_FATAL_ONLY: Final = 4
"""What ONNX Runtime tells on standard error: what goes wrong comes as an exception, and is told by us."""


class Session:
    """One loaded model with its inputs filled; to be run by one thread at a time.

    Examples
    --------
    >>> from htpsim.live.models import build
    >>> with Session.open(build("decode", blocks=1, width=64, past=8)) as session:
    ...     session.run()
    ...     session.weights_bytes > 4 * 12 * 64**2
    True
    """

    def __init__(self, session: Any, run: Callable[[], None], file: OnnxFile, load_ns: int) -> None:
        self._session: Any = session
        self._run = run
        self.file = file
        """What the model says of itself."""
        self.load_ns = load_ns
        """What making the session took: read the file, optimise the graph, pack the weights."""

    @classmethod
    def open(
        cls,
        model: bytes | Path,
        *,
        threads: int = 1,
        dims: Mapping[str, int] = NO_DIMS,
        seed: int = 1,
        profile: Path | None = None,
        file: OnnxFile | None = None,
    ) -> Self:
        """Load a model and fill its inputs.

        Parameters
        ----------
        model
            Its file, or its bytes.
        threads
            Of one operator.
        dims
            Lengths of the dimensions that the model leaves open, by name.
        seed
            Of the inputs.
        profile
            Where ONNX Runtime's own profile begins its name; none by default, because profiling costs time.
        file
            What :func:`~htpsim.live.onnxfile.look_into` returned, where that was asked already.

        Raises
        ------
        HtpsimError
            When the model cannot be loaded or fed, or onnx or onnxruntime is not installed.
        """
        if threads < 1:
            raise HtpsimError(f"threads: got {threads}, expected at least 1")
        known = file or look_into(model)
        onnxruntime = needed("onnxruntime", EXTRA)
        options = _options(onnxruntime, threads, profile)
        given = model if isinstance(model, bytes) else str(model)
        start = time.perf_counter_ns()
        try:
            session = onnxruntime.InferenceSession(given, options, providers=list(PROVIDERS))
        except Exception as error:  # ONNX Runtime has a dozen classes without a common base of their own
            raise HtpsimError(f"{known.title}: ONNX Runtime cannot load it: {reason(error)}") from error
        load_ns = time.perf_counter_ns() - start
        return cls(session, _bound(onnxruntime, session, known.title, dims, seed), known, load_ns)

    @property
    def weights_bytes(self) -> int:
        """Bytes of the constants in the model, as they lie in its file; a session may hold them packed anew."""
        return self.file.weights_bytes

    def run(self) -> None:
        """Execute the model once; other threads of Python go on meanwhile.

        Raises
        ------
        HtpsimError
            When an operator fails, or the session is closed.
        """
        try:
            self._run()
        except HtpsimError:
            raise
        except Exception as error:  # as above
            raise HtpsimError(f"{self.file.title}: a run fails: {reason(error)}") from error

    def end_profile(self) -> Path:
        """Stop profiling and return the file that ONNX Runtime wrote."""
        return Path(self._session.end_profiling())

    def close(self) -> None:
        """Free the model; nothing can be run afterwards. A second time does nothing."""
        self._session = None
        self._run = self._closed

    def _closed(self) -> None:
        raise HtpsimError(f"{self.file.title}: got a run after the session was closed, expected it before")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def reason(error: Exception) -> str:
    """Return what a library's message says, on one line and without its own prefix.

    >>> reason(ValueError("[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation"))
    'Could not find an implementation'
    >>> reason(ValueError("[ONNXRuntimeError] : 1 : FAIL : /src/utils.h:46 void ort::Check(int, bool) Opset 99 is new"))
    'Opset 99 is new'
    """
    line = " ".join(str(error).split()) or type(error).__name__
    if line.startswith("[ONNXRuntimeError]"):
        line = line.split(" : ", 3)[-1]
    line = _SOURCE.sub("", line)
    return line if len(line) <= _REASON_MAX else line[: _REASON_MAX - 3] + "..."


def _options(onnxruntime: Any, threads: int, profile: Path | None) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.enable_cpu_mem_arena = True
    options.enable_mem_pattern = True
    options.log_severity_level = _FATAL_ONLY
    for key, value in SETTINGS.items():
        options.add_session_config_entry(key, value)
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    return options


def _bound(onnxruntime: Any, session: Any, title: str, dims: Mapping[str, int], seed: int) -> Callable[[], None]:
    """Return what runs a session once, on inputs that were filled beforehand."""
    shapes = shapes_of(title, session.get_inputs(), dims)
    binding = session.io_binding()
    for item in session.get_inputs():
        value = onnxruntime.OrtValue.ortvalue_from_numpy(filled(title, item, shapes[item.name], seed))
        binding.bind_ortvalue_input(item.name, value)
    for item in session.get_outputs():
        binding.bind_output(item.name)
    run, options = session.run_with_iobinding, onnxruntime.RunOptions()
    options.log_severity_level = _FATAL_ONLY

    def once() -> None:
        run(binding, options)

    return once
