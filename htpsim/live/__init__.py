"""What runs for real on this machine: models of ONNX Runtime, measured one by one or side by side.

Needs onnx and onnxruntime, which are installed with ``pip install htpsim[measure]`` and imported here only.
"""

from htpsim.live.models import ROLES, Size, build, sizes
from htpsim.live.session import Session

__all__ = ["ROLES", "Session", "Size", "build", "sizes"]
