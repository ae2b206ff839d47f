"""A run's log as one hash: two runs are the same when everything they leave behind is."""

from __future__ import annotations

import hashlib

from htpsim.results import RunLog


def text(log: RunLog) -> str:
    """Write everything that a run leaves behind, in full."""
    parts = [log.ready_ns, log.start_ns, log.end_ns, log.clients, log.graphs, log.accounts, log.executes, log.requests]
    parts += [log.slices, log.memory, log.loads, log.copies, sorted(log.failed.items()), log.notes]
    return "\n".join(map(repr, parts))


def digest(log: RunLog) -> str:
    """Return the hash of that text."""
    return hashlib.sha256(text(log).encode()).hexdigest()[:16]
