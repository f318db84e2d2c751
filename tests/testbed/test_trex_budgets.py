"""When a stretch of TRex traffic is ended for its losses: live counters and time are scripted."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from weirlab.testbed.trex.counters import LaneCount
from weirlab.testbed.trex.settings import TrexSettings
from weirlab.testbed.trex.stretch import Budget, Tester

LOAD_FPS, DURATION_S, LOOK_S, SETTLE_S = 1e6, 10.0, 2.0, 0.1


@dataclass
class Time:
    """Time that passes only while somebody sleeps."""

    at_s: float = 0.0

    def now(self) -> float:
        return self.at_s

    def sleep(self, seconds: float) -> None:
        self.at_s += seconds


@dataclass
class Losing:
    """Counters of a device that loses a share of the load from some time on."""

    time: Time
    loss_ratio: float
    from_s: float = 0.0

    def read(self) -> list[LaneCount]:
        sent = round(LOAD_FPS * self.time.at_s)
        lost = round(LOAD_FPS * self.loss_ratio * max(0.0, self.time.at_s - self.from_s))
        return [LaneCount(sent, sent - lost)]


def ended_s(loss_ratio: float, from_s: float = 0.0) -> float | None:
    """When a stretch is ended whose budget is 0.5 % of all, and of the beginning; None when it runs on."""
    time = Time()
    tester = Tester(None, TrexSettings(server="none", settle_s=SETTLE_S), time)
    budgets = [Budget(LOOK_S, 0.005 * LOAD_FPS * LOOK_S), Budget(DURATION_S, 0.005 * LOAD_FPS * DURATION_S)]
    counters = Losing(time, loss_ratio, from_s)
    stopped = tester._watch(counters, counters.read(), 0.0, DURATION_S, budgets)
    return time.at_s if stopped else None


def seen_s(loss_ratio: float, budget_s: float) -> float:
    """When a loss is surely above 0.5 % of ``budget_s``: lost is what was sent a settling time ago and did
    not arrive, loss_ratio * t - settle seconds of load."""
    return (0.005 * budget_s + SETTLE_S) / loss_ratio


@pytest.mark.parametrize("loss_ratio", [0.1, 0.2, 0.5])
def test_a_loss_beyond_the_budget_of_the_beginning_ends_it_there(loss_ratio):
    assert seen_s(loss_ratio, LOOK_S) <= LOOK_S
    assert ended_s(loss_ratio) == pytest.approx(seen_s(loss_ratio, LOOK_S) + 0.05, abs=0.06)


@pytest.mark.parametrize("loss_ratio", [0.05, 0.02])
def test_a_loss_that_is_not_sure_before_the_look_has_the_whole_budget(loss_ratio):
    assert seen_s(loss_ratio, LOOK_S) > LOOK_S
    assert ended_s(loss_ratio) == pytest.approx(seen_s(loss_ratio, DURATION_S) + 0.05, abs=0.11)


def test_a_loss_that_begins_after_the_look_has_the_whole_budget():
    assert ended_s(0.2, from_s=LOOK_S) == pytest.approx(LOOK_S + seen_s(0.2, DURATION_S) + 0.05, abs=0.06)


def test_a_loss_within_both_budgets_ends_nothing():
    assert ended_s(0.004) is None
