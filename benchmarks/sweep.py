"""What a point of a sweep costs, how two workers share them, and what handing a task to a cluster costs.

Run with ``python -m benchmarks.sweep`` on an otherwise idle machine; docs/scale.md has what came out.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from htpsim.experiments.sweep import sweep

AXES = ["device.evict=0us..400us", "guard.overhead=0us..100us"]
SHORT = ['run.duration="10s"', 'run.warmup="0s"']


def timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def points_a_second(points: int, workers: int) -> float:
    """Run so many points of the four-VLM scenario, 10 s simulated each, and return how many a second."""
    seconds = timed(
        lambda: sweep("four_vlms", AXES, design="lhs", points=points, replications=1, set_values=SHORT, workers=workers)
    )
    return points / seconds


def task_overhead_s(tasks: int) -> float:
    """Return what a task that does nothing costs on a Dask cluster of two workers on this machine."""
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.gather(client.map(abs, range(100), pure=False))
        return timed(lambda: client.gather(client.map(abs, range(tasks), pure=False))) / tasks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    rates: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(given.rounds):
        for workers, found in rates.items():
            found.append(points_a_second(given.points, workers))
            print(f"{workers} worker(s): {found[-1]:.1f} points/s", flush=True)
    ratios = [two / one for one, two in zip(*rates.values(), strict=True)]
    for workers, found in rates.items():
        print(f"{workers} worker(s): {min(found):.1f} / {statistics.median(found):.1f} / {max(found):.1f} points/s")
    print(f"two against one: {min(ratios):.2f} / {statistics.median(ratios):.2f} / {max(ratios):.2f}")
    print(f"a task that does nothing: {1e3 * task_overhead_s(5000):.2f} ms")


if __name__ == "__main__":
    main()
