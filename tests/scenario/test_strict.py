"""`search.strict`: one switch for a search that can be reported as that of RFC 9971."""

from __future__ import annotations

import pytest

from weirlab.errors import ScenarioError
from weirlab.report.search_terms import deviations
from weirlab.scenario import Scenario, loads
from weirlab.searches import run_search
from weirlab.searches.build import build
from weirlab.testbed import open_testbed

BASE = """
weirlab: 1
name: strict
testbed: {kind: sim, device: {kind: knee, capacity: 9 Mframe/s}}
traffic: {offered: {from: sender, to: receiver, source: {kind: constant, frame_size: 64 B}}}
search:
  vary: traffic.offered.source.rate
  between: [20 kframe/s, 29.76 Mframe/s]
"""
LOSS = "  goals: {NDR: {loss: 0 %}, PDR: {loss: 0.5 %}}\n  trial: {duration: 10 s}\n"
RFC2544 = "  goals: {NDR: {preset: rfc2544}}\n"
CSIT = "  goals: {NDR: {preset: csit-ndr}, PDR: {preset: csit-pdr}}\n"


def scenario(more: str) -> Scenario:
    return loads(BASE + more)


@pytest.mark.parametrize("goals", [LOSS, RFC2544, CSIT])
@pytest.mark.parametrize("algorithm", ["", "  algorithm: {kind: weir}\n", "  algorithm: {kind: mlr}\n"])
def test_a_strict_search_deviates_in_nothing(goals: str, algorithm: str) -> None:
    strict = scenario(goals + algorithm + "  strict: true\n")
    result = run_search(build(strict), open_testbed(strict))
    assert result.regular
    for goal in result.goals:
        assert deviations(goal.goal, result, strict) == []
    assert not any(trial.stopped_early for trial in result.trials)
    lenient = scenario(goals + algorithm)
    assert deviations(result.goals[0].goal, result, lenient), "without the switch it does"


def test_a_goal_of_rfc_2544_has_its_waits() -> None:
    strict = scenario(RFC2544 + "  strict: true\n")
    assert strict.search is not None
    assert strict.search.trial.settle.s == 7.0
    for other in (LOSS, CSIT):
        asked = scenario(other + "  strict: true\n").search
        assert asked is not None
        assert asked.trial.settle.s == 0.5
    longer = scenario(RFC2544 + "  trial: {settle: 9 s}\n  strict: true\n").search
    assert longer is not None
    assert longer.trial.settle.s == 9.0


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ("  algorithm: {kind: weir, early_stop: true}\n", "search.algorithm.early_stop"),
        ("  algorithm: {kind: weir, guard: true}\n", "search.algorithm.guard"),
        ("  algorithm: {kind: weir, checks: 2}\n", "search.algorithm.checks"),
        ("  algorithm: {kind: weir, sweep: 3}\n", "search.algorithm.sweep"),
        ("  algorithm: {kind: weir, steady: 5 s}\n", "search.algorithm.steady"),
        ("  trial: {unsent: excluded}\n", "search.trial.unsent"),
        ("  trial: {settle: 1 s}\n", "search.trial.settle"),
    ],
)
def test_what_deviates_beside_the_switch_is_refused_where_it_stands(more: str, place: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        scenario(RFC2544 + more + "  strict: true\n")
    assert [problem.path for problem in refused.value.problems] == [place]
    assert "strict: true" in refused.value.problems[0].message


@pytest.mark.parametrize("kind", ["binary", "mdr"])
def test_an_algorithm_that_is_not_of_rfc_9971_is_refused(kind: str) -> None:
    with pytest.raises(ScenarioError, match="take weir or mlr"):
        scenario(LOSS + f"  algorithm: {{kind: {kind}}}\n  strict: true\n")


def test_a_strict_scenario_in_full_is_read_back_as_it_is() -> None:
    strict = scenario(RFC2544 + "  strict: true\n")
    assert loads(strict.to_yaml()) == strict
    assert scenario(RFC2544).assign({"search.strict": "true"}).search == strict.search


def test_false_changes_nothing() -> None:
    plain, false = scenario(LOSS).search, scenario(LOSS + "  strict: false\n").search
    assert plain == false
