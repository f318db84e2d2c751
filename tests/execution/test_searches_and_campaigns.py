"""Studies of searches and simulated campaigns go through the store and the executors, with equal results."""

from __future__ import annotations

import json

import pytest

import weirlab
from weirlab.campaigns import run_campaign
from weirlab.campaigns.planned import CampaignPlan
from weirlab.errors import InputError, ScenarioError
from weirlab.scenario import load
from weirlab.searches.planned import SearchesPlan
from weirlab.store import Store

STUDY = {
    "replicates": 2,
    "factors": {"testbed.device.capacity": ["8 Mframe/s", "10.6 Mframe/s"]},
}


def searches():
    return load("search-noisy").assign({"study": STUDY, "search.trial.duration": "1 s"})


def campaign():
    return load("bulk-streams").assign({"campaign.cycles": "1"})


def kept(result):
    return {
        path.relative_to(result.directory).as_posix(): path
        for path in sorted(result.directory.rglob("*"))
        if path.is_file() and "store/" not in path.relative_to(result.directory).as_posix()
    }


def same(one, other, *, besides=("manifest.json",)):
    """Whether two results have the same files, byte for byte."""
    left, right = kept(one), kept(other)
    assert left.keys() == right.keys()
    return [
        name for name in left if not name.endswith(besides) and contents(left[name]) != contents(right[name])
    ]


def contents(path):
    """What is in a file, but for the place where it is."""
    return path.read_bytes().replace(f'"{path.parent}"'.encode(), b"")


def test_searches_are_the_same_whoever_makes_them(tmp_path):
    here = weirlab.search(searches(), out=tmp_path / "here")
    there = weirlab.search(searches(), out=tmp_path / "there", on="local:2")
    assert same(here, there) == []
    again = weirlab.search(searches(), out=tmp_path / "again", on="local:1")
    name = Store.open(tmp_path / "there" / "store").keep("plans", SearchesPlan(searches()).document())
    assert {Store.open(each.directory / "store").digest(name) for each in (there, again)} == {
        Store.open(tmp_path / "again" / "store").digest(name)
    }


def test_searches_that_a_store_has_are_not_made_again(tmp_path, monkeypatch):
    weirlab.search(searches(), out=tmp_path / "one", store=tmp_path / "shared", on="local:1")
    monkeypatch.setattr("weirlab.searches.planned.run_search", None)
    more = searches().assign({"study.factors": {**STUDY["factors"]}, "name": "other"})
    found = weirlab.search(more, out=tmp_path / "two", store=tmp_path / "shared")
    assert found.rates.height == 4 * len(more.search.goals)


def test_a_search_without_a_study_and_one_of_real_hosts_are_made_here(tmp_path):
    with pytest.raises(InputError, match="a section 'study' makes several"):
        weirlab.search(searches().assign({"study": None}), out=tmp_path / "a", on="local:2")
    with pytest.raises((InputError, ScenarioError), match="measured on this machine"):
        weirlab.search("router-sizes", out=tmp_path / "b", on="local:2")


def test_a_campaign_is_the_same_whoever_makes_it(tmp_path):
    here = run_campaign(campaign(), tmp_path / "here")
    there = run_campaign(campaign(), tmp_path / "there", on="local:2")
    assert there == here
    logs = [(tmp_path / name / "measurements.jsonl").read_text() for name in ("here", "there")]
    assert logs[0] == logs[1]
    more = campaign().assign({"campaign.cycles": "2"})
    extended = run_campaign(more, tmp_path / "there", on="local:2")
    assert extended.complete
    assert extended.kept[: len(here.kept)] == here.kept


def test_a_measurement_that_failed_is_kept_as_failed(tmp_path):
    plan = CampaignPlan(campaign())
    store = Store.open(tmp_path / "store", create=True)
    seeds = [plan.point(int(number)).key(0)[1] for number in plan.order]
    assert len(set(seeds)) == len(seeds)
    assert json.loads(json.dumps(plan.document())) == plan.document()
    assert store.rows(plan="x").is_empty()
    with pytest.raises(InputError, match="measured on this machine"):
        CampaignPlan(load("bulk-cern"))
