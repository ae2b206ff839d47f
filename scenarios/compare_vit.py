"""The main question through the Python API: python scenarios/compare_vit.py [KEY=VALUE ...], as run.duration=60s."""

import sys

from htpsim.experiments.compare import compare

COLUMNS = ("tokens_per_s", "ttft.p50", "itl.p50", "itl.p99", "vit.p50")


def main(set_values: list[str]) -> None:
    comparison = compare("vit_migration", set_values=set_values, cases=["equal"], grid=False, keep_logs=False)
    print(f"{'':24}" + "".join(f"{column:>16}" for column in COLUMNS) + f"{'device memory':>16}")
    for name, title in comparison.variants.items():
        first, *_ = comparison.summaries["equal"][name]  # one summary a replication
        figures = [first.metric(f"overall.{column}") for column in COLUMNS]
        held = first.memory["device"].steady_bytes / 2**30
        print(f"{title:24}" + "".join(f"{figure!s:>16}" for figure in figures) + f"{held:>12.2f} GiB")


if __name__ == "__main__":
    main(sys.argv[1:])
