"""What `--json` prints, command by command: the keys at the top of the document, and what they hold.

A test asks every command and compares. Keys are stable; more may be added. Times are whole nanoseconds, sizes whole
bytes, shares of one.
"""

from __future__ import annotations

from typing import Final

Shape = dict[str, str]

ANY: Final = "NAME"
"""Stands for every name of which there is one: a scenario, a variant."""

_RUNS: Final[Shape] = {
    "scenario": "name of the scenario",
    "title": "its title",
    "variant": "what was chosen, or null",
    "case": "what was chosen, or null",
    "options": "options of assumptions in force",
    "warnings": "what a reader should know beforehand",
    "precision": "how narrow the intervals are, where that was asked, else null",
    "replications": "a list of summaries, each as in [columns](columns.md#figures-summaryjson)",
}

JSON: Final[dict[str, Shape]] = {
    "run": _RUNS,
    "live": _RUNS,
    "measure": {
        "model": "its title, SHA-256, sizes, opset, number of nodes, dimensions that were filled, seed of its inputs",
        "machine": "processor, system, runtime, date, command",
        "cold_load_ns": "the first load",
        "cold": "in which sense it was cold",
        "threads": "a list: what was asked, load, first and warm runs, memory, doubts, every run, operators",
    },
    "compare": {
        "title": "title of the file",
        "question": "its question",
        "first": "variant that the others are compared with",
        "variants": "title and text of each",
        "case_titles": "title of each case",
        "option_titles": "title of each option of an assumption",
        "options": "options in force throughout",
        "warnings": "what a reader should know beforehand",
        "cases": "by case and variant: a list of summaries, each as in [columns](columns.md#figures-summaryjson)",
        "precision": "how narrow the intervals are, where that was asked, else null",
        "changes": "by case, variant and figure: the difference from the first, with its interval",
        "grid": "which assumption would change which sign; null with --no-grid",
    },
    "sweep": {
        "axes": "keys that were varied",
        "metrics": "figures that were kept, as paths",
        "runs": "a list: point, replication, values, figures, why",
    },
    "sensitivity": {
        "title": "title of the file",
        "first": "variant that the others are compared with",
        "duration_ns": "measured time of each run",
        "replications": "repetitions of each run",
        "effects": "a list: what was changed to what, and the difference before and after",
        "thresholds": "a list: between which two values of a number a sign turns round",
        "refused": "setting, and why the scenario cannot be run so",
    },
    "tune": {
        "axes": "keys that were varied",
        "goal": "what was made best",
        "bounds": "what was to be kept",
        "best": "values of the best point, or null where nothing keeps the bounds",
        "points": "points that there are; 0 where ranges make them countless",
        "looked_at": "points that were run for a short time",
        "hopeless": "points that no schedule could save, and so were not run",
        "why_hopeless": "what rules them out",
        "candidates": "a list of points that were run in full: figures with intervals, keeps, clear, front",
    },
    "blame": {
        "measure": "itl or ttft",
        "delays": "a list of the slowest: client, request, token, start, end, total, and the parts with their culprits",
        "together": "the same parts added up over the list",
        "matrix_ns": "by who was delayed and by whom, over the measured window",
    },
    "fit": {ANY: "of each variant: the columns of [the table](columns.md#other-tables), and packing"},
    "scenarios": {ANY: "of each scenario: title, question, variants, cases, assumptions; or fault"},
    "calibrate": {
        "files": "what was read",
        "values": "a list: key, value, mark, number of samples, source",
        "warnings": "what a reader should know beforehand",
    },
    "score": {
        "measured": "what was measured",
        "simulated": "what was simulated",
        "within": "largest error that is no miss, or null",
        "ok": "whether no figure misses",
        "metrics": "a list: metric, measured, simulated, error, missed",
        "only_measured": "figures that the simulation does not have",
        "only_simulated": "figures that the measurement does not have",
        "withheld": "figures with too few samples, and how many they need",
    },
    "inspect": {
        "format": "name of the format",
        "path": "the file",
        "facts": "a list: section, name, value, unit, line, note",
        "notes": "what a reader should know",
        "data": "what the file says, in the form of its own",
    },
    "policies": {
        "name": "as guard.policy names it",
        "summary": "the rule in a line",
        "rule": "the rule in paragraphs",
        "source": "where it comes from",
        "bound": "what it promises",
        "premise": "under what",
        "cost": "what a grant costs",
        "params": "parameters: default and meaning",
    },
    "check": {
        "ok": "whether every rule holds",
        "executes": "graphExecutes in the trace",
        "checked": "rules that were checked",
        "skipped": "rules that were not, and why",
        "counts": "how often each rule was broken",
        "violations": "a list: what broke, where, in words",
        "story": "what happened around the first",
    },
    "explain-policy": {
        "grants": "grants in the trace",
        "choices": "grants at which two calls or more were in line",
        "note": "why nothing can be said, or empty",
        "policies": "a list, the best first: policy, params, ranks, made, missed",
        "unexplained": "a list of grants that no policy would have made",
    },
    "validate": {
        "missed": "names of results that theory does not bear out",
        "results": "a list: theory and simulation of each law, with half-width, basis and verdict",
    },
    "diff-engines": {
        "same": "whether all rows are the same",
        "executes": "rows of graphExecutes",
        "partings": "a list: where the two part",
    },
    "doctor": {
        "htpsim": "version",
        "python": "version",
        "executable": "the interpreter",
        "machine": "processor and system",
        "cores": "processors",
        "packages": "version of each",
        "extras": "a list: what each extra adds, and whether it is there",
        "parts": "compiled engine, scenarios, browser: whether they work",
    },
}
"""Command -> its keys. `policies` prints a list of such documents."""

EXIT_CODES: Final[dict[int, str]] = {
    0: "all well",
    1: "a check failed: a rule broken, theory missed, an error beyond --within, bounds that nothing keeps",
    2: "bad input or usage; the message says where, what was given and what was expected",
    3: "an invariant broke, or htpsim has a fault: please report it",
    130: "interrupted",
    141: "the reader of the output went away",
}

WRITES: Final[dict[str, str]] = {
    "report": "an HTML file; its figures are those of `htpsim compare --json`",
    "import": "a scenario, a TOML file",
    "export": "a file of the form that was asked for",
    "schema": "a JSON document, with or without `--output`",
    "completion": "a script for the shell",
}
"""Commands that print no table, and what they leave instead."""
