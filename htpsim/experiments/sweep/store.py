"""Where a sweep keeps what it has found: one SQLite file, which a kill at any moment leaves whole.

A run is in it with all its figures or not at all, and never twice: that is one transaction and a primary key. The file
says which sweep it belongs to, so that a different one is not mixed in.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from htpsim.errors import HtpsimError
from htpsim.experiments.sweep.axes import Point
from htpsim.experiments.sweep.plan import Run

SCHEMA: Final = """
CREATE TABLE sweep (description TEXT NOT NULL);
CREATE TABLE points (point INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE runs (point INTEGER, replication INTEGER, why TEXT NOT NULL, elapsed_s REAL NOT NULL,
                   PRIMARY KEY (point, replication)) WITHOUT ROWID;
CREATE TABLE figures (point INTEGER, replication INTEGER, metric INTEGER, value REAL, whole INTEGER, n INTEGER,
                      why TEXT NOT NULL, PRIMARY KEY (point, replication, metric)) WITHOUT ROWID;
"""
COLUMNS: Final = {
    "sweep.description": "what decides the results, as JSON: scenario, digests, axes, metrics, replications, seed",
    "points.point": "number of the point, in the order of the design",
    "points.value": "its values, as a JSON list in the order of the axes",
    "runs.point": "which point",
    "runs.replication": "which replication of it, from 0",
    "runs.why": "why there are no figures (values that do not go together), or who did not start; else empty",
    "runs.elapsed_s": "what the run took on the clock on the wall [s]",
    "figures.point": "which point",
    "figures.replication": "which replication of it",
    "figures.metric": "number of the figure, in the order of the metrics of the description",
    "figures.value": "the figure where it is no whole number: times in ns, sizes in bytes",
    "figures.whole": "the figure where it is a whole number",
    "figures.n": "samples it rests on",
    "figures.why": "why neither holds a value; else empty",
}
"""Table and column -> what it holds."""
_MARK: Final = 0x48545053
"""SQLite's application id of such a file: "HTPS"."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one run."""

    value: int | float | None
    n: int
    why: str


@dataclass(frozen=True, slots=True)
class Found:
    """What one run came to."""

    run: Run
    figures: tuple[Figure, ...]
    """in the order of the plan's metrics; empty where the values of the point do not go together"""
    why: str
    """why there are none, or who did not start, so that they are of the others alone"""
    elapsed_s: float


class Store:
    """The file of a sweep.

    Raises
    ------
    HtpsimError
        When the file is of another sweep, or is something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, description: dict[str, Any], points: Iterable[Point]) -> None:
        """Make the file, or see that it is of this very sweep."""
        if not self.path.exists():
            self._make(description, points)
            return
        kept = self.description()
        if kept != description:
            differs = [key for key in description if kept.get(key) != description[key]]
            pairs = "; ".join(f"{key}: kept {kept.get(key)!r}, asked {description[key]!r}" for key in differs[:4])
            raise HtpsimError(f"{self.path}: got the store of another sweep ({pairs}), expected this one or a new file")

    def _make(self, description: dict[str, Any], points: Iterable[Point]) -> None:
        """Make it under another name first, so that it is there whole or not at all."""
        fresh = self.path.with_name(f".{self.path.name}.new")
        fresh.unlink(missing_ok=True)
        with self._told(), closing(sqlite3.connect(fresh)) as base, base:
            base.executescript(SCHEMA)
            base.execute(f"PRAGMA application_id = {_MARK}")
            base.execute("INSERT INTO sweep VALUES (?)", [json.dumps(description)])
            base.executemany("INSERT INTO points VALUES (?, ?)", ((i, json.dumps(p)) for i, p in enumerate(points)))
        fresh.replace(self.path)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say which file it is that SQLite cannot read or write, and what to do."""
        try:
            yield
        except sqlite3.ProgrammingError:  # a fault of ours, not of the file
            raise
        except sqlite3.DatabaseError as error:
            raise HtpsimError(
                f"{self.path}: got a store that cannot be used ({error}), expected one that is whole, on a disk with "
                "room, and in nobody else's use; without the file the sweep begins anew"
            ) from error

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        if not self.path.exists():
            raise HtpsimError(f"{self.path}: no such file, expected the store of a sweep")
        with self._told(), closing(sqlite3.connect(self.path, timeout=60)) as base:
            try:
                marked = base.execute("PRAGMA application_id").fetchone()[0] == _MARK
            except sqlite3.OperationalError:  # it may well be a store, which cannot be opened now
                raise
            except sqlite3.DatabaseError:
                marked = False
            if not marked:
                raise HtpsimError(f"{self.path}: got a file that is no store of a sweep, expected one or a new name")
            yield base

    def description(self) -> dict[str, Any]:
        """Return what the sweep is."""
        with self._open() as base:
            kept: dict[str, Any] = json.loads(base.execute("SELECT description FROM sweep").fetchone()[0])
        return kept

    def points(self) -> list[Point]:
        """Return the values of every point."""
        with self._open() as base:
            return [tuple(json.loads(text)) for (text,) in base.execute("SELECT value FROM points ORDER BY point")]

    def done(self) -> set[Run]:
        """Return the runs that are in it."""
        with self._open() as base:
            return {Run(*row) for row in base.execute("SELECT point, replication FROM runs")}

    def add(self, found: Iterable[Found]) -> None:
        """Put runs in, all or none; one that is in already, as after a retry elsewhere, stays as it is."""
        with self._open() as base, base:
            for one in found:
                key = (one.run.point, one.run.replication)
                added = base.execute("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?)", [*key, one.why, one.elapsed_s])
                if added.rowcount:
                    base.executemany(
                        "INSERT INTO figures VALUES (?, ?, ?, ?, ?, ?, ?)",
                        [(*key, i, *_columns(figure)) for i, figure in enumerate(one.figures)],
                    )

    def found(self) -> Iterator[Found]:
        """Yield every run that is in it, by point and replication."""
        with self._open() as base:
            figures: dict[Run, list[Figure]] = {}
            rows = "SELECT point, replication, value, whole, n, why FROM figures ORDER BY point, replication, metric"
            for point, replication, value, whole, n, why in base.execute(rows):
                figures.setdefault(Run(point, replication), []).append(Figure(_value(value, whole), n, why))
            runs = "SELECT point, replication, why, elapsed_s FROM runs ORDER BY point, replication"
            for point, replication, why, elapsed_s in base.execute(runs):
                run = Run(point, replication)
                yield Found(run, tuple(figures.get(run, ())), why, elapsed_s)


def _columns(figure: Figure) -> tuple[float | None, int | None, int, str]:
    """Split a value into a float or an integer column: both come back as they were."""
    whole = figure.value if isinstance(figure.value, int) else None
    return (figure.value if whole is None else None, whole, figure.n, figure.why)


def _value(value: float | None, whole: int | None) -> int | float | None:
    return value if whole is None else whole
