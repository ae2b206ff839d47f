"""The samples behind every latency: one array of values, one of clients; a sample counts when it ends in the window.

What each measure means stands in `DEFINITIONS`, which every output carries along: a TTFT that leaves out the queue or
counts from another origin is the most common fault of such tools.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from htpsim.results.columns import DONE, NEVER, QUEUED, RUNNING, STAGE_PREFILL, STAGE_VIT
from htpsim.results.metric import BoolArray, IntArray
from htpsim.results.tables import Tables

DEFINITIONS: Final = {
    "window": "measured window: after all loads and the warm-up, up to the end; a sample counts when it ends in it",
    "quantiles": "order statistics (inverted CDF): a value that occurred; withheld below 2/(1-p) samples, at least 5",
    "ttft": "first token - arrival of the request; waiting in the queue and the ViT are part of it",
    "itl": "time between two consecutive tokens of one request",
    "tpot": "(last token - first token) / (tokens - 1) of a finished request",
    "tokens_per_s": "tokens emitted in the window / length of the window",
    "vit": "last ViT return - first ViT call of a request, all its images",
    "vit_image": "last ViT return - first ViT call of one image",
    "prefill": "first token - first prefill call of a request",
    "job": "end of a job - its arrival, waiting included",
    "slow_tokens": "share of tokens whose gap is above 1.5 x the median gap of their client",
    "worst_gap": "largest gap between two tokens of a finished request",
    "misses": "samples beyond the deadline, and those still open at the end that are already beyond it",
    "guard_wait": "granted - called, of calls that pass the guard",
    "device_wait": "(started - submitted) + time waiting while evicted",
    "device_time": "time on a core within the window: acquire + run + evict + restore; a gang counts on each core",
    "fair_share": "weighted max-min share of the cores, no client above what it would take alone",
    "utilisation": "share of the window in which a core runs at least one client",
    "starved": "a call unfinished for longer than 100 x its solo time and than half the window; its means are withheld",
}

NO_CALL: Final = int(np.iinfo(np.int64).max)


class Sample(NamedTuple):
    """Values of one measure, each with its client; ordered by client, then by time or number."""

    client: IntArray
    value_ns: IntArray


def of_client(sample: Sample, client: int) -> IntArray:
    """Return the values of one client.

    >>> of_client(Sample(np.array([0, 1, 1]), np.array([7, 8, 9])), 1).tolist()
    [8, 9]
    """
    values: IntArray = sample.value_ns[sample.client == client]
    return values


def ttft(tables: Tables) -> Sample:
    """Return the time to first token of every request whose first token fell in the window."""
    r = tables.requests
    rows = tables.measured(r["first_token_ns"])
    return Sample(r["client"][rows], (r["first_token_ns"] - r["arrived_ns"])[rows])


def itl(tables: Tables) -> Sample:
    """Return the gap before every token in the window but the first of its request."""
    tokens = tables.tokens
    rows = tables.measured(tokens.time_ns) & (tokens.gap_ns != NEVER)
    return Sample(tokens.client[rows], tokens.gap_ns[rows])


def tpot(tables: Tables) -> Sample:
    """Return the mean gap, to the nanosecond, of every request with two tokens or more that finished in the window."""
    r = tables.requests
    rows = _finished_with_gaps(tables)
    return Sample(r["client"][rows], ((r["done_ns"] - r["first_token_ns"])[rows]) // (r["tokens"][rows] - 1))


def worst_gap(tables: Tables) -> Sample:
    """Return the largest gap of every request with two tokens or more that finished in the window."""
    r, tokens = tables.requests, tables.tokens
    worst = np.full(len(r), NEVER, dtype=np.int64)
    if len(tokens.client):
        np.maximum.at(worst, tables.request_rows(tokens.client, tokens.request), tokens.gap_ns)
    rows = _finished_with_gaps(tables)
    return Sample(r["client"][rows], worst[rows])


def vit(tables: Tables) -> Sample:
    """Return the ViT latency of every request whose last image was done in the window."""
    r = tables.requests
    rows = tables.measured(r["vit_done_ns"])
    first = _first_call(tables, STAGE_VIT)
    begun = np.where(first == NO_CALL, r["begun_ns"], first)  # a ViT on the host calls no graph
    return Sample(r["client"][rows], (r["vit_done_ns"] - begun)[rows])


def vit_image(tables: Tables) -> Sample:
    """Return the ViT latency of every image that was done in the window."""
    x, r = tables.executes, tables.requests
    vits = np.flatnonzero(x["stage"] == STAGE_VIT)
    if not len(vits):
        return Sample(vits, vits)
    request, step, returned = tables.request_of[vits], x["step"][vits], x["returned_ns"][vits]
    last_step = np.full(len(r), NEVER, dtype=np.int64)
    np.maximum.at(last_step, request, step)
    images, image_of = np.unique(request * (int(step.max()) + 1) + step, return_inverse=True)
    first = np.full(len(images), np.iinfo(np.int64).max)
    last = np.zeros(len(images), dtype=np.int64)
    np.minimum.at(first, image_of, x["called_ns"][vits])
    np.maximum.at(last, image_of, np.where(returned == NEVER, tables.log.end_ns + 1, returned))
    request, step = np.divmod(images, int(step.max()) + 1)
    # The last image seen may still have graphs to come, unless the whole ViT is known to be done.
    complete = (step < last_step[request]) | (r["vit_done_ns"][request] != NEVER)
    rows = complete & tables.measured(last)
    return Sample(r["client"][request[rows]], (last - first)[rows])


def prefill(tables: Tables) -> Sample:
    """Return the time from first prefill call to first token of every request whose first token fell in the window."""
    r = tables.requests
    rows = tables.measured(r["first_token_ns"])
    return Sample(r["client"][rows], (r["first_token_ns"] - _first_call(tables, STAGE_PREFILL))[rows])


def job(tables: Tables) -> Sample:
    """Return the latency of every job of another client that ended in the window."""
    r = tables.requests
    rows = tables.measured(r["done_ns"]) & (r["state"] == DONE) & (r["client"] >= len(tables.log.scenario.instances))
    return Sample(r["client"][rows], (r["done_ns"] - r["arrived_ns"])[rows])


MEASURES: Final = {
    "ttft": ttft,
    "itl": itl,
    "tpot": tpot,
    "vit": vit,
    "vit_image": vit_image,
    "prefill": prefill,
    "job": job,
    "worst_gap": worst_gap,
}


def open_first_tokens(tables: Tables) -> Sample:
    """Return the age at the end of every request of an instance that is still without its first token."""
    r = tables.requests
    still = (r["first_token_ns"] == NEVER) & (r["client"] < len(tables.log.scenario.instances)) & _alive(tables)
    return Sample(r["client"][still], tables.log.end_ns - r["arrived_ns"][still])


def open_gaps(tables: Tables) -> Sample:
    """Return the time since its last token of every request that is amid its tokens at the end."""
    r, tokens = tables.requests, tables.tokens
    latest = np.full(len(r), NEVER, dtype=np.int64)
    if len(tokens.client):
        np.maximum.at(latest, tables.request_rows(tokens.client, tokens.request), tokens.time_ns)
    still = (latest != NEVER) & (r["state"] == RUNNING) & (r["tokens"] < r["output_tokens"])
    return Sample(r["client"][still], tables.log.end_ns - latest[still])


def open_jobs(tables: Tables) -> Sample:
    """Return the age at the end of every unfinished job of another client."""
    r = tables.requests
    still = (r["client"] >= len(tables.log.scenario.instances)) & _alive(tables)
    return Sample(r["client"][still], tables.log.end_ns - r["arrived_ns"][still])


def _alive(tables: Tables) -> BoolArray:
    state = tables.requests["state"]
    alive: BoolArray = (state == QUEUED) | (state == RUNNING)
    return alive


def _finished_with_gaps(tables: Tables) -> BoolArray:
    r = tables.requests
    finished: BoolArray = tables.measured(r["done_ns"]) & (r["state"] == DONE) & (r["tokens"] > 1)
    return finished


def _first_call(tables: Tables, stage: int) -> IntArray:
    """Return when each request first called a graph of the stage; NO_CALL where it never did."""
    x = tables.executes
    first = np.full(len(tables.requests), NO_CALL)
    rows = x["stage"] == stage
    np.minimum.at(first, tables.request_of[rows], x["called_ns"][rows])
    return first
