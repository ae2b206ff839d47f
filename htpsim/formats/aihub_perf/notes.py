"""The table of a perf.yaml, and which of its figures to distrust.

Published files hold rates that are not one over the latency, and single latencies several times too long. Such rows
are reported as they stand, with a warning; nothing is corrected.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import Final

from htpsim.formats.aihub_perf.data import Number, PerfFile, PerfRow
from htpsim.formats.tree import few
from htpsim.formats.values import Fact, row
from htpsim.units import NS_PER_S, TIME_UNITS

_NEAR: Final = 0.02
_OUTLIER: Final = 3.0
_DEVICES_MIN: Final = 4
_LISTED_MAX: Final = 6


def facts(data: PerfFile) -> tuple[Fact, ...]:
    """List the figures of every row, and a row for what a benchmark lacks."""
    rows: list[Fact] = []
    for item in data.rows:
        is_llm = item.tokens_per_second is not None or item.ttft_min is not None
        wanted: dict[str, Number | None] = {}
        if is_llm:
            wanted |= {"time to first token, min": item.ttft_min, "time to first token, max": item.ttft_max}
            wanted |= {"tokens a second": item.tokens_per_second}
        if item.prefill_tokens_per_second is not None:
            wanted |= {"prefill tokens a second": item.prefill_tokens_per_second}
        if not is_llm or item.inference_time is not None:
            wanted |= {"inference time": item.inference_time, "inferences a second": item.inferences_per_second}
            wanted |= {"peak memory, min": item.peak_memory_min, "peak memory, max": item.peak_memory_max}
        for name, value in wanted.items():
            rows.append(row(item.place, name, value, "" if value else "not in the file"))
        if item.compute_unit is not None:
            rows.append(row(item.place, "compute unit", item.compute_unit))
        if item.job_status is not None and item.job_status.value != "Passed":
            rows.append(row(item.place, "job status", item.job_status))
    return tuple(rows)


def warnings(data: PerfFile) -> tuple[str, ...]:
    """Say which figures mean something else than their names, or look wrong."""
    notes = [*_rates(data), *_outliers(data), *_chunks(data), *_same_first_token(data)]
    failed = [item for item in data.rows if item.job_status is not None and item.job_status.value != "Passed"]
    if failed:
        notes.append(f"{len(failed)} jobs did not pass ({_lines(failed)}): their figures are missing, not zero")
    if data.unread:
        notes.append(f"keys not read: {few(sorted(data.unread))}")
    return tuple(notes)


def seconds(value: Number) -> float:
    """Convert a time to seconds [s], for comparisons only."""
    return value.value * TIME_UNITS[value.unit] / NS_PER_S


def _lines(rows: list[PerfRow]) -> str:
    numbers = [str(item.line) for item in rows[:_LISTED_MAX]]
    more = f" and {len(rows) - _LISTED_MAX} more" if len(rows) > _LISTED_MAX else ""
    return f"line{'s' if len(rows) > 1 else ''} {', '.join(numbers)}{more}"


def _rates(data: PerfFile) -> list[str]:
    """Compare each published rate with one over its latency."""
    doubled: dict[str, list[PerfRow]] = defaultdict(list)
    notes = []
    for item in data.rows:
        if not item.inference_time or not item.inferences_per_second or item.inference_time.value <= 0:
            continue
        rate = item.inferences_per_second
        ratio = rate.value * seconds(item.inference_time)
        if abs(ratio - 2) < 2 * _NEAR:
            doubled[item.device or "?"].append(item)
        elif abs(ratio - 1) > _NEAR:
            passes = f", as of a pass of {ratio:.0f} tokens" if abs(ratio - round(ratio)) < _NEAR * ratio > 1 else ""
            notes.append(
                f"line {rate.line}: the rate {rate.value} is {ratio:.4g} x 1/latency{passes} ({item.place}); "
                "take the latency"
            )
    for device, rows in doubled.items():
        notes.append(
            f"the rate of {device} is 2 x 1/latency ({_lines(rows)}), as if two cores ran at once: calibrate from "
            "the latency, not from the rate"
        )
    return notes


def _outliers(data: PerfFile) -> list[str]:
    """Find latencies far above what another runtime on the same device foretells.

    Between two runtimes the ratio of latencies is much the same on every device of a file; a row that is three times
    above that ratio against every other runtime of its device is suspect.
    """
    groups: dict[tuple[str, str | None], dict[tuple[str, str], PerfRow]] = defaultdict(dict)
    for item in data.rows:
        if item.inference_time and item.inference_time.value > 0 and item.device:
            groups[item.component, item.precision][item.device, item.runtime] = item
    notes = []
    for held in groups.values():
        times = {key: seconds(item.inference_time) for key, item in held.items() if item.inference_time}
        usual = _usual_ratios(times)
        for (device, runtime), item in held.items():
            factors = [
                times[device, runtime] / times[device, other] / ratio
                for (mine, other), ratio in usual.items()
                if mine == runtime and (device, other) in times
            ]
            if factors and min(factors) >= _OUTLIER and item.inference_time:
                time = item.inference_time
                notes.append(
                    f"line {time.line}: {time.value} {time.unit} ({item.place}) is {min(factors):.1f} times what the "
                    "other runtimes on this device suggest; a published outlier, or a graph that fell back"
                )
    return notes


def _usual_ratios(times: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Return the median over devices of runtime a over runtime b, where enough devices have both."""
    runtimes = sorted({runtime for _, runtime in times})
    devices = sorted({device for device, _ in times})
    usual = {}
    for mine in runtimes:
        for other in runtimes:
            shared = [device for device in devices if (device, mine) in times and (device, other) in times]
            if mine != other and len(shared) >= _DEVICES_MIN:
                usual[mine, other] = median(times[device, mine] / times[device, other] for device in shared)
    return usual


def _chunks(data: PerfFile) -> list[str]:
    """Say when the longest time to first token is a multiple of the shortest."""
    ranges = [(item.ttft_min, item.ttft_max) for item in data.rows if item.ttft_min and item.ttft_max]
    ratios = [longest.value / shortest.value for shortest, longest in ranges if shortest.value > 0]
    whole = [round(ratio) for ratio in ratios if abs(ratio - round(ratio)) < _NEAR]
    if not whole or len(whole) < len(ratios) or max(whole) == 1:
        return []
    factors = ", ".join(str(factor) for factor in sorted(set(whole)))
    return [
        f"time to first token: max is {factors} x min in every row, the number of prompt chunks that fill the context: "
        "take min as the time of one chunk"
    ]


def _same_first_token(data: PerfFile) -> list[str]:
    """Say when two precisions share a time to first token and yet differ in token rate."""
    by_value: dict[tuple[str | None, str, str, float], list[PerfRow]] = defaultdict(list)
    for item in data.rows:
        if item.ttft_min is not None and item.tokens_per_second is not None:
            by_value[item.device, item.component, item.runtime, item.ttft_min.value].append(item)
    notes = []
    for (device, *_), rows in by_value.items():
        rates = {item.tokens_per_second.value for item in rows if item.tokens_per_second}
        if len({item.precision for item in rows}) > 1 and len(rates) > 1:
            precisions = " and ".join(str(item.precision) for item in rows)
            notes.append(f"{precisions} have the same time to first token on {device} ({_lines(rows)}), as published")
    return notes
