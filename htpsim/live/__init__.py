"""What runs for real on this machine: models of ONNX Runtime, one by one, or a whole scenario on real threads.

``Session`` and ``build`` are single models; they need onnx and onnxruntime, which are installed with
``pip install htpsim[measure]`` and imported here only. ``run_live`` is the testbed: guard, cores, registry and
instances of a scenario as threads, locks and sessions, whose runs the engines must predict.
"""

from htpsim.live.engine import LiveRun, run_live
from htpsim.live.faults import Fault
from htpsim.live.models import ROLES, Size, build, sizes
from htpsim.live.session import Session
from htpsim.live.work import OnnxBench, TimedBench

__all__ = ["ROLES", "Fault", "LiveRun", "OnnxBench", "Session", "Size", "TimedBench", "build", "run_live", "sizes"]
