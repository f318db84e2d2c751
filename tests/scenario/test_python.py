"""Scenarios that are made in Python."""

import pytest
import yaml

from weirlab import Scenario
from weirlab.errors import ScenarioError
from weirlab.scenario import loads
from weirlab.scenario.file.ready import ready_made
from weirlab.scenario.loading import load
from weirlab.scenario.network import Star
from weirlab.units import Rate, Span

LINK = {"rate": "10 Gbit/s", "delay": "1 us"}
TRAFFIC = {
    "load": {
        "from": "host-0",
        "to": "host-2",
        "source": {"kind": "poisson", "frame_size": "1500 B", "load": "80 %"},
    }
}


def made(**changes):
    sections = {
        "name": "made",
        "network": {"kind": "star", "hosts": 3, "link": LINK},
        "traffic": TRAFFIC,
        "run": {"duration": "2 ms"},
    }
    return Scenario(**{**sections, **changes})


def test_types_and_texts_make_the_same_scenario():
    link = {"rate": Rate.parse("10 Gbit/s"), "delay": Span.parse("1 us")}
    assert made(network=Star(kind="star", hosts=3, link=link)) == made()
    assert made(run={"duration": Span.parse("2 ms")}) == made()


def test_it_is_what_a_file_says_and_is_written_as_one_that_reads_back_equal(tmp_path):
    text = "weirlab: 1\nname: made\nnetwork: {kind: star, hosts: 3, link: {rate: 10 Gbit/s, delay: 1 us}}\n"
    text += (
        "traffic: {load: {from: host-0, to: host-2, source: {kind: poisson, frame_size: 1500 B, load: 80 %}}}"
    )
    scenario = made()
    assert scenario == loads(text + "\nrun: {duration: 2 ms}\n")
    assert loads(scenario.to_yaml()) == scenario
    assert load(scenario.save(tmp_path / "made.yaml")) == scenario


def test_what_was_not_given_is_not_written():
    written = made().as_written()
    assert len(written.splitlines()) <= 15
    assert set(yaml.safe_load(written)) == {"weirlab", "name", "network", "traffic", "run"}
    assert yaml.safe_load(written)["run"] == {"duration": "2 ms"}
    assert yaml.safe_load(written)["network"]["link"] == {"rate": "10 Gbit/s", "delay": "1 us"}


@pytest.mark.parametrize("name", ["incast", "router-ndr", "zrl-og", "rapid-ideal", "bulk-cern"])
def test_ready_made_scenarios_are_made_again_from_their_sections(name):
    scenario = load(ready_made()[name])
    sections = {field: getattr(scenario, field) for field in type(scenario).model_fields}
    again = Scenario(**sections)
    assert again == scenario
    assert loads(again.as_written()) == scenario


def test_a_change_gives_another_scenario_and_leaves_the_first():
    first = made()
    longer = first.assign({"run.duration": "5 ms"})
    other = first.replace(name="other", run={"duration": Span.parse("5 ms"), "seed": 3})
    assert (first.run.duration, longer.run.duration) == (Span.parse("2 ms"), Span.parse("5 ms"))
    assert (other.name, other.run.seed) == ("other", 3)
    assert first.assign({"network": first.network}) == first


def test_all_problems_are_told_with_their_paths():
    with pytest.raises(ScenarioError) as caught:
        made(name="a b", run={"duration": "2 kg"}, netwrk={})
    paths = {problem.path for problem in caught.value.problems}
    assert {"name", "run.duration", "netwrk"} <= paths
    with pytest.raises(ScenarioError, match="host-9"):
        made(traffic={"load": {**TRAFFIC["load"], "to": "host-9"}})


def test_a_notebook_shows_the_scenario_as_it_was_written():
    scenario = loads(
        "weirlab: 1\nname: made\nnetwork: {kind: star, hosts: 3, link: {rate: 10 Gbit/s}}\n"
        "traffic: {load: {from: host-0, to: host-2, source: {kind: poisson, frame_size: 1500 B, "
        "load: 80 %}}}\nrun: {duration: 1 ms}\n"
    )
    assert repr(scenario) == "<Scenario made: network, traffic, run>"
    assert "hosts: 3" in scenario._repr_html_()
    assert "switch_buffer" not in scenario._repr_html_()
