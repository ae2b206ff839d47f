"""All formats, and the way from a path to what the file says.

To add a format, write one module that ends in ``FORMAT = Format(...)`` and name it in `_ALL`, or in the entry points
of a package of your own (``docs/adding-a-format.md``). Readers share the reading of text, JSON and YAML, and nothing
else: no reader can change what another returns, and a recogniser that fails fits nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from htpsim.errors import FormatError, unknown_name
from htpsim.formats import (
    aihub_perf,
    executorch_log,
    genie_config,
    genie_console,
    genie_profile,
    htp_backend_ext,
    llm_bench_csv,
    ort_profile,
    ort_qnn_csv,
    qnn_context_info,
    qnn_context_log,
    qnn_csv,
    qnn_report,
    qnn_throughput,
    qnn_trace,
    qnn_viewer,
    service_tests,
    snpe_diagview,
    trace,
)
from htpsim.formats.form import Format, Match, Streamed
from htpsim.formats.plugins import plugins
from htpsim.formats.source import Source, load, shown
from htpsim.formats.stream import LineStream, head, is_large
from htpsim.formats.values import Report, ServiceQuery, ServiceTime

_ALL: Final = (
    qnn_viewer.FORMAT,
    aihub_perf.FORMAT,
    genie_config.FORMAT,
    htp_backend_ext.FORMAT,
    qnn_csv.FORMAT,
    qnn_trace.FORMAT,
    genie_profile.FORMAT,
    genie_console.FORMAT,
    ort_profile.FORMAT,
    ort_qnn_csv.FORMAT,
    qnn_throughput.FORMAT,
    qnn_context_info.FORMAT,
    qnn_context_log.FORMAT,
    qnn_report.FORMAT,
    snpe_diagview.FORMAT,
    executorch_log.FORMAT,
    llm_bench_csv.FORMAT,
    service_tests.FORMAT,
    trace.FORMAT,
)

FORMATS: Final[Mapping[str, Format]] = MappingProxyType({item.name: item for item in _ALL})
"""Every known format by name."""


def recognise(path: str | os.PathLike[str]) -> str:
    """Say which format a file has, by its content; the name of the file plays no part.

    Returns
    -------
    str
        A key of :data:`FORMATS`.

    Raises
    ------
    FormatError
        When no format fits, or two fit equally well; lists the known ones.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "any name")
    ...     _ = path.write_text('{"devices": [{"soc_model": 69, "dsp_arch": "v79"}]}')
    ...     recognise(path)
    'htp-backend-ext'
    """
    return recognise_source(load(path)).name


def recognise_source(source: Source) -> Format:
    """Say which format a text has; raises as :func:`recognise` does.

    >>> from htpsim.formats.source import from_text
    >>> recognise_source(from_text("x", '{"dialog": {}}')).name
    'genie-config'
    """
    if not source.text.strip():
        raise source.error(1, "an empty file", f"one of: {_named(FORMATS)}")
    faults: list[str] = []
    fits = {item.name: _fit(item, source, faults) for item in FORMATS.values()}
    known: Mapping[str, Format] = FORMATS
    if max(fits.values()) < Match.YES:  # what a shipped format is sure of, no other package takes from it
        known = known_formats()
        faults += plugins().faults
        fits |= {item.name: _fit(item, source, faults) for name, item in known.items() if name not in FORMATS}
    best = max(fits.values())
    names = [name for name, fit in fits.items() if fit == best]
    if best == Match.NO:
        line = next(number for number, text in enumerate(source.lines, start=1) if text.strip())
        got = f"{shown(source.lines[line - 1])}, which fits no known format"
        raise source.error(line, got, "; ".join([f"one of: {_named(known)}", *faults]))
    if len(names) > 1:
        raise source.error(1, f"a file that fits {' and '.join(names)} alike", "one format; say which")
    return known[names[0]]


def known_formats() -> Mapping[str, Format]:
    """Return the shipped formats and those of other packages; where names are equal, the shipped one.

    >>> "qnn-viewer" in known_formats()
    True
    """
    return {**plugins().formats, **FORMATS}


def _named(known: Mapping[str, Format]) -> str:
    return ", ".join(f"{item.name} ({item.title})" for item in known.values())


def _fit(item: Format, source: Source, faults: list[str]) -> Match:
    """Ask one format; whatever its recogniser raises, the others are still asked."""
    try:
        return item.sniff(source)
    except Exception as error:  # one reader broken by a new file must not touch another
        faults.append(f"the recogniser of {item.name} failed ({error!r})")
        return Match.NO


def read(path: str | os.PathLike[str], format: str | None = None, lenient: bool = False) -> Report:
    """Read a file.

    Parameters
    ----------
    path
        The file.
    format
        A key of :data:`FORMATS`; by default the content decides.
    lenient
        Take what can be read of a damaged or reworded file, with a note for everything that was skipped.

    Raises
    ------
    FormatError
        Names file and line, what is there, and what was expected.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "profile.txt")
    ...     _ = path.write_text("Init Stats:\\n-----------\\n    NetRun: 1200 us\\n")
    ...     report = read(path)
    >>> [(fact.section, fact.name, fact.value, fact.unit, fact.line) for fact in report.facts if fact.line]
    [('Init', 'NetRun', 1200, 'us', 3)]
    """
    if is_large(path):
        return _streamed(path, format).read(LineStream(path, lenient), lenient)
    source = load(path, lenient)
    return _format(source, format).read(source, lenient)


def service_time_ns(
    path: str | os.PathLike[str],
    graph: str | None = None,
    statistic: str = "average",
    event: str | None = None,
    *,
    device: str | None = None,
    runtime: str | None = None,
    precision: str | None = None,
    context_length: int | None = None,
) -> ServiceTime:
    """Take the service time of a graph from a measurement [ns], for a scenario.

    Parameters
    ----------
    path
        A file of any format that holds times.
    graph
        The graph, or in a perf.yaml the component; may be left out where there is only one.
    statistic
        ``average``, ``min`` or ``max``; also ``median`` where the file holds single executions.
    event
        Which time; by default the accelerator's own where it is printed, else the backend's.
    device, runtime, precision, context_length
        Which row of a perf.yaml; needed as far as they leave a choice.

    Raises
    ------
    FormatError
        When nothing fits, with the nearest name, or several do, with what tells them apart.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "profile.txt")
    ...     _ = path.write_text("Execute Stats (Average):\\nGraph 0 (vit):\\n    NetRun: 2952 us\\n")
    ...     service_time_ns(path, "vit").value_ns
    2952000
    """
    query = ServiceQuery(graph, statistic, event, device, runtime, precision, context_length)
    if is_large(path):
        return _streamed(path, None).service_time(LineStream(path), query)
    source = load(path)
    found = _format(source, None)
    if found.service_time is None:
        timed = ", ".join(item.name for item in known_formats().values() if item.service_time)
        raise FormatError(f"{source.name}: got {found.title}, which holds no times, expected one of: {timed}")
    return found.service_time(source, query)


def samples_ns(
    path: str | os.PathLike[str],
    graph: str | None = None,
    event: str | None = None,
    *,
    context_length: int | None = None,
) -> tuple[int, ...]:
    """Take the single executions of a graph from a measurement [ns], in the order of the file.

    Parameters
    ----------
    path
        A file of a format that lists executions: QNN CSV, QNN run trace, Genie profile, Genie console log.
    graph, event
        As for :func:`service_time_ns`.
    context_length
        Which context tier of a console log's decode steps.

    Returns
    -------
    tuple of int
        At least one. Cut-off executions are left out; the first execution is not, though it is often slower.

    Raises
    ------
    FormatError
        When nothing fits, several do, or the format holds averages only.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "profile.csv")
    ...     rows = [f"EXECUTE,{us},US,NETRUN,ROOT,Graph 0: vit" for us in (2952, 2949)]
    ...     _ = path.write_text("\\n".join(rows) + "\\n")
    ...     samples_ns(path, "vit")
    (2952000, 2949000)
    """
    query = ServiceQuery(graph, event=event, context_length=context_length)
    if is_large(path):
        return _streamed(path, None).samples(LineStream(path), query)
    source = load(path)
    found = _format(source, None)
    if found.samples is None:
        sampled = ", ".join(item.name for item in known_formats().values() if item.samples)
        raise FormatError(
            f"{source.name}: got {found.title}, which holds no single executions, expected one of: {sampled}"
        )
    return found.samples(source, query)


def _streamed(path: str | os.PathLike[str], name: str | None) -> Streamed:
    """Recognise a large file by its first lines; refuse it where its format needs the whole text."""
    found = _format(head(path), name)
    if found.large is None:
        load(path)  # refuses it for its size
        raise FormatError(f"{os.fspath(path)}: got a file that shrinks while it is read, expected one at rest")
    return found.large


def _format(source: Source, name: str | None) -> Format:
    if name is None:
        return recognise_source(source)
    if name in FORMATS:
        return FORMATS[name]
    known = known_formats()
    if name not in known:
        raise FormatError("; ".join([unknown_name("format", name, known), *plugins().faults]))
    return known[name]
