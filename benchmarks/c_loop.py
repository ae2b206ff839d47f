"""The bare loop in C: compiled on the spot, if there is a compiler; what a loop that knows nothing else would reach."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from htpsim.kernel.layout import Values, signed, width
from htpsim.rng import stream_key
from htpsim.spec import Scenario, table
from htpsim.spec.plan import ClientPlan, GraphPlan, make_plan

SOURCE: Final = Path(__file__).with_name("loop.c")
STAGES: Final = ("vit", "prefill", "decode")


@lru_cache(maxsize=1)
def compiled() -> Any:
    """Return the function ``run`` of the C source, or None where there is no compiler."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "loop.so"
        options = ["-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC"]
        subprocess.run([compiler, *options, "-o", library, SOURCE], check=True)
        run = ctypes.CDLL(str(library)).run
    run.restype = ctypes.c_int64
    run.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 4
    return run


class CLoop:
    """The model, ready to run."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.values = Values()
        self.graphs: list[tuple[int, int, int]] = []
        plan = make_plan(scenario)
        self.slots = plan.slots()
        records = [self.client(client) for client in plan.clients]
        self.tables = [np.array(each, dtype=np.int64) for each in (records, self.graphs)] + [self.values.all()]

    def client(self, client: ClientPlan) -> list[int]:
        """Return a client's record, in the order of the C source."""
        spec: Any = client.spec
        assert client.vit is not None
        assert client.llm is not None
        groups = (client.vit.graphs, client.llm.prefill, client.llm.decode)
        chunks = -(-(spec.text_tokens.mean + client.vit.model.tokens_per_image) // client.llm.model.ar)
        firsts = [self.first_of(graphs) for graphs in groups]
        think = table(spec.arrivals.think)
        return [
            spec.weight,
            client.number % self.scenario.device.cores,
            *(client.vit.guarded, 1, 1),
            *(self.key(client, stage) for stage in STAGES),
            *(width(graphs) for graphs in groups),
            *firsts,
            *(len(graphs) for graphs in groups),
            *(1, chunks, spec.output_tokens.mean - 1),
            *(self.key(client, "think"), self.values.add(think), len(think)),
        ]

    def key(self, client: ClientPlan, purpose: str) -> int:
        """Return the key of a stream of draws."""
        return signed(stream_key(self.scenario.run.seed, 0, client.name, purpose))

    def first_of(self, graphs: list[GraphPlan]) -> int:
        """Add graphs; return the position of the first."""
        first = len(self.graphs)
        self.graphs += [(self.values.add(g.solo_ns), len(g.solo_ns), g.draw) for g in graphs]
        return first

    def run(self) -> int:
        """Run; return how many graphExecutes finished."""
        scenario, addresses = self.scenario, [each.ctypes.data for each in self.tables]
        many, cores, until_ns = len(self.tables[0]), scenario.device.cores, scenario.run.duration_ns
        return int(compiled()(*addresses, many, cores, self.slots, until_ns))
