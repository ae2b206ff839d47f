"""Readers of the ecosystem's files, one module a format, all reached through :data:`FORMATS`.

Every value keeps its unit and line; what a file does not state is ``None``, never zero; what cannot be read is
refused with :class:`htpsim.errors.FormatError`, naming file and line.
"""

from htpsim.formats.configured import (
    DeviceFacts,
    ModelFacts,
    context_facts,
    device_facts,
    model_facts,
    throughput_facts,
)
from htpsim.formats.form import Format, Match
from htpsim.formats.qnn_context_info import ContextInfo
from htpsim.formats.qnn_throughput import Thread as ThroughputThread
from htpsim.formats.qnn_throughput import Throughput
from htpsim.formats.registry import FORMATS, read, recognise, recognise_source, samples_ns, service_time_ns
from htpsim.formats.source import Source, from_text, load
from htpsim.formats.values import Fact, Report, ServiceTime, Value

__all__ = [
    "FORMATS",
    "ContextInfo",
    "DeviceFacts",
    "Fact",
    "Format",
    "Match",
    "ModelFacts",
    "Report",
    "ServiceTime",
    "Source",
    "Throughput",
    "ThroughputThread",
    "Value",
    "context_facts",
    "device_facts",
    "from_text",
    "load",
    "model_facts",
    "read",
    "recognise",
    "recognise_source",
    "samples_ns",
    "service_time_ns",
    "throughput_facts",
]
