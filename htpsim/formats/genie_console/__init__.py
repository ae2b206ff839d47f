"""Console logs of genie-t2t-run, genie-app and services on libGenie: key figures, failures, memory, executions."""

from htpsim.formats.genie_console.data import (
    Allocation,
    ConsoleLog,
    ContextMemory,
    ExecutionLog,
    GraphTimes,
    LogError,
    Prefill,
    Query,
)
from htpsim.formats.genie_console.executions import variant_of
from htpsim.formats.genie_console.reader import FORMAT, read, samples, service_time, sniff
from htpsim.formats.genie_console.times import Times

__all__ = [
    "FORMAT",
    "Allocation",
    "ConsoleLog",
    "ContextMemory",
    "ExecutionLog",
    "GraphTimes",
    "LogError",
    "Prefill",
    "Query",
    "Times",
    "read",
    "samples",
    "service_time",
    "sniff",
    "variant_of",
]
