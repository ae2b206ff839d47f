"""The draws of one client, by purpose: shapes of requests, arrivals, service times."""

from __future__ import annotations

from htpsim.rng import draw, draws, pick, stream_key
from htpsim.spec import Distribution, table
from htpsim.spec.plan import GraphPlan

REQUEST_BITS = 24
"""A request's draws of one purpose are numbered from request << 24."""


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

    def service(self, purpose: str, request: int, steps: int, graphs: list[GraphPlan]) -> list[int]:
        """Return the 32-bit draws of a request's service times, `steps` x the graphs of one step, in a flat list."""
        width = 1 + max((g.draw for g in graphs), default=0)
        if all(len(g.solo_ns) == 1 for g in graphs):
            return [0] * (steps * width)
        uniforms: list[int] = draws(self._key(purpose), request << REQUEST_BITS, steps * width).tolist()
        return uniforms
