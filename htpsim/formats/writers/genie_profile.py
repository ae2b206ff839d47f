"""A Genie profile of a simulated run: a dialog an instance, with the figures that Genie's own profile has.

``formats.genie_profile`` reads it back. A query begins when its first prefill graph is called and ends with its last
token: Genie does not see the queue before it, nor a ViT on the legacy path. A ViT on path ``genie`` is an embedding of
its own. So the time to first token here is Genie's, which is shorter than the TTFT of a request, counted from its
arrival.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from htpsim.results.columns import DONE, NEVER, STAGE_PREFILL, STAGE_VIT, Execute, Load, Request
from htpsim.results.run import RunResult
from htpsim.spec import Instance
from htpsim.spec.plan import make_plan
from htpsim.units import NS_PER_S, NS_PER_US

VERSION: Final = {"major": 0, "minor": 1, "patch": 0}

Json = dict[str, Any]


def genie_lines(result: RunResult) -> Iterator[str]:
    """Yield the lines of a profile, one event a line, without line ends.

    Examples
    --------
    >>> from htpsim.sim import simulate
    >>> from htpsim.spec import Scenario
    >>> json.loads("".join(genie_lines(RunResult(simulate(Scenario())))))["header"]["artifact_type"]
    'GENIE_PROFILE'
    """
    header = {"header_version": VERSION, "version": VERSION, "artifact_type": "GENIE_PROFILE"}
    log = result.log
    source = f"htpsim, simulated: {log.scenario.name}, seed {log.scenario.run.seed}, replication {log.replication}"
    yield f'{{"header":{json.dumps(header)},'
    yield f'"metadata":{{"timestamp":0,"source":{json.dumps(source)}}},'
    yield '"components":['
    before = ""
    for component, events in _components(result):
        yield f'{before}{{"name":{json.dumps(component[0])},"type":"{component[1]}","events":['
        waiting = ""
        for event in events:
            if waiting:
                yield f"{waiting},"
            waiting = json.dumps(event)
        yield f"{waiting}]}}"
        before = ","
    yield "]}"


def _components(result: RunResult) -> Iterator[tuple[tuple[str, str], Iterator[Json]]]:
    """Yield ((name, type), events) of every dialog, and of every ViT that Genie runs."""
    log = result.log
    loads = {(load.client, load.model): load for load in log.loads if load.role != "failed"}
    for client in make_plan(log.scenario).clients:
        for model in client.models:
            if not isinstance(client.spec, Instance) or not (model.guarded or model.bypass):
                continue
            load = loads.get((client.number, model.model.name))
            if model is client.vit:
                queries = _embeddings(result, client.number)
                yield (f"{client.name} vit", "embedding"), _events("GenieEmbedding", "generate", load, queries)
            else:
                queries = _queries(result, client.number)
                yield (client.name, "dialog"), _events("GenieDialog", "query", load, queries)


def _events(kind: str, what: str, load: Load | None, queries: Iterator[tuple[int, int, Json]]) -> Iterator[Json]:
    """Yield the loading of a component and its queries; of one that did not load nothing."""
    if load is None:
        return
    figures = {"init-time": _time(load.end_ns - load.start_ns)}
    yield _event(f"{kind}_create", load.start_ns, load.end_ns, figures)
    for begun_ns, done_ns, told in queries:
        yield _event(f"{kind}_{what}", begun_ns, done_ns, told)


def _event(kind: str, begun_ns: int, done_ns: int, figures: Json) -> Json:
    """Return one event; begin and end are whole microseconds there, rounded down."""
    start, stop = begun_ns // NS_PER_US, done_ns // NS_PER_US
    return {"type": kind, "duration": stop - start, "start": start, "stop": stop, **figures}


def _calls(result: RunResult, client: int, stage: int) -> dict[int, tuple[int, int]]:
    """Return when a client first called a graph of a stage and when the last came back, by request."""
    x = result.tables.executes
    spans: dict[int, tuple[int, int]] = {}
    for row in np.flatnonzero((x["client"] == client) & (x["stage"] == stage)).tolist():
        call = Execute(*result.log.executes[row])
        begun_ns, done_ns = spans.get(call.request, (call.called_ns, NEVER))
        spans[call.request] = min(begun_ns, call.called_ns), max(done_ns, call.returned_ns)
    return spans


def _done(result: RunResult, client: int) -> Iterator[Request]:
    """Yield the requests of a client that ended in the measured window."""
    r = result.tables.requests
    ended = (r["client"] == client) & (r["state"] == DONE) & result.tables.measured(r["done_ns"])
    yield from (Request(*result.log.requests[row]) for row in np.flatnonzero(ended).tolist())


def _embeddings(result: RunResult, client: int) -> Iterator[tuple[int, int, Json]]:
    """Yield (begin, end, figures) of the ViT of every request that has images."""
    spans = _calls(result, client, STAGE_VIT)
    for request in _done(result, client):
        if request.request in spans:
            yield *spans[request.request], {}


def _queries(result: RunResult, client: int) -> Iterator[tuple[int, int, Json]]:
    """Yield (begin, end, figures) of every dialog query.

    The rate of generation is (n - 1) tokens over the time after the first, as libGenie 1.19 and later define it.
    """
    spans = _calls(result, client, STAGE_PREFILL)
    for request in _done(result, client):
        if request.request not in spans:
            continue
        begun_ns = spans[request.request][0]
        first_ns, generation_ns = request.first_token_ns - begun_ns, request.done_ns - request.first_token_ns
        figures = {
            "num-prompt-tokens": {"value": request.prompt_tokens, "unit": ""},
            "prompt-processing-rate": _rate(request.prompt_tokens, first_ns),
            "time-to-first-token": _time(first_ns),
            "num-generated-tokens": {"value": request.tokens, "unit": ""},
            "token-generation-rate": _rate(request.tokens - 1, generation_ns),
            "token-generation-time": _time(generation_ns),
        }
        told = {name: figure for name, figure in figures.items() if figure is not None}
        yield begun_ns, request.done_ns, told


def _time(time_ns: int) -> Json:
    """Return a time in microseconds, exact to the nanosecond."""
    return {"value": time_ns // NS_PER_US if time_ns % NS_PER_US == 0 else time_ns / NS_PER_US, "unit": "us"}


def _rate(tokens: int, time_ns: int) -> Json | None:
    """Return tokens a second; None where there is nothing to divide."""
    return {"value": tokens * NS_PER_S / time_ns, "unit": "toks/sec"} if tokens > 0 and time_ns > 0 else None
