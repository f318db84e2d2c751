"""The store: whole objects or none, each result once, and what is damaged is known."""

import json
import threading
import time

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from weirlab.errors import InputError, WeirlabError
from weirlab.store import Row, Store, engine, frame_of, places as places_module


def rows(points, plan="p", status="ok", sitting="s", value=1.5):
    measure = {"measure": "loss", "value": value, "unit": ""}
    made = [
        Row(point=point, replicate=0, seed=7, key=f"k{point}", status=status, measures=[measure])
        for point in points
    ]
    return frame_of(made, plan, "o", sitting)


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "store", create=True)


def objects_in(store):
    return [store.url + "/" + name for name in store.objects()]


def test_what_is_written_is_read_back_sorted_and_once(store):
    store.write(rows([3, 1]))
    store.write(rows([1, 2], sitting="another"))
    found = store.rows(plan="p")
    assert found["point"].to_list() == [1, 2, 3]
    assert found["measures"].to_list()[0] == [{"measure": "loss", "value": 1.5, "unit": ""}]


def test_the_same_rows_written_twice_are_one_object(store):
    assert store.write(rows([1])) == store.write(rows([1]))
    assert len(store.objects()) == 1


def test_a_directory_that_is_no_store_is_refused_and_not_made_one(tmp_path):
    with pytest.raises(InputError, match="no store of results"):
        Store.open(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_store_of_another_format_is_refused(tmp_path):
    (tmp_path / "weirlab-store.json").write_text('{"weirlab_store": 99}')
    with pytest.raises(InputError, match="a store of format 99; this weirlab reads format 1"):
        Store.open(tmp_path)


def test_a_success_counts_before_a_failure_whatever_came_first(store):
    store.write(rows([1], status="failed"))
    assert store.rows(plan="p")["status"].to_list() == ["failed"]
    store.write(rows([1]))
    assert store.rows(plan="p")["status"].to_list() == ["ok"]


@pytest.mark.parametrize("damage", ["a bit", "half", "nothing left"])
def test_a_damaged_object_is_named_and_its_rows_do_not_count(store, damage):
    store.write(rows([1]))
    store.write(rows([2]))
    from pathlib import Path

    path = Path(objects_in(store)[0])
    content = bytearray(path.read_bytes())
    content[100] ^= 4
    path.write_bytes({"a bit": content, "half": content[: len(content) // 2], "nothing left": b""}[damage])
    assert store.rows(plan="p").height == 1
    assert list(store.damaged) == [store.objects()[0]]
    assert store.prune(damaged=True)["damaged"] == 1
    assert len(store.objects()) == 1
    assert not store.damaged


def test_a_file_that_was_never_finished_is_no_object_and_is_swept_when_it_is_old(store):
    from pathlib import Path

    store.write(rows([1]))
    part = Path(objects_in(store)[0]).parent / ".part-abandoned"
    part.write_bytes(b"half")
    assert len(store.objects()) == 1
    assert store.prune(damaged=True)["damaged"] == 0
    import os

    os.utime(part, (0, 0))
    assert store.prune(damaged=True)["damaged"] == 1
    assert not part.exists()


def test_a_disk_that_is_full_leaves_the_store_as_it_was(store, monkeypatch):
    store.write(rows([1]))

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(places_module.os, "fsync", full)
    with pytest.raises(WeirlabError, match="cannot be written: No space left on device"):
        store.write(rows([2]))
    monkeypatch.undo()
    assert store.rows(plan="p")["point"].to_list() == [1]
    from pathlib import Path

    assert not list(Path(store.url).rglob(".part-*"))


def test_compaction_changes_nothing_that_is_read_and_leaves_one_object(store):
    for point in range(40):
        store.write(rows([point]))
    store.write(rows([3], status="failed"))
    before, digest = store.rows(), store.digest("p")
    assert store.compact() == (41, 1)
    assert_frame_equal(store.rows(), before)
    assert store.digest("p") == digest
    assert store.compact() == (1, 1)


def test_reading_beside_compaction_and_writing_loses_no_row(store):
    for point in range(60):
        store.write(rows([point]))
    over = threading.Event()
    counts, faults = [], []

    def read():
        other = Store.open(store.url)
        while not over.is_set():
            try:
                counts.append(other.rows(columns=["point"]).height)
            except Exception as error:  # pragma: no cover
                faults.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(5):
        store.compact()
        store.write(rows([100 + turn]))
        time.sleep(0.02)
    over.set()
    reader.join()
    assert not faults
    assert min(counts) >= 60
    assert store.rows().height == 65


def test_results_of_another_engine_are_kept_apart_until_they_are_pruned(store):
    store.write(rows([1]))
    store.write(rows([2]), made_by="0.0.1-other")
    assert store.rows()["point"].to_list() == [1]
    assert store.rows(made_by="0.0.1-other")["point"].to_list() == [2]
    assert set(store.engines()) == {engine(), "0.0.1-other"}
    assert store.prune(stale=True)["stale"] == 1
    assert set(store.engines()) == {engine()}


def test_pruning_takes_what_was_named_and_nothing_else(store):
    plan = store.keep("plans", {"kind": "x"})
    store.write(pl.concat([rows([1], plan=plan), rows([2]), rows([3], status="failed")]))
    assert store.prune(failed=True)["failed"] == 1
    assert store.rows()["point"].sort().to_list() == [1, 2]
    assert store.prune(plans=[plan])["plans"] == 1
    assert store.rows()["point"].to_list() == [2]
    assert store.documents("plans") == []


def test_a_document_that_was_changed_is_refused(store):
    from pathlib import Path

    name = store.keep("plans", {"kind": "x"})
    assert store.keep("plans", {"kind": "x"}) == name
    path = Path(store.url) / "plans" / f"{name}.json"
    path.write_text(json.dumps({"kind": "y"}))
    with pytest.raises(InputError, match="its content does not fit its name"):
        store.document("plans", name)


def test_a_damaged_document_is_written_again_by_whoever_knows_it_or_pruned(store):
    from pathlib import Path

    whole = store.keep("plans", {"kind": "whole"})
    names = {folder: store.keep(folder, {"kind": "x"}) for folder in ("plans", "origins")}
    paths = {folder: Path(store.url) / folder / f"{name}.json" for folder, name in names.items()}

    def damage():
        for path in paths.values():
            path.write_bytes(b'{"ki')
        assert list(store.plans()) == [whole]
        assert list(store.damaged) == [f"plans/{names['plans']}.json"]

    damage()
    for folder, name in names.items():
        assert store.keep(folder, {"kind": "x"}) == name
        assert store.document(folder, name) == {"kind": "x"}
    assert not store.damaged
    damage()
    assert store.prune(damaged=True)["damaged"] == 2
    assert not store.damaged
    assert store.documents("plans") == [whole]
    assert store.documents("origins") == []


def test_provenance_is_no_part_of_the_digest_of_what_was_found(tmp_path):
    digests = set()
    for number, sitting in enumerate(("here", "there")):
        store = Store.open(tmp_path / str(number), create=True)
        store.write(rows([1, 2], sitting=sitting))
        digests.add(store.digest("p"))
    store.write(rows([3], value=1.25))
    assert len(digests) == 1
    assert store.digest("p") not in digests
