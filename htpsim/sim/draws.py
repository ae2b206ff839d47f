"""The draws of one client, by purpose: shapes of requests, arrivals, service times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from htpsim.rng import draw, draws, pick, stream_key
from htpsim.spec import Distribution, table
from htpsim.spec.plan import GraphPlan

REQUEST_BITS = 24
"""A request's draws of one purpose are numbered from request << 24."""
FEW = 8
"""Up to so many draws are made one by one: NumPy takes its time to begin."""

Times = list[tuple[int, int]]
"""For each graphExecute its time alone, in ns, and its DRAM demand, in bytes a second."""


class Draws:
    """Addressed draws of one client in one replication."""

    def __init__(self, seed: int, replication: int, client: str) -> None:
        self._address = (seed, replication, client)
        self._keys: dict[str, int] = {}

    def _key(self, purpose: str) -> int:
        key = self._keys.get(purpose)
        if key is None:
            key = self._keys[purpose] = stream_key(*self._address, purpose)
        return key

    def value(self, purpose: str, index: int, distribution: Distribution) -> int:
        """Return draw number `index` of a distribution for one purpose."""
        values = table(distribution)
        if len(values) == 1:
            return int(values[0])
        return int(values[pick(draw(self._key(purpose), index), len(values))])

    def service(self, purpose: str, request: int, steps: int, graphs: Sequence[GraphPlan], first: int = 0) -> Times:
        """Return the service times of a request: `steps` times those of `graphs`, from step `first` on, in a flat list.

        Each step has a draw for every graph as it was before any cut: segments of one graph use the same.
        """
        if all(len(g.solo_ns) == 1 for g in graphs):
            return [(int(g.solo_ns[0]), int(g.demand[0])) for g in graphs] * steps
        width = 1 + max(g.draw for g in graphs)
        begin, key = (request << REQUEST_BITS) + first * width, self._key(purpose)
        if steps * width <= FEW:
            uniforms = [draw(key, begin + n) for n in range(steps * width)]
            entries = [(g, pick(uniforms[s * width + g.draw], len(g.solo_ns))) for s in range(steps) for g in graphs]
            return [(int(g.solo_ns[n]), int(g.demand[n])) for g, n in entries]
        many = draws(key, begin, steps * width).reshape(steps, width)
        solo_ns: npt.NDArray[np.int64] = np.empty((steps, len(graphs)), dtype=np.int64)
        demand = np.empty_like(solo_ns)
        for column, g in enumerate(graphs):
            chosen = many[:, g.draw] * np.uint64(len(g.solo_ns)) >> np.uint64(32)
            solo_ns[:, column], demand[:, column] = g.solo_ns[chosen], g.demand[chosen]
        return list(zip(solo_ns.ravel().tolist(), demand.ravel().tolist(), strict=True))
