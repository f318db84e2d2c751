"""What is kept for the points of a study follows from what it says it follows from."""

from __future__ import annotations

import pytest

from weirlab.errors import ScenarioError
from weirlab.scenario import load, loads
from weirlab.scenario.checks import _measures, _network, _traffic
from weirlab.scenario.file.ready import ready_made
from weirlab.scenario.resolve import _offered, _record, _switching, network_of
from weirlab.studies.plan import RunsPlan, _asked

NETWORKS = sorted(
    name for name in ready_made() if (s := load(name)).network is not None and s.run.duration is not None
)


class Only:
    """Some sections of a scenario. Any other is an error."""

    def __init__(self, scenario, sections):
        self._scenario, self._sections = scenario, sections

    def __getattr__(self, name):
        if name not in type(self._scenario).model_fields or name in self._sections:
            return getattr(self._scenario, name)
        raise AssertionError(f"'{name}' decides, too, and is not among {self._sections}")


def asked(function, scenario, *args, **kwargs):
    return function.__wrapped__(Only(scenario, function.sections), *args, **kwargs)


@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_but_the_named_sections_is_asked(name):
    scenario = load(name)
    layout = network_of(scenario)[1]
    duration_ps = scenario.run.duration.ps
    asked(_network, scenario)
    asked(network_of, scenario)
    asked(_traffic, scenario, layout, searched=True)
    asked(_measures, scenario, layout)
    traffic, services = asked(_offered, scenario, layout, duration_ps)
    asked(_switching, scenario, layout, services)
    asked(_record, scenario, layout, duration_ps, traffic)


def outcome(function):
    """What it returns, or the text of its error."""
    try:
        return function()
    except ScenarioError as error:
        return str(error)


@pytest.mark.parametrize("name", ["zrl-full", "zrl-morris", "load-and-buffer", "bcn-schemes"])
def test_a_point_is_the_scenario_that_a_file_of_its_own_would_be(name):
    scenario = load(name)
    plan = RunsPlan(scenario, 1, 1)
    for number in [int(n) for n in plan.order[:: max(1, len(plan.order) // 7)]]:
        combination, row = divmod(number, plan.rows)
        changes = plan._changes(combination) | plan._design(combination)[row]
        base = loads(plan._base.as_written())
        point = outcome(lambda number=number: plan.point(number).scenario)
        assert point == outcome(lambda base=base, changes=changes: base.assign(changes))
        if isinstance(point, str):
            continue
        alone = loads(point.as_written())
        assert alone == point
        assert alone.resolve().spec_json == point.resolve().spec_json == point.resolve().spec.json()
        assert _asked(alone) == _asked(point)


def test_what_is_remembered_is_of_the_sections_as_they_are():
    scenario = load("load-and-buffer").assign({"study": None})
    twice = scenario.assign({"traffic.load.source.load": "10 %"})
    longer = twice.assign({"run.duration": "40 ms"})
    for one in (scenario, twice, longer):
        assert one.resolve().spec == loads(one.as_written()).resolve().spec
    assert _offered(longer, network_of(longer)[1], longer.run.duration.ps) != _offered(
        twice, network_of(twice)[1], twice.run.duration.ps
    )
    assert network_of(longer) is network_of(scenario)
