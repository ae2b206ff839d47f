"""Generated logs: small machines with everything that can end badly, ties and a short horizon included."""

from __future__ import annotations

from hypothesis import strategies as st

from htpsim.results import RunLog
from htpsim.spec import Device, Guard, Instance, Registry, Run, Scenario, constant
from tests.results.synthetic import Machine, model

times = st.integers(1, 40)


@st.composite
def logs(draw: st.DrawFn) -> RunLog:
    """Draw a finished log of one to four instances on one or two cores; a window that may cut anything in two."""
    names = "abcd"[: draw(st.integers(1, 4))]
    vit = model("vit", "vit", graphs=draw(times))
    llm = model("llm", "llm", prefill=draw(times), decode=draw(times))
    instances = tuple(
        Instance(
            name=name,
            weight=draw(st.integers(1, 4)),
            vit=vit,
            llm=llm,
            vit_path=draw(st.sampled_from(["genie", "qnn"])),
            output_tokens=constant(draw(st.integers(1, 8))),
            queue_limit=draw(st.sampled_from([None, 0, 1])),
            ttft_deadline_ns=draw(st.sampled_from([None, 50, 200])),
            itl_deadline_ns=draw(st.sampled_from([None, 10, 60])),
        )
        for name in names
    )
    scenario = Scenario(
        device=Device(cores=draw(st.integers(1, 2)), load_bandwidth=10**15),
        guard=Guard(
            slots=draw(st.integers(0, 2)),
            slots_per="process",
            policy=draw(st.sampled_from(["fifo", "sfq"])),
        ),
        registry=Registry(vit=draw(st.booleans())),
        run=Run(duration_ns=draw(st.integers(1, 1500)), warmup_ns=draw(st.integers(0, 300))),
        instances=instances,
    )
    ready = Machine(scenario, {}).ready_ns
    arrivals = {
        i: sorted(ready + t for t in draw(st.lists(st.integers(0, 800), max_size=5))) for i in range(len(instances))
    }
    return Machine(scenario, arrivals, rpc_ns=draw(st.integers(0, 3))).run()
