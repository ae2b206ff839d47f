"""The device: running sets (``admission``), bandwidth, and what happens to a graphExecute (``rules``)."""

from htpsim.device import admission, bandwidth, rules
from htpsim.device.validate import validate

__all__ = ["admission", "bandwidth", "rules", "validate"]
