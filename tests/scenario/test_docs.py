"""The reference page of scenario files says what the models say, and its examples are legal."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from weirlab.errors import ScenarioError
from weirlab.fields.base import kind_of
from weirlab.measures.registry import MEASURES
from weirlab.scenario import json_schema, load, loads
from weirlab.scenario.file.document import parse
from weirlab.scenario.reference import described_models, rewritten
from weirlab.units import FrameRate, Rate, Size, Span

TOP = Path(__file__).parents[2]
PAGES = [TOP / "README.md", *sorted((TOP / "docs").glob("*.md"))]
PAGE = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
SCHEMA = jsonschema.Draft202012Validator(json_schema())


def test_the_tables_are_those_of_the_models() -> None:
    assert rewritten(PAGE) == PAGE, "run: python -m weirlab.scenario.reference docs/scenarios.md"


def test_the_page_of_measures_is_that_of_the_models() -> None:
    page = (TOP / "docs/measures.md").read_text(encoding="utf-8")
    assert rewritten(page) == page, "run: python -m weirlab.scenario.reference docs/measures.md"
    assert [kind_of(each) for each in MEASURES if f"`{kind_of(each)}`" not in page] == []


def test_every_model_of_a_scenario_is_described() -> None:
    quantities = {kind.__name__ for kind in (Span, Size, Rate, FrameRate)}
    models = {name for name in json_schema()["$defs"] if "." not in name} - quantities
    assert described_models(PAGE) == models | {"Scenario"}


@pytest.mark.parametrize("kind", [Span, Size, Rate, FrameRate])
def test_the_units_on_the_page_exist(kind: type[Span]) -> None:
    row = {Span: "time", Size: "size", Rate: "bit rate", FrameRate: "frame rate"}[kind]
    (units,) = re.findall(rf"^\| {row} \| [^|]* \| (.*) \|$", PAGE, re.MULTILINE)
    for unit in " ".join(re.findall(r"`([^`]*/?[^`]*)`", units)).split():
        assert any(known == unit or known.startswith(unit) for known in kind.units)


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_is_legal(text: str) -> None:
    if "weirlab: 1" in text:
        assert loads(text).name
        return
    parse(text)
    fragment = {"weirlab": 1, "extends": "base.yaml", **yaml.safe_load(text)}
    SCHEMA.validate(fragment)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_whole_scenario_of_a_page_is_legal(page: Path) -> None:
    for text in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL):
        if "weirlab: 1" in text and "extends:" not in text:
            assert loads(text).name


def test_pages_with_whole_scenarios_are_found() -> None:
    assert "scenarios.md" in [page.name for page in PAGES if "weirlab: 1" in page.read_text()]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 5


WRONG = """\
weirlab: 1
name: incast
network: {kind: star, hosts: 5, link: {rate: 10, delay: 1 us}}
queues:
  egress: {at: "switch-0->*", kind: drop-tail, limit: 150 kB}
traffic:
  load:
    source: {kind: poison, load: 49 %}
run: {duration: 10 msec}
"""


def test_the_complaints_on_the_page_are_those_of_the_loader(tmp_path: Path) -> None:
    (quoted,) = re.findall(r"```text\n(incast.*?)```", PAGE, re.DOTALL)
    (tmp_path / "incast.yaml").write_text(WRONG)
    with pytest.raises(ScenarioError) as error:
        load(tmp_path / "incast.yaml")
    assert str(error.value).replace(f"{tmp_path}/", "").splitlines() == quoted.splitlines()
