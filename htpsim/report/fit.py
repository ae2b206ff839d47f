"""How many instances fit, as tables: the number, what refuses the next, what they take, and where it lies."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from htpsim.experiments.fit import LIMITS, Fit, Fits, Packed, device_bytes
from htpsim.report.cells import NONE, number, stack, table
from htpsim.units import format_bytes

_OPTIONAL: Final = ("dram_budget_bytes", "host_budget_bytes", "mapping_limit_bytes", "contexts_per_process")
"""Limits that a scenario need not set."""


def fit_page(fits: Fits) -> RenderableType:
    """Return how many fit by variant, what that takes, and the packing of each variant that packs in its own way."""
    first = next(iter(fits.fits.values()))
    unset = [name for name in _OPTIONAL if getattr(first.device, name) is None]
    said = f"Not asked, because the scenario sets no value: {', '.join(f'device.{name}' for name in unset)}."
    refusals = {fit.reason: None for fit in fits.fits.values() if fit.reason}
    return stack(
        table(f"How many instances fit: {fits.file.title}",
              ["variant", "fit", "the limit that refuses the next", "one more needs", "without that limit"],
              [_answer(name, fit) for name, fit in fits.fits.items()], left=1, fixed=False),
        table("What that many take [GiB]", ["variant", "fit", "DRAM", "DRAM peak", "host", "host peak", "load [s]"],
              [_takes(name, fit) for name, fit in fits.fits.items()], fixed=False),
        *_packings(fits),
        *(Text(f"! {reason}", style="yellow") for reason in refusals),
        Text(said, style="dim") if unset else None,
    )  # fmt: skip


def _answer(name: str, fit: Fit) -> list[str]:
    if not fit.limit:
        return [name, str(fit.most) if fit.reason else f"{fit.most} or more", "none of the device", NONE, NONE]
    then = f"{fit.next_most}, then {LIMITS.get(fit.next_limit, fit.next_limit)}"
    return [name, str(fit.most), f"{LIMITS[fit.limit]}: {_amount(fit.limit, getattr(fit.device, fit.limit))}",
            "not that alone" if fit.more is None else f"{_amount(fit.limit, fit.more)} more",
            "all asked for" if fit.next_most is None else then]  # fmt: skip


def _amount(limit: str, value: int) -> str:
    return format_bytes(value) if limit.endswith("bytes") else f"{value:,}"


def _takes(name: str, fit: Fit) -> list[str]:
    host = fit.loaded.ledgers.get("host")
    sizes = (*device_bytes(fit.loaded), *((host.steady_bytes, host.peak_bytes) if host else (0, 0)))
    return [name, str(fit.most), *(number(size, "bytes") for size in sizes), f"{fit.loaded.load_ns / 1e9:.1f}"]


def _packings(fits: Fits) -> list[RenderableType]:
    """Return a table for each packing that differs, named by the variants that have it."""
    alike: dict[tuple[Packed, ...], list[str]] = {}
    for name, fit in fits.fits.items():
        alike.setdefault(fit.loaded.packing, []).append(name)
    return [
        table(
            f"Packing of {', '.join(names)}",
            ["PD [GiB]", "copies", "contexts", "I/O and KV", "held", "free"],
            [_pd(pd) for pd in packing],
            left=2,
        )
        for packing, names in alike.items()
        if packing
    ]


def _pd(pd: Packed) -> list[str]:
    """Return what one PD holds: copies by model, bytes of contexts and of what their users add."""
    copies: dict[str, set[str]] = {}
    for model, context, _ in pd.contexts:
        copies.setdefault(model, set()).add(context.rsplit("/", 1)[0])
    sizes = (sum(size for _, _, size in pd.contexts), pd.users_bytes, pd.held_bytes, pd.limit_bytes - pd.held_bytes)
    said = ", ".join(f"{len(names)} of {model}" for model, names in copies.items())
    return [pd.place, said or NONE, *(number(size, "bytes") for size in sizes)]


def fit_dict(fits: Fits) -> dict[str, Any]:
    """Return the same in JSON form: times in nanoseconds, sizes in bytes."""
    return {
        row["variant"]: {
            **{key: value for key, value in row.items() if key != "variant"},
            "packing": [asdict(pd) for pd in fits[row["variant"]].loaded.packing],
        }
        for row in fits.rows
    }
