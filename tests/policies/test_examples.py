"""The policies under docs/ run as they stand, and do what they say."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.scenario import load
from htpsim.sched import policy_card, policy_class
from htpsim.sim import simulate
from tests.policies.harness import Client, drive
from tests.policies.test_bounds import LONGEST, backlogged, busy_until, share, streams, weighed
from tests.policies.test_policies import order

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "policies"
EXAMPLES = ("cfs_like:CfsLike", "prema:Prema", "mlfq:Mlfq")
IN_NS = {
    "prema:Prema": {},
    "mlfq:Mlfq": {"allotment_ns": 20, "boost_ns": 1_000},
    "cfs_like:CfsLike": {"sleeper_credit_ns": 0},
}


@pytest.fixture(autouse=True, scope="module")
def importable() -> object:
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(FOLDER))
    yield
    patch.undo()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_a_policy_outside_the_package(name: str) -> None:
    policy = policy_class(name)

    assert Path(inspect.getfile(policy)).parent == FOLDER
    assert policy_card(policy).summary
    assert "htpsim" not in Path(inspect.getfile(policy)).read_text(encoding="utf-8").split('"""')[2]


@given(clients=streams(), name=st.sampled_from(EXAMPLES))
def test_work_is_conserved(clients: list[Client], name: str) -> None:
    wanted = drive("fifo", clients, grants=10_000)

    trace = drive(name, clients, grants=10_000, **IN_NS[name])

    assert weighed(trace) == weighed(wanted)
    assert busy_until(trace) == busy_until(wanted)


@given(clients=backlogged(), name=st.sampled_from(EXAMPLES))
def test_nobody_starves(clients: list[Client], name: str) -> None:
    trace = drive(name, clients, grants=400, **IN_NS[name])

    assert {s.client for s in trace.served} == set(range(len(clients)))


def test_cfs_shares_by_weight_and_serves_a_sleeper_early() -> None:
    steady = drive("cfs_like:CfsLike", [Client((10,), weight=4), Client((10,), weight=1)], grants=500)
    assert share(steady, 0) == pytest.approx(0.8, abs=0.02)

    sleeper = Client((10,), arrivals_ns=(1_000, 1_000, 1_000, 1_000, 1_000))
    busy = Client((10,), weight=1)
    with_credit, without = (
        order(drive("cfs_like:CfsLike", [busy, sleeper], grants=130, sleeper_credit_ns=credit)) for credit in (50, 0)
    )
    assert with_credit.rindex("b") < without.rindex("b")


def test_prema_lets_the_short_go_first_until_the_long_has_waited() -> None:
    eager = order(drive("prema:Prema", [Client((100,)), Client((10,))], grants=60, threshold_percent=1))
    patient = order(drive("prema:Prema", [Client((100,)), Client((10,))], grants=60, threshold_percent=100))

    assert "b" * 10 in eager
    assert eager.count("a") < patient.count("a")


def test_mlfq_finds_out_who_is_interactive() -> None:
    hog, talker = Client((LONGEST,)), Client((5,), think_ns=200)

    trace = drive("mlfq:Mlfq", [hog, talker], grants=200, allotment_ns=20, boost_ns=10_000)

    assert max(s.wait_ns for s in trace.of(1)) <= LONGEST
    assert "aa" in order(trace)


def test_a_weight_means_nothing_to_mlfq() -> None:
    trace = drive("mlfq:Mlfq", [Client((10,), weight=9), Client((10,))], grants=200, allotment_ns=20, boost_ns=1_000)

    assert share(trace, 0) == pytest.approx(0.5, abs=0.02)


def test_the_scenario_of_the_examples_runs() -> None:
    loaded = load(FOLDER / "own_policies.toml")
    served = {}
    for variant in ("sfq", "cfs_like", "prema", "mlfq"):
        log = simulate(loaded.resolve(variant).scenario, check=True)
        served[variant] = sum(1 for row in log.executes if row[1] < 3)  # what the dialogs got

    assert served["prema"] > served["sfq"] > served["mlfq"] > 500


def test_the_page_tells_of_every_example() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")

    for name in EXAMPLES:
        assert name in page
    assert set(re.findall(r"\]\((\w+\.(?:py|toml))\)", page)) <= {p.name for p in FOLDER.iterdir()}
