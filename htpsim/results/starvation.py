"""Who starved: a call unfinished for longer than 100 times its solo time, and than half the measured time.

The mean over the few calls of a starved client that did end says nothing about it, so its means are withheld.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from htpsim.results.columns import NEVER, STAGES
from htpsim.results.tables import Tables
from htpsim.units import format_time

SOLO_TIMES: Final = 100


def starved(tables: Tables) -> dict[int, str]:
    """Return for each starved client what its longest such call is, in words."""
    x, log = tables.executes, tables.log
    returned = x["returned_ns"]
    until = np.where((returned == NEVER) | (returned > log.end_ns), log.end_ns, returned)
    age = until - x["called_ns"]
    hungry = (age > SOLO_TIMES * x["solo_ns"]) & (2 * age > tables.length_ns) & (until > log.start_ns)
    words: dict[int, str] = {}
    rows = np.flatnonzero(hungry)
    for row in rows[np.lexsort((x["execute"][rows], -age[rows]))].tolist():
        client = int(x["client"][row])
        if client not in words:
            ended = "took" if int(returned[row]) == int(until[row]) else "unfinished for"
            words[client] = (
                f"a {STAGES[int(x['stage'][row])]} call of request {int(x['request'][row])} {ended} "
                f"{format_time(int(age[row]))}; alone it takes {format_time(int(x['solo_ns'][row]))}"
            )
    return dict(sorted(words.items()))
