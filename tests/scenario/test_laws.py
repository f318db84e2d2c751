"""Laws that hold for any legal scenario."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import yaml
from hypothesis import given, settings

from scenario.strategies import scenarios
from weirlab import _core
from weirlab.scenario import Scenario, json_schema, loads

SCHEMA = jsonschema.Draft202012Validator(json_schema())


def loaded(plain: dict[str, Any]) -> Scenario:
    return loads(yaml.safe_dump(plain))


@settings(deadline=None, max_examples=60)
@given(scenarios())
def test_a_legal_scenario_is_a_legal_spec_in_its_normal_form(plain: dict[str, Any]) -> None:
    spec = loaded(plain).resolve().spec_json
    checked = _core.check(spec)
    assert json.loads(checked) == json.loads(spec)
    assert _core.check(checked) == checked


@settings(deadline=None, max_examples=40)
@given(scenarios())
def test_a_legal_scenario_is_written_out_and_read_back_as_the_same(plain: dict[str, Any]) -> None:
    scenario = loaded(plain)
    written = scenario.to_yaml()
    again = loads(written)
    assert again == scenario
    assert again.to_yaml() == written
    assert again.resolve().spec_json == scenario.resolve().spec_json


@settings(deadline=None, max_examples=40)
@given(scenarios())
def test_a_legal_scenario_satisfies_the_schema_for_editors(plain: dict[str, Any]) -> None:
    SCHEMA.validate(plain)
    SCHEMA.validate(yaml.safe_load(loaded(plain).to_yaml()))


@settings(deadline=None, max_examples=20)
@given(scenarios())
def test_the_order_of_sections_does_not_matter(plain: dict[str, Any]) -> None:
    shuffled = dict(sorted(plain.items(), reverse=True))
    assert loaded(shuffled).resolve().spec_json == loaded(plain).resolve().spec_json
