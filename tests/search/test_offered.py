"""Rates are of what a device was offered; what was intended stands next to them."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from weirlab.report.search import result_json
from weirlab.report.search_tables import goal_table
from weirlab.scenario import loads as read
from weirlab.searches import ControlledSearch, FoundRates, LoadRange, SearchGoal
from weirlab.searches.controlled import Unsent
from weirlab.searches.weir import Weir
from weirlab.testbed.base import Trial, TrialSpec
from weirlab.testbed.devices import Knee
from weirlab.testbed.sim import DeviceTestbed

SCENARIO = read("""
weirlab: 1
name: offered
testbed: {kind: sim, device: {kind: knee, capacity: 7.3 Mframe/s}}
traffic: {offered: {from: sender, to: receiver, source: {kind: constant, frame_size: 64 B}}}
search:
  vary: traffic.offered.source.rate
  between: [20 kframe/s, 29.76 Mframe/s]
  goals: {NDR: {loss: 0 %}}
  trial: {duration: 10 s}
""")
SENT = 0.996
"""Share of each load that the tester sends: short of what makes a trial its fault."""


class Short(DeviceTestbed):
    """A tester that sends a little less than it should."""

    def trial(self, spec: TrialSpec) -> Trial:
        made = super().trial(replace(spec, intended_load_fps=SENT * spec.intended_load_fps))
        return replace(made, spec=spec, intended_frames=round(made.intended_frames / SENT))


def searched(unsent: Unsent = "excluded", loss_ratio: float = 0.0) -> FoundRates:
    goal = SearchGoal(name="NDR", loss_ratio=loss_ratio, width=0.005, duration_s=10.0)
    search = ControlledSearch(Weir([goal], LoadRange(2e4, 29.76e6)), frame_size_bytes=64, unsent=unsent)
    bed = Short(Knee(capacity_fps=7.3e6), overhead_s=0.43)
    while (spec := search.ask()) is not None:
        search.tell(bed.trial(spec))
    return search.result()


def test_the_rate_is_what_the_device_was_offered() -> None:
    """It would carry 7.3 Mframe/s, and the tester was asked for more than that."""
    result = searched()
    (goal,) = result.goals
    assert goal.regular
    assert goal.lower.offered_fps == pytest.approx(SENT * goal.lower.load_fps)
    assert 7.3e6 * 0.995 <= goal.lower.offered_fps <= 7.3e6 < goal.lower.load_fps
    assert goal.conditional_throughput_fps == pytest.approx(goal.lower.offered_fps)
    told = result_json(result, SCENARIO)["goals"][0]["lower"]
    assert told["load_fps"] == goal.lower.offered_fps
    assert told["intended_load_fps"] == goal.lower.load_fps


def test_both_stand_in_the_table() -> None:
    result = searched()
    (goal,) = result.goals
    table = goal_table(result, SCENARIO)
    names = [column.name.replace("\n", " ") for column in table.columns]
    row = dict(zip(names, table.rows[0], strict=True))
    assert float(row["rate (offered)"]) == pytest.approx(goal.lower.offered_fps / 1e6, abs=6e-4)
    assert float(row["intended load"]) == pytest.approx(goal.lower.load_fps / 1e6, abs=6e-4)


def test_where_unsent_frames_are_lost_they_are_missing_from_the_conditional_throughput_once() -> None:
    (goal,) = searched("lost", loss_ratio=0.005).goals
    forwarded = goal.lower.trial.received_frames / 10.0
    assert goal.conditional_throughput_fps == pytest.approx(forwarded, rel=1e-6)


def test_the_table_of_a_study_has_both() -> None:
    from weirlab.searches.points import PointSearch, rates_table

    point = PointSearch(0, {}, 0, SCENARIO)
    rates = rates_table([(point, searched())])
    assert rates.get_column("lower_fps").item() == pytest.approx(
        SENT * rates.get_column("lower_intended_fps").item()
    )
    assert rates.schema["upper_intended_fps"] == pl.Float64
