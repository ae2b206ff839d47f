"""Traces of one run on the HTP: RUN_TRACE (ticks), OP_TRACE (cycles), and the summary written beside them."""

from htpsim.formats.qnn_trace.data import Operation, OpTrace, Phase, RunExecution, Summary, Trace
from htpsim.formats.qnn_trace.reader import FORMAT, read, samples, service_time, sniff

__all__ = [
    "FORMAT",
    "OpTrace",
    "Operation",
    "Phase",
    "RunExecution",
    "Summary",
    "Trace",
    "read",
    "samples",
    "service_time",
    "sniff",
]
