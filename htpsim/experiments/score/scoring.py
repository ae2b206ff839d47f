"""Hold a simulation to a measurement: every figure that both have, with the error of the simulated one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from htpsim.errors import HtpsimError
from htpsim.experiments.score.calls import Calls, calls_of_csv, calls_of_log, calls_of_trace, requests_of_csv
from htpsim.experiments.score.figures import Figures, figures_of_calls
from htpsim.experiments.score.logs import figures_of_log, tiers_of
from htpsim.formats import Report, read
from htpsim.invariants import Trace
from htpsim.results.metric import Metric
from htpsim.results.read import read_json, read_log
from htpsim.results.run import RunResult
from htpsim.results.summary import Summary
from htpsim.scenario import from_tree

RECORDS: Final = "records.csv"
REQUESTS: Final = "requests.csv"
BYTES_MAX: Final = 2**31
_HEADER: Final = "execute,client,request,"


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure, measured and simulated."""

    name: str
    measured: Metric
    simulated: Metric

    @property
    def error(self) -> float | None:
        """How far the simulated value is off, as a part of the measured one; ``None`` where that is zero."""
        measured, simulated = self.measured.value, self.simulated.value
        assert measured is not None
        assert simulated is not None
        if not measured:
            return None if simulated else 0.0
        return simulated / measured - 1

    def misses(self, within: float) -> bool:
        """Say whether the error is larger than allowed."""
        return self.error is None or abs(self.error) > within


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What a simulation gets right and by how much it is off."""

    measured: str
    simulated: str
    rows: tuple[Compared, ...]
    only_measured: tuple[str, ...]
    only_simulated: tuple[str, ...]
    withheld: tuple[tuple[str, str], ...]
    """Figures that both have but one withholds, and why: too few samples, as a rule."""

    within: float | None = None

    @property
    def missed(self) -> tuple[Compared, ...]:
        """The figures whose error is larger than allowed; none where nothing was asked."""
        return tuple(row for row in self.rows if self.within is not None and row.misses(self.within))

    @property
    def ok(self) -> bool:
        """Whether no figure missed."""
        return not self.missed

    def error(self, name: str) -> float | None:
        """Return the error of one figure.

        Raises
        ------
        HtpsimError
            When it was not compared.
        """
        for row in self.rows:
            if row.name == name:
                return row.error
        raise HtpsimError(f"metric: got '{name}', expected one of {', '.join(row.name for row in self.rows)}")

    def to_dict(self) -> dict[str, Any]:
        """Return the score in JSON form."""
        return {
            "measured": self.measured,
            "simulated": self.simulated,
            "within": self.within,
            "ok": self.ok,
            "metrics": [
                {
                    "metric": row.name,
                    "measured": row.measured.to_dict(),
                    "simulated": row.simulated.to_dict(),
                    "error": None if row.error is None else round(row.error, 6),
                    "missed": self.within is not None and row.misses(self.within),
                }
                for row in self.rows
            ],
            "only_measured": list(self.only_measured),
            "only_simulated": list(self.only_simulated),
            "withheld": dict(self.withheld),
        }

    def __repr__(self) -> str:
        missed = "" if self.within is None else f", {len(self.missed)} beyond {100 * self.within:g} %"
        return f"<Score of {self.simulated} against {self.measured}: {len(self.rows)} metrics{missed}>"


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two, read."""

    name: str
    figures: Figures
    calls: Calls | None = None
    tiers: tuple[int, ...] = ()


def score(
    measured: Any,
    simulated: Any,
    *,
    within: float | None = None,
    metrics: Sequence[str] = (),
    client: str | None = None,
) -> Score:
    """Compare a simulation with a measurement, figure by figure.

    Parameters
    ----------
    measured, simulated
        Each a log of a real tool, a run directory, a records.csv, a trace, or what ``run`` or ``read`` returned.
    within
        Largest error that is no miss, as a part of one: 0.05 is 5 %.
    metrics
        Only figures that one of these patterns fits, such as ``"itl.*"``.
    client
        Only this client's calls, where clients are told apart.

    Raises
    ------
    HtpsimError
        When a file cannot be read, or the two have no figure in common.

    Examples
    --------
    >>> from htpsim.experiments.single import run_one
    >>> one = run_one("four_vlms", set_values=["run.duration=2s", "run.warmup=0s"], replication=0, workers=1)
    >>> same = score(one, one, within=0.01)
    >>> same.ok, same.error("busy")
    (True, 0.0)
    """
    if within is not None and not 0 <= within < 100:
        raise HtpsimError(f"within: got {within}, expected a part of one such as 0.05")
    sides = [_side(each, client) for each in (measured, simulated)]
    tiers = next((side.tiers for side in sides if side.tiers), ())
    held = [(figures_of_calls(side.calls, tiers) if side.calls else {}) | side.figures for side in sides]
    if metrics:
        held = [{name: value for name, value in each.items() if _wanted(name, metrics)} for each in held]
    one, two = held
    both = [name for name in one if name in two]
    if not both:
        raise HtpsimError(
            f"score: got no figure that both have: {sides[0].name} has {_listed(one)}; {sides[1].name} has "
            f"{_listed(two)}; expected two records of the same kind of run"
        )
    compared = [Compared(name, one[name], two[name]) for name in both]
    whole = [row for row in compared if row.measured.value is not None and row.simulated.value is not None]
    withheld = [
        (row.name, row.measured.why or row.simulated.why) for row in compared if row not in whole
    ]  # fmt: skip
    return Score(
        measured=sides[0].name,
        simulated=sides[1].name,
        rows=tuple(whole),
        only_measured=tuple(name for name in one if name not in two),
        only_simulated=tuple(name for name in two if name not in one),
        withheld=tuple(withheld),
        within=within,
    )


def _wanted(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _listed(figures: Figures) -> str:
    return ", ".join(sorted({name.rpartition(".")[0] or name for name in figures})) or "none"


def _side(given: Any, client: str | None) -> _Side:
    """Read one of the two, whatever it is."""
    if isinstance(given, Trace):
        return _of_calls(given.source or "trace", calls_of_trace(given), {}, client)
    if isinstance(given, RunResult):
        return _of_result(repr(given.log.scenario.name), given, client)
    if hasattr(given, "result") and isinstance(given.result, RunResult):
        return _side(given.result, client)
    if isinstance(given, Report):
        return _of_report(given, client)
    path = Path(given)
    if path.is_dir():
        return _of_directory(path, client)
    if _is_records(path):
        return _of_records(path, client)
    return _of_report(read(path), client)


def _of_report(report: Report, client: str | None) -> _Side:
    if isinstance(report.data, Trace):
        return _of_calls(report.path, calls_of_trace(report.data), {}, client)
    return _Side(report.path, figures_of_log(report), None, tiers_of(report))


def _of_calls(name: str, calls: Calls, more: Figures, client: str | None, tiers: tuple[int, ...] = ()) -> _Side:
    return _Side(name, more, calls if client is None else calls.of(client), tiers)


def _of_records(path: Path, client: str | None) -> _Side:
    """Read a records.csv, and the requests.csv beside it where there is one."""
    beside = path.with_name(REQUESTS)
    requests = requests_of_csv(_text(beside), str(beside)) if beside.is_file() else {}
    return _of_calls(str(path), Calls(calls=calls_of_csv(_text(path), str(path)), requests=requests), {}, client)


def _of_result(name: str, result: RunResult, client: str | None) -> _Side:
    return _of_calls(name, calls_of_log(result.log), _of_summary(result.summary()), client)


def _of_directory(folder: Path, client: str | None) -> _Side:
    """Read a run directory."""
    if not (folder / RECORDS).is_file():
        inner = sorted(path.parent.name for path in folder.glob(f"runs/*/{RECORDS}"))
        hint = f"; give one of the runs in it: {', '.join(inner[:6])}" if inner else ""
        raise HtpsimError(f"{folder}: got a folder without {RECORDS}, expected a run directory{hint}")
    path = folder / "scenario.json"
    tree = read_json(path).get("scenario")
    if not isinstance(tree, dict):  # as `RunResult.write` leaves it: the rows are all there is
        return _of_records(folder / RECORDS, client)
    return _of_result(str(folder), RunResult(read_log(folder, from_tree(tree, str(path)))), client)


def _of_summary(summary: Summary) -> Figures:
    """Return what only the summary has: bytes of one copy of each context, how many, and how long loading took."""
    found: Figures = {}
    for copy in summary.copies:
        if copy.copies and copy.reserved_bytes:
            found[f"memory.{copy.context}"] = Metric(copy.reserved_bytes // copy.copies, 1, "bytes")
            found[f"copies.{copy.context}"] = Metric(copy.copies, 1, "count")
    if summary.load_ns:
        found["load"] = Metric(summary.load_ns, 1, "ns")
    return found


def _is_records(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_HEADER)).decode("utf-8", "replace") == _HEADER
    except OSError:
        return False


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > BYTES_MAX:
            raise HtpsimError(f"{path}: got {path.stat().st_size} bytes, expected at most {BYTES_MAX}")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise HtpsimError(
            f"{path}: got no UTF-8 at byte {error.start}, expected the text of a run directory"
        ) from error
