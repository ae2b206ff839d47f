"""What surprises users: every effect is there, with the numbers that follow from arithmetic.

All times are constants and every window is a whole number of rounds, so shares and times are exact. Times in ms.
"""

from __future__ import annotations

import pytest

from htpsim.results.summary import Summary
from htpsim.scenario import load
from htpsim.sched import policies
from tests.scenarios.support import SCENARIOS, job_ms, number, summary

pytestmark = pytest.mark.slow

POLICIES = [card.name for card in policies()]
BY_WEIGHT = ["sfq", "stride", "drr", "lottery", "eevdf", "quota"]


def exactly(value: float) -> object:
    """Return what equals `value` but for the last digits of a float."""
    return pytest.approx(value, rel=1e-9)


def share(figures: Summary, client: str) -> float:
    return number(figures, f"clients.{client}.device.share")


def itl_ms(figures: Summary, client: str, statistic: str = "mean") -> float:
    return number(figures, f"clients.{client}.itl.{statistic}") / 1e6


class TestOneCallAtATime:
    """A step of 10 and a gap of 1 beside graphs of 30, back to back: one step for each graph, whatever the weight."""

    NAME = "surprise_one_call_at_a_time"

    @pytest.mark.parametrize("weight", [1, 3, 99])
    def test_a_quarter_of_the_core_at_every_weight(self, weight: int) -> None:
        figures = summary(self.NAME, f"weight_{weight}")

        assert share(figures, "dialog") == exactly(10 / (10 + 30))
        assert number(figures, "clients.dialog.device.weight_share") == exactly(weight / (weight + 1))
        assert itl_ms(figures, "dialog") == itl_ms(figures, "dialog", "max") == 10 + 30
        assert number(figures, "cores.core 0.utilisation") == 1, "the core is not what is missing"

    @pytest.mark.parametrize("policy", BY_WEIGHT)
    def test_no_policy_gives_more_to_who_is_away(self, policy: str) -> None:
        """At most one step for each graph of the other; a lottery may give less, and so may a memory of debts."""
        figures = summary(self.NAME, "weight_99", set_values=[f"guard.policy={policy}", "run.duration=4s"])

        assert 0 < share(figures, "dialog") <= 10 / (10 + 30) + 1e-9

    def test_without_the_gap_the_weight_is_the_share(self) -> None:
        figures = summary(self.NAME, "no_gap")

        assert share(figures, "dialog") == exactly(3 / 4)
        assert itl_ms(figures, "dialog") == pytest.approx(10 / (3 / 4), rel=1e-3), "prefills are no gaps"

    def test_with_the_gap_inside_the_guard_too_but_the_core_idles(self) -> None:
        """Nine tokens of 11 for each graph of 30: 90 of the 120 busy, of a round of 129."""
        figures = summary(self.NAME, "gap_inside")

        assert share(figures, "dialog") == exactly(90 / 120)
        assert number(figures, "cores.core 0.utilisation") == exactly(120 / 129)


class TestAsManySlots:
    """Loops of 10, weights 9:1, both on core 0 of two."""

    NAME = "surprise_as_many_slots"

    def test_two_slots_make_half_and_half(self) -> None:
        figures = summary(self.NAME, "two_slots")

        assert [share(figures, f"loop{n}") for n in (0, 1)] == [exactly(1 / 2)] * 2
        assert number(figures, "guard.choices") == 0
        assert "as many slots (2) as clients in the guard (2)" in figures.guard.weights_without_effect

    @pytest.mark.parametrize("policy", BY_WEIGHT)
    def test_under_every_policy_that_knows_weights(self, policy: str) -> None:
        figures = summary(self.NAME, "two_slots", set_values=[f"guard.policy={policy}", "run.duration=2s"])

        assert share(figures, "loop0") == exactly(1 / 2)

    @pytest.mark.parametrize("variant", ["one_slot", "slot_a_core"])
    def test_one_slot_for_the_core_makes_nine_to_one(self, variant: str) -> None:
        figures = summary(self.NAME, variant)

        assert [share(figures, f"loop{n}") for n in (0, 1)] == [exactly(9 / 10), exactly(1 / 10)]
        assert figures.guard.weights_without_effect == ""

    def test_a_third_thread_gives_the_heavy_one_no_more_than_every_other_turn(self) -> None:
        figures = summary(self.NAME, "three_threads")

        assert [share(figures, f"loop{n}") for n in range(3)] == [exactly(1 / 2), exactly(1 / 4), exactly(1 / 4)]
        assert number(figures, "clients.loop0.device.fair_share") == exactly(9 / 11)

    def test_and_with_one_slot_its_weight_counts(self) -> None:
        figures = summary(self.NAME, "three_threads_one_slot")

        assert [share(figures, f"loop{n}") for n in range(3)] == [exactly(9 / 11), exactly(1 / 11), exactly(1 / 11)]


class TestLongVit:
    """Steps of 10 with a gap of 1; a ViT of 160 is called 5 into a step and let in when the step returns."""

    NAME = "surprise_long_vit"

    @pytest.mark.parametrize("policy", POLICIES)
    def test_the_whole_vit_blocks_a_step_under_every_policy(self, policy: str) -> None:
        figures = summary(self.NAME, "sfq", set_values=[f"guard.policy={policy}", "run.duration=7s"])

        assert itl_ms(figures, "dialog", "max") == 160 + 10
        assert number(figures, "clients.dialog.guard_wait.max") / 1e6 == 160 - 1, "it calls a gap later"
        assert number(figures, "guard.choices") == 0, "no policy ever had a choice"
        assert number(figures, "clients.looker.vit.max") / 1e6 == 5 + 160

    def test_the_file_has_a_variant_for_every_policy(self) -> None:
        file = load(SCENARIOS / f"{self.NAME}.toml")

        assert {name: file.resolve(name).scenario.guard.policy for name in POLICIES} == {
            name: name for name in POLICIES
        }

    def test_a_guard_that_would_rather_idle_than_overdraw_blocks_it_as_long(self) -> None:
        """Weight 1 has 1 ms of every 100: a ViT is paid off after 16 s, and the next one then comes in whole."""
        settings = ["guard.policy=quota", "guard.params.idle_over_budget=1", "run.duration=50s"]
        figures = summary(self.NAME, "sfq", set_values=settings)

        assert number(figures, "clients.looker.images_per_s") * 50 == pytest.approx(50 / 16, abs=1)
        assert 160 + 10 <= itl_ms(figures, "dialog", "max") <= 1 + 160 + 10

    @pytest.mark.parametrize("k", [2, 4, 8])
    @pytest.mark.parametrize("policy", ["priority", "sfq", "edf"])
    def test_in_k_graphs_it_waits_for_one_of_them(self, policy: str, k: int) -> None:
        figures = summary(self.NAME, f"split_{k}", set_values=[f"guard.policy={policy}", "run.duration=7s"])

        assert itl_ms(figures, "dialog", "max") == 160 / k + 10
        assert number(figures, "clients.dialog.guard_wait.max") / 1e6 <= 160 / k
        assert number(figures, "clients.looker.vit.max") / 1e6 == 5 + 160 + (k - 1) * 10, "a step for each cut"


class TestPastTheGuard:
    """Steps of 10 through the guard beside graphs of 20 past it, both back to back."""

    NAME = "surprise_past_the_guard"

    @pytest.mark.parametrize("weight", [1, 9, 99])
    def test_a_turn_each_at_every_weight(self, weight: int) -> None:
        figures = summary(self.NAME, f"weight_{weight}")

        assert share(figures, "dialog") == exactly(10 / (10 + 20))
        assert itl_ms(figures, "dialog") == itl_ms(figures, "dialog", "max") == 10 + 20
        assert number(figures, "guard.waited") == 0, "it never waits where its weight counts"

    @pytest.mark.parametrize("policy", POLICIES)
    def test_under_every_policy(self, policy: str) -> None:
        figures = summary(self.NAME, "weight_99", set_values=[f"guard.policy={policy}", "run.duration=3s"])

        assert share(figures, "dialog") == exactly(10 / (10 + 20))

    def test_with_both_in_the_guard_the_weight_counts(self) -> None:
        """Nine times 20 ms of steps for each graph."""
        figures = summary(self.NAME, "both_guarded")

        assert share(figures, "dialog") == exactly(180 / 200)
        assert job_ms(figures, "perception") == exactly(200)

    def test_qnn_priority_gives_the_other_what_is_left(self) -> None:
        """1 of every 11: a graph of 20 takes 20 rounds."""
        figures = summary(self.NAME, "qnn_high")

        assert share(figures, "dialog") == exactly(10 / 11)
        assert itl_ms(figures, "dialog", "max") == 10 + 1
        assert job_ms(figures, "perception") == 20 * 11

    def test_not_without_the_oem_key(self) -> None:
        figures = summary(self.NAME, "qnn_high", set_values=["device.priority_clamp=true"])

        assert itl_ms(figures, "dialog", "max") == 10 + 20


class TestInversion:
    """Urgent: steps of 10 at HIGH, gap 1. Background: steps of 10 through the guard. Legacy: 160, past it."""

    NAME = "surprise_inversion"

    def test_the_urgent_one_waits_for_what_it_could_have_pre_empted(self) -> None:
        figures = summary(self.NAME, "inverted")

        assert itl_ms(figures, "urgent") == itl_ms(figures, "urgent", "max") == 160 + 10 + 10
        assert number(figures, "clients.urgent.guard_wait.max") / 1e6 == 160 + 10 - 1, "the wait is in the guard"
        assert number(figures, "clients.urgent.device_wait.max") == 0, "on the device it waits for nobody"
        assert number(figures, "clients.background.device_wait.p50") / 1e6 == 160

    @pytest.mark.parametrize("policy", POLICIES)
    def test_no_policy_prevents_it(self, policy: str) -> None:
        urgency = ["instances.urgent.weight=99", "instances.urgent.itl_deadline=20ms"]
        figures = summary(self.NAME, "inverted", set_values=[f"guard.policy={policy}", "run.duration=3s", *urgency])

        assert itl_ms(figures, "urgent", "max") >= 160 + 10 + 10

    @pytest.mark.parametrize("variant", ["no_background", "two_slots"])
    def test_when_it_reaches_the_device_it_pre_empts(self, variant: str) -> None:
        figures = summary(self.NAME, variant, set_values=["run.duration=3s"])

        assert itl_ms(figures, "urgent") == itl_ms(figures, "urgent", "max") == 10 + 1

    def test_a_holder_at_the_priority_of_who_waits_ends_it_and_starves_the_legacy_vit(self) -> None:
        figures = summary(self.NAME, "background_high")

        assert itl_ms(figures, "urgent") == itl_ms(figures, "urgent", "max") == 10 + 10
        assert figures.clients["legacy"].starved
        assert share(figures, "legacy") == 0
