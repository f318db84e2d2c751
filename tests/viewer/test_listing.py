"""The list of results: the index behind it, and what can be asked of it."""

import csv
import io
import json
import os
import shutil
from urllib.parse import quote

import polars as pl
import pytest

import weirlab
from weirlab.errors import InputError
from weirlab.scenario import loads
from weirlab.viewer.grid import Column, Grid, answered, grid_of, query_of
from weirlab.viewer.index import Index
from weirlab.viewer.server import _LISTED
from weirlab.working import at_work

from .conftest import RUN, SEARCH


def paths(document):
    return {row["path"] for row in document["rows"]}


def rescanned(index):
    """The index once it has asked of every directory whether it has changed."""
    index.look()
    index._round.clear()
    index.look(10.0)
    return index


@pytest.fixture
def copied(results, tmp_path):
    """Three of the results, to be changed."""
    for name in ("low", "high", "search"):
        shutil.copytree(results / name, tmp_path / "copied" / name)
    return tmp_path / "copied"


def test_all_kinds_of_results_are_found_at_any_depth(viewer):
    document = viewer.json("/results.json")
    kinds = {row["path"]: row["kind"] for row in document["rows"]}
    assert kinds == {
        "low": "run",
        "high": "run",
        "deep/down/other seed": "run",
        "study": "study",
        "store": "store",
        "search": "search",
        "deep/search": "search",
        "campaign": "campaign",
        "margins": "stability",
        "damaged": "damaged",
    }


def test_names_that_are_no_text_and_files_that_are_none_do_not_hide_other_results(copied):
    (copied / "high").rename(copied / os.fsdecode(b"bad\xff"))
    manifest = copied / "search" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"remark": ""', '"remark": "half \\ud800"'))
    os.mkfifo(copied / "manifest.json")
    index = Index(copied)
    assert index.look(10.0)
    assert dict(index.frame.select("path", "remark").iter_rows()) == {"low": "", "search": "half ?"}


def test_a_result_is_found_before_the_list_has_it(copied, tmp_path):
    index = Index(copied)
    assert index.finds("low"), "nothing was read before"
    assert index.kind_of("low") == "run"
    assert not index.finds("later/new")
    shutil.copytree(copied / "low", copied / "later" / "new")
    assert index.finds("later/new")
    (copied / "link").symlink_to(copied / "high")
    assert not index.finds("link")
    assert not index.finds("later/../low")
    assert not index.finds("low/tables")


def test_facets_count_what_the_other_filters_leave(viewer):
    facets = viewer.json("/results.json?kind=run")["facets"]
    assert {each["value"]: each["rows"] for each in facets["kind"]}["search"] == 2
    facets = viewer.json("/results.json?name=small")["facets"]
    assert {each["value"]: each["rows"] for each in facets["kind"]} == {"run": 3, "study": 1, "campaign": 1}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("q=SEED", {"deep/down/other seed"}),
        ("q=deep+search", {"deep/search"}),
        ("kind=run&kind=search&q=deep", {"deep/down/other seed", "deep/search"}),
        ("where=replicates+%3E%3D+3", {"low", "high"}),
        ("where=NDR+%3E+1+kframe/s", {"search", "deep/search"}),
        ("where=loss+%3C+0+%25", set()),
        ("where=kind+%3D+store", {"store"}),
        ("where=loss+%3E%3D+0+and+replicates+%3D+2", {"deep/down/other seed"}),
    ],
)
def test_words_facets_and_conditions_narrow_the_list(viewer, query, found):
    assert paths(viewer.json(f"/results.json?{query}")) == found


def test_a_rate_that_is_irregular_is_said_to_be_so_in_the_list(copied):
    weirlab.search(
        loads(SEARCH), assign={"search.between": "10 kframe/s .. 200 kframe/s"}, out=copied / "beneath"
    )
    listed = Grid(rescanned(Index(copied)).frame, _LISTED, text="text")
    known = dict(listed.frame.select("path", "remark").iter_rows())
    assert known["beneath"] == "NDR, PDR irregular: no upper bound seen"
    assert known["search"] == ""
    for words, titles in (("beneath", ["remark"]), ("low", [])):
        answer = answered(listed, query_of([("q", words)], listed))
        assert [column.title for column in answer.shown if column.is_last] == titles


def test_the_list_is_sorted_by_what_was_measured(viewer):
    rows = viewer.json("/results.json?kind=run&sort=-value%3Aloss")["rows"]
    values = [row["value:loss"] for row in rows]
    assert values == sorted(values, reverse=True)
    assert len(values) == 3


def test_every_page_is_also_json_and_csv(viewer):
    for path in ("/results", "/result/low", "/data/low", "/compare"):
        behind = "?r=low&r=high" if path == "/compare" else ""
        assert isinstance(viewer.json(f"{path}.json{behind}"), dict)
        status, headers, content = viewer.ask(f"{path}.csv{behind}")
        assert (status, headers["content-type"]) == (200, "text/csv; charset=utf-8")
        assert len(list(csv.DictReader(io.StringIO(content)))) > 1
    assert viewer.ask("/data/low.csv?table=flows")[2].startswith("replicate,flow,flow_name")
    assert viewer.json("/data/low.json?table=flows")["total"] == 6
    rows = list(csv.DictReader(io.StringIO(viewer.ask("/result/search.csv")[2])))
    assert [row["quantity"] for row in rows] == ["NDR", "PDR"]


def test_names_with_spaces_and_signs_open(viewer):
    status, _, content = viewer.ask("/result/" + quote("deep/down/other seed"))
    while status == 202:
        status, _, content = viewer.ask("/result/" + quote("deep/down/other seed"))
    assert status == 200
    assert "<h1>small</h1>" in content


def test_a_store_is_a_table_of_its_studies_and_runs(viewer):
    assert viewer.ask("/result/store")[1]["location"] == "/data/store"
    assert viewer.json("/data/store.json?table=studies")["rows"][0]["done"] == 12
    assert viewer.json("/data/store.json?table=runs&where=point+%3D+3")["matching"] == 2


def test_what_is_new_changed_or_gone_is_noticed(copied):
    index = Index(copied)
    index.look(60.0)
    assert index.is_complete
    assert set(index.frame["path"]) == {"low", "high", "search"}
    shutil.copytree(copied / "low", copied / "below" / "again")
    shutil.rmtree(copied / "high")
    manifest = json.loads((copied / "search" / "manifest.json").read_text())
    (copied / "search" / "new.json").write_text(json.dumps({**manifest, "status": "failed"}))
    (copied / "search" / "new.json").replace(copied / "search" / "manifest.json")
    rescanned(index)
    assert dict(index.frame.select("path", "status").iter_rows()) == {
        "low": "complete",
        "below/again": "complete",
        "search": "failed",
    }
    assert set(index.values["path"]) == {"low", "below/again", "search"}
    before = index.generation
    rescanned(index)
    assert index.generation == before


def test_work_in_progress_is_running_until_its_process_ends(copied):
    index = Index(copied)
    new = copied / "new"
    new.mkdir()
    with at_work(new, "run", "soon"):
        index.look(60.0)
        assert index.running == {"new"}
        assert index.kind_of("new") == "run"
    rescanned(index)
    assert index.running == frozenset()
    assert "new" not in index


def test_a_result_that_was_killed_is_unfinished(copied):
    manifest = json.loads((copied / "search" / "manifest.json").read_text())
    (copied / "search" / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
    index = Index(copied)
    index.look(60.0)
    assert index.status_of("search") == "unfinished"


def test_a_second_start_reads_only_what_has_changed(tmp_path, copied, monkeypatch):
    monkeypatch.setattr("weirlab.viewer.index._CACHED", 1)
    monkeypatch.setattr("weirlab.viewer.index._SETTLED_NS", 0)
    first = Index(copied, cache=tmp_path / "cache" / "index")
    first.look(60.0)
    shutil.rmtree(copied / "high")
    shutil.copytree(copied / "low", copied / "other")
    read = []
    kept = weirlab.viewer.index._row
    monkeypatch.setattr(
        "weirlab.viewer.index._row", lambda place, path, files: read.append(path) or kept(place, path, files)
    )
    second = Index(copied, cache=tmp_path / "cache" / "index")
    assert set(second.frame["path"]) == {"low", "high", "search"}, "shown at once"
    second.look(60.0)
    assert set(second.frame["path"]) == {"low", "other", "search"}
    assert set(read) == {"", "other"}
    for file in (tmp_path / "cache").iterdir():
        file.write_bytes(b"damaged")
    third = Index(copied, cache=tmp_path / "cache" / "index")
    third.look(60.0)
    assert set(third.frame["path"]) == {"low", "other", "search"}


def test_a_result_may_be_viewed_by_itself(results, serve):
    with serve(results / "low") as viewer:
        viewer.wait_for(1)
        assert viewer.json("/result/..json")["manifest"]["kind"] == "run"


def test_a_hundred_thousand_results_are_asked_within_the_page(tmp_path):
    # Not of time, which depends on the machine: of what is done for each row of a page that shows a hundred.
    many = 100_000
    frame = pl.DataFrame(
        {"path": [f"run-{n:06d}" for n in range(many)], "kind": ["run"] * many, "n": range(many)}
    )
    values = pl.DataFrame(
        {
            "path": frame["path"],
            "name": ["loss"] * many,
            "unit": ["1"] * many,
            "value": [n / many for n in range(many)],
        }
    )
    grid = Grid(
        frame,
        [Column("path", "result"), Column("kind", "kind", facet=True), Column("n", "n", kind="number")],
        values=values,
    )
    answer = answered(
        grid, query_of([("q", "run-0099"), ("where", "loss > 9.95 %, n < 9990"), ("sort", "-n")], grid)
    )
    assert answer.matching == 40
    assert answer.rows["n"].to_list()[:2] == [9989, 9988]
    assert len(answer.cells()) == 40
    page = answered(grid, query_of([("page", "1000"), ("sort", "n")], grid))
    assert (page.first, page.last, page.pages) == (99_901, 100_000, 1000)


def test_a_grid_of_any_table_says_what_it_cannot_do():
    grid = grid_of(pl.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [[1], [2]]}))
    assert [column.key for column in grid.columns] == ["a", "b"]
    with pytest.raises(InputError, match="no number"):
        answered(grid, query_of([("where", "a > many")], grid))
    assert answered(grid, query_of([("b", "x")], grid)).rows["a"].to_list() == [1]
    empty = grid_of(pl.DataFrame({"a": [], "b": []}, schema={"a": pl.Int64, "b": pl.String}))
    assert answered(empty, query_of([("q", "x")], empty)).matching == 0


def test_a_run_that_is_made_while_the_viewer_runs_appears(tmp_path, serve):
    with serve(tmp_path) as viewer:
        assert viewer.json("/results.json")["total"] == 0
        weirlab.run(loads(RUN), out=tmp_path / "fresh")
        viewer.wait_for(1)
        assert paths(viewer.json("/results.json")) == {"fresh"}
