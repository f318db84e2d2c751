"""Calls that a store has are not made again, and give what they gave."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

import polars as pl
import pytest

from weirlab.errors import RunFailed
from weirlab.execution import batches, calls
from weirlab.execution.mapping import mapped
from weirlab.scenario import load
from weirlab.searches.lab import Experiment, compare
from weirlab.store import Store


@dataclass(frozen=True)
class Case:
    name: str
    numbers: tuple[int, ...]


def made(marks: str, case: Case):
    """Several kinds of results; a mark for each call."""
    with (Path(os.environ["MARKS"]) / case.name).open("a") as file:
        file.write("x")
    if case.name == "bad":
        raise ZeroDivisionError("made so")
    frame = pl.DataFrame(
        {"number": [sum(case.numbers)], "share": [0.1]}, schema_overrides={"number": pl.UInt32}
    )
    return frame, [{"name": case.name, "nothing": None, "part": float("nan")}], marks


@pytest.fixture
def marks(tmp_path, monkeypatch):
    here = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("MARKS", str(tmp_path))
    return tmp_path


CASES = [Case("a", (1, 2)), Case("b", (3,)), Case("c", ())]


@pytest.mark.parametrize("on", [None, "local:2"])
def test_what_a_store_has_is_the_same_and_not_made_again(marks, on):
    function, store = partial(made, "!"), marks / "store"
    direct = mapped(function, CASES, processes=1)
    first = mapped(function, CASES[:2], store=store, on=on)
    then = mapped(function, [CASES[2], *CASES[:2]], store=store, on=on)
    for found, wanted in zip([*first, then[1], then[2], then[0]], [*direct[:2], *direct], strict=True):
        assert found[0].equals(wanted[0])
        assert found[0].schema == wanted[0].schema
        assert str(found[1:]) == str(wanted[1:])
    assert {name: (marks / name).read_text() for name in "abc"} == dict.fromkeys("abc", "xx")
    mapped(partial(made, "?"), CASES[:1], store=store)
    assert (marks / "a").read_text() == "xxx", "another argument is another call"


def test_a_call_that_fails_is_tried_again_and_the_others_are_not(marks):
    for _ in range(2):
        with pytest.raises(RunFailed, match="ZeroDivisionError: made so"):
            mapped(partial(made, ""), [Case("bad", ()), CASES[0]], store=marks / "store")
    assert (marks / "bad").read_text() == "xx"
    assert (marks / "a").read_text() == "x"


def test_an_address_holds_what_decides_and_nothing_of_this_process(tmp_path):
    scenario = load("incast")
    again = load("incast").assign({})
    assert calls._plain([scenario]) == calls._plain([again])
    assert calls._plain([scenario]) != calls._plain([scenario.assign({"run.seed": 9})])
    file = tmp_path / "mine.py"
    file.write_text("a")
    before = calls._plain(file)
    file.write_text("b")
    assert calls._plain(file) != before
    with pytest.raises(TypeError, match="set has no address"):
        calls._plain({1, 2})


@pytest.mark.parametrize("name", ["code.py", "scenarios/pfc.yaml", "published/numbers.toml", "sizes.csv"])
def test_an_address_changes_with_any_source_that_a_call_may_read(tmp_path, monkeypatch, name):
    monkeypatch.setattr(calls.weirlab, "__file__", str(tmp_path / "__init__.py"))
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("a")
    before = calls._sources.__wrapped__()
    file.write_text("b")
    assert calls._sources.__wrapped__() != before


def test_the_laboratory_makes_no_search_twice(tmp_path, monkeypatch):
    asked = {"controllers": ["mdr"], "goals": ["10s"]}
    small = Experiment(devices=["knee"], searches=2, **asked)
    large = Experiment(devices=["knee", "vhost"], searches=3, **asked)
    store = tmp_path / "store"
    first = compare(small, store=store)
    made_first = Store.open(store).rows().height
    found = compare(large, store=store)
    assert found.equals(compare(large))
    assert found.filter(pl.col("device") == "knee", pl.col("seed") < 2).equals(first)
    rows = Store.open(store).rows()
    assert made_first == 2
    assert rows.unique("key").height == 6
    monkeypatch.setattr("weirlab.searches.lab._searched", lambda *_: pytest.fail("made again"))
    assert compare(large, store=store, processes=1).equals(found)


def test_every_kind_of_plan_has_a_module_that_reads_it():
    for home in batches._PLANS.values():
        assert callable(import_module(home).plan_of)
