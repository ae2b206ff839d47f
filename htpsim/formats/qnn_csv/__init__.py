"""CSV that qnn-net-run and qnn-profile-viewer write: every event of every execution, a row each."""

from htpsim.formats.qnn_csv.log import CsvExecution, CsvLog, CsvMeasurement, CsvPhase
from htpsim.formats.qnn_csv.reader import FORMAT, PREFERRED, read, samples, service_time, sniff

__all__ = [
    "FORMAT",
    "PREFERRED",
    "CsvExecution",
    "CsvLog",
    "CsvMeasurement",
    "CsvPhase",
    "read",
    "samples",
    "service_time",
    "sniff",
]
