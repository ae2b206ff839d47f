"""AI Hub's perf.yaml: published latencies of models on devices, in every schema since v0.3.0."""

from htpsim.formats.aihub_perf.data import PerfFile, PerfRow
from htpsim.formats.aihub_perf.reader import FORMAT, read, service_time, sniff
from htpsim.formats.aihub_perf.service import find_service_time

__all__ = ["FORMAT", "PerfFile", "PerfRow", "find_service_time", "read", "service_time", "sniff"]
