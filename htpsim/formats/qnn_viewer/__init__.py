"""Text printed by qnn-profile-viewer, for CPU and HTP, whole, embedded, cut off or reworded."""

from htpsim.formats.qnn_viewer.log import Graph, Measurement, Section, ViewerLog
from htpsim.formats.qnn_viewer.reader import FORMAT, PREFERRED, SECTIONS, read, service_time, sniff

__all__ = [
    "FORMAT",
    "PREFERRED",
    "SECTIONS",
    "Graph",
    "Measurement",
    "Section",
    "ViewerLog",
    "read",
    "service_time",
    "sniff",
]
