"""The run directory: whole or not there at all, replaced only when everything in it was written by htpsim.

A directory is filled beside its place under another name and then renamed into it, so a run that is killed leaves no
half file. `provenance.json` marks a run directory and lists its files with their digests; a directory that holds
anything else is refused, because replacing it would delete what is not ours.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from htpsim.errors import HtpsimError
from htpsim.results.columns import NEVER, PATHS, REQUEST_STATES, SLICES, STAGES, Execute, MemoryEvent, Request, Slice
from htpsim.results.metric import IntArray
from htpsim.results.provenance import PROGRAM, provenance
from htpsim.spec import PRIORITIES

if TYPE_CHECKING:
    from htpsim.results.log import RunLog
    from htpsim.results.run import RunResult

PROVENANCE: Final = "provenance.json"
LOG: Final = "log.json"
"""What the rows of a run refer to: names, copies, loads, the bounds of the window."""
SLICES_CSV: Final = "slices.csv"


@contextmanager
def run_directory(directory: str | Path, command: Sequence[str] = (), **facts: object) -> Iterator[Path]:
    """Give an empty directory to fill; on leaving without an error it takes the place of `directory`.

    Parameters
    ----------
    directory
        Where it will stand. It may be missing, empty, or an earlier run directory, which is replaced.
    command
        The command line, for the provenance.
    facts
        More for the provenance, such as ``engine`` and ``seconds``.

    Raises
    ------
    HtpsimError
        When `directory` is a file or holds something that htpsim did not write there.
    """
    target = Path(directory).absolute()
    refuse_foreign(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target)
    staging = _beside(target)
    try:
        yield staging
        record = {**provenance(command), **facts, "files": _digests(staging)}
        _write(staging / PROVENANCE, json_text(record))
        _swap(staging, target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def refuse_foreign(target: Path) -> None:
    """Raise unless `target` may be replaced: missing, empty, or holding only what htpsim recorded as its own."""
    if not target.exists():
        return
    if not target.is_dir():
        raise HtpsimError(f"{target}: is a file, expected a directory to write the run to")
    present = sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if not path.is_dir())
    if not present:
        return
    ours = _recorded(target)
    if ours is None:
        raise HtpsimError(f"{target}: not empty and not a run directory (no {PROVENANCE} of {PROGRAM}); name another")
    foreign = [name for name in present if name not in ours]
    if foreign:
        shown = ", ".join(foreign[:3]) + (" ..." if len(foreign) > 3 else "")
        raise HtpsimError(f"{target}: holds files that {PROGRAM} did not write there ({shown}); name another")


def write_run(folder: Path, result: RunResult, scenario: Mapping[str, object] | None = None) -> None:
    """Write the files of one run into `folder`; `read.read_log` gives the log back from them.

    They are scenario.json, log.json, records.csv, slices.csv, requests.csv, memory.csv and summary.json.

    Parameters
    ----------
    folder
        A directory being filled, see `run_directory`.
    result
        The run.
    scenario
        The resolved scenario as it was read, sources included; without it, the specification.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = result.log
    _write(folder / "scenario.json", json_text(dict(scenario) if scenario is not None else asdict(log.scenario)))
    _write(folder / LOG, json_text(log_dict(log)))
    _write(folder / "records.csv", records_csv(result))
    _write(folder / SLICES_CSV, slices_csv(result))
    _write(folder / "requests.csv", requests_csv(result))
    _write(folder / "memory.csv", memory_csv(result))
    _write(folder / "summary.json", json_text(result.summary().to_dict()))


def json_text(value: object) -> str:
    """Return JSON in the one form used for files: two spaces, keys in their order, no NaN, newline at the end."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def log_dict(log: RunLog) -> dict[str, object]:
    """Return what the rows of a log refer to, in JSON form; the engine, which changes no row, stands in provenance."""
    return {
        "replication": log.replication,
        "ready_ns": log.ready_ns,
        "start_ns": log.start_ns,
        "end_ns": log.end_ns,
        "clients": log.clients,
        "graphs": log.graphs,
        "accounts": log.accounts,
        "copies": [copy._asdict() for copy in log.copies],
        "loads": [load._asdict() for load in log.loads],
        "failed": log.failed,
        "notes": log.notes,
    }


def records_csv(result: RunResult) -> str:
    """Return one row a graphExecute, names in place of indices, empty where an instant was not reached."""
    x, log = result.tables.executes, result.log
    names = {
        "client": log.clients,
        "stage": STAGES,
        "graph": log.graphs,
        "copy": [copy.name for copy in log.copies],
        "path": PATHS,
        "level": PRIORITIES,
        "account": log.accounts,
    }
    header = ["priority" if name == "level" else name for name in Execute._fields]
    return csv_text(header, [_column(x[name], names.get(name)) for name in Execute._fields])


def slices_csv(result: RunResult) -> str:
    """Return one row a stretch on a core, of graphExecutes that were evicted."""
    s = result.tables.slices
    return csv_text(Slice._fields, [_column(s[name], SLICES if name == "kind" else None) for name in Slice._fields])


def requests_csv(result: RunResult) -> str:
    """Return one row a request."""
    r, names = result.tables.requests, {"client": result.log.clients, "state": REQUEST_STATES}
    return csv_text(Request._fields, [_column(r[name], names.get(name)) for name in Request._fields])


def memory_csv(result: RunResult) -> str:
    """Return one row a change of memory."""
    return csv_text(
        MemoryEvent._fields, [[_cell(e[i]) for e in result.log.memory] for i in range(len(MemoryEvent._fields))]
    )


def csv_text(header: Sequence[str], columns: Sequence[Sequence[object]]) -> str:
    r"""Return CSV with ``\n`` line ends from a column of integers, or of texts already quoted, a name.

    >>> csv_text(["a", "b"], [[1, 2], ["x", "y"]])
    'a,b\n1,x\n2,y\n'
    """
    template = ",".join(["%s"] * len(header))
    rows = [template % row for row in zip(*columns, strict=True)]
    return "\n".join([",".join(header), *rows]) + "\n"


def _column(values: IntArray, names: Sequence[str] | None) -> Sequence[object]:
    if names is None:
        cells: list[object] = values.tolist()
        for row in (values == NEVER).nonzero()[0].tolist():
            cells[row] = ""
        return cells
    texts = [*map(_cell, names), ""]  # index -1: none
    return [texts[value] for value in values.tolist()]


def _cell(value: object) -> str:
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') else text


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _recorded(target: Path) -> set[str] | None:
    """Return the files that an earlier run recorded as its own, or None when this is no run directory."""
    try:
        record = json.loads((target / PROVENANCE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(record, dict) or record.get("program") != PROGRAM or not isinstance(record.get("files"), dict):
        return None
    return {*record["files"], PROVENANCE}


def _swap(staging: Path, target: Path) -> None:
    """Rename `staging` to `target`; what stood there is removed afterwards, or put back if that fails."""
    if not target.exists():
        os.replace(staging, target)
        return
    aside = _beside(target)
    os.replace(target, aside / target.name)
    try:
        os.replace(staging, target)
    except OSError:
        os.replace(aside / target.name, target)
        aside.rmdir()
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _beside(target: Path) -> Path:
    """Make a hidden directory beside `target`, named after this process."""
    path = target.with_name(f".{target.name}.partial-{os.getpid()}-{secrets.token_hex(4)}")
    path.mkdir()
    return path


def _sweep(target: Path) -> None:
    """Remove what processes that were killed left beside `target`."""
    for path in target.parent.glob(f".{glob.escape(target.name)}.partial-*-*"):
        pid = path.name.split("-")[-2]
        if pid.isdigit() and not _alive(int(pid)):
            shutil.rmtree(path, ignore_errors=True)


def _alive(pid: int) -> bool:
    if os.name != "posix":
        return True  # elsewhere one cannot ask without harm
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
