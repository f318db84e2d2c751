"""Records: tables in memory and on disk."""

import json

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from weirlab import _core
from weirlab.errors import InputError, WeirlabError
from weirlab.records import Records, columns_of, save_tables
from weirlab.scenario import loads

SILENT = """\
weirlab: 1
name: silent
network: {kind: star, hosts: 2, link: {rate: 1 Gbit/s}}
traffic: {t: {from: host-0, to: host-1, source: {kind: constant, load: 10 %, frame_size: 64 B}}}
run: {duration: 1 ps}
"""

RUNS = pl.DataFrame({name: np.arange(2, dtype=np.uint64) for name in columns_of()["runs"]})


def test_what_the_core_made_is_read_without_a_copy_and_with_its_nulls():
    tables = _core.simulate(loads(SILENT).resolve().spec_json, [1])
    records = Records.made(tables)
    assert list(records) == list(tables)
    flows = records["flows"]
    assert flows["delay_min_ps"].to_list() == [None]
    assert flows["delay_min_ps"].dtype == pl.UInt64
    # As often as it is asked for, it is the same memory.
    column = [pl.DataFrame(tables["flows"])["sent_frames"].to_numpy(allow_copy=False) for _ in range(2)]
    assert np.shares_memory(*column)
    assert np.shares_memory(column[0], flows["sent_frames"].to_numpy(allow_copy=False))


def test_every_column_says_what_it_means_and_in_which_unit():
    for name, table in _core.table_schemas().items():
        assert table["about"].endswith("."), name
        for column in table["columns"]:
            assert column["meaning"].endswith("."), (name, column)
            ends = [end for end in ("_ps", "_bytes", "_bps") if column["name"].endswith(end)]
            assert (column["unit"] is not None) >= bool(ends), (name, column)


def test_tables_have_the_columns_that_the_schemas_name():
    tables = _core.simulate(loads(SILENT).resolve().spec_json, [1])
    schemas = _core.table_schemas()
    assert list(schemas) == list(tables)
    kinds = {"u32": pl.UInt32, "u64": pl.UInt64, "f64": pl.Float64, "text": pl.String, "binary": pl.Binary}
    for name, table in tables.items():
        frame = pl.DataFrame(table)
        assert frame.schema == {each["name"]: kinds[each["type"]] for each in schemas[name]["columns"]}
        known = [each["name"] for each in schemas[name]["columns"] if not each["nullable"]]
        assert sum(frame[column].null_count() for column in known) == 0, name


def test_a_column_that_came_after_the_file_was_written_is_null(tmp_path):
    Records({"runs": RUNS}).save(tmp_path)
    metadata = pl.read_parquet_metadata(tmp_path / "runs.parquet")
    known = json.loads(metadata["weirlab"])
    known["columns"] = [each for each in known["columns"] if each["name"] != "end_ps"]
    RUNS.drop("end_ps").write_parquet(
        tmp_path / "runs.parquet", metadata={"weirlab": json.dumps(known), "tables": metadata["tables"]}
    )
    assert Records.load(tmp_path)["runs"].get_column("end_ps").null_count() == RUNS.height


def test_a_file_without_the_columns_of_its_table_is_refused(tmp_path):
    Records({"runs": RUNS.drop("seed", "end_ps")}).save(tmp_path)
    with pytest.raises(InputError, match=r"runs\.parquet: table 'runs' has no columns seed, end_ps"):
        Records.load(tmp_path)


def test_names_stand_beside_ids_and_the_order_of_rows_is_kept():
    drops = pl.DataFrame(
        {"replicate": [0, 0, 0], "port": [1, 0, 1], "flow": [0, 0, 0], "cause": [0] * 3, "frames": [3, 2, 1]}
    )
    ports = pl.DataFrame(
        {
            "port": [0, 1],
            "name": ["a->b", "b->a"],
            "from": ["a", "b"],
            "to": ["b", "a"],
            "from_kind": ["host", "host"],
            "rate_bps": [10, 10],
            "framing_bytes": [20, 20],
        }
    )
    named = Records({"drops": drops, "port_names": ports}).named("drops")
    assert named.get_column("port_name").to_list() == ["b->a", "a->b", "b->a"]
    assert named.get_column("frames").to_list() == [3, 2, 1]


def test_what_is_saved_is_what_is_loaded(tmp_path):
    records = Records({"runs": RUNS, "more": pl.DataFrame({"x": [1.5, None], "name": ["a", "b"]})})
    records.save(tmp_path)
    loaded = Records.load(tmp_path)
    assert set(loaded) == set(records) | set(columns_of())
    for name in records:
        assert_frame_equal(loaded[name], records[name])
    described = json.loads(pl.read_parquet_metadata(tmp_path / "runs.parquet")["weirlab"])
    assert described["columns"][-1]["unit"] == "ps"
    assert not list(tmp_path.glob("*.part"))


def test_tables_that_an_older_version_saved_are_read_with_nulls_for_what_it_did_not_know(tmp_path):
    save_tables({"runs": RUNS.drop("packet_hops")}, tmp_path)
    loaded = Records.load(tmp_path)
    assert loaded["runs"]["packet_hops"].to_list() == [None, None]
    assert loaded["runs"].columns == RUNS.columns
    assert set(loaded) == set(columns_of())
    assert loaded["port_names"].is_empty()
    assert loaded["port_names"].columns == list(columns_of()["port_names"])


def test_a_table_that_was_saved_with_others_is_missed(tmp_path):
    Records({"runs": RUNS, "more": pl.DataFrame({"x": [1]})}).save(tmp_path)
    (tmp_path / "more.parquet").unlink()
    with pytest.raises(InputError, match=r"more\.parquet: this table is missing"):
        Records.load(tmp_path)


def test_a_table_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "runs.parquet").write_bytes(b"not parquet")
    with pytest.raises(InputError, match=r"runs\.parquet: not a table that can be read"):
        Records.load(tmp_path)


def test_a_directory_without_tables_is_no_record(tmp_path):
    with pytest.raises(InputError, match="no tables here"):
        Records.load(tmp_path)


def test_a_table_that_there_is_not_is_named_with_those_that_there_are():
    with pytest.raises(KeyError, match="no table 'nosuch'; there are runs"):
        Records({"runs": RUNS})["nosuch"]


def test_a_table_for_which_there_is_no_room_is_named_with_the_reason_and_leaves_nothing(
    tmp_path, small_files
):
    records = Records({"noise": pl.DataFrame({"x": np.random.default_rng(1).random(10_000)})})
    said = r"noise\.parquet: cannot be written: File too large"
    with small_files(4096), pytest.raises(WeirlabError, match=said):
        records.save(tmp_path)
    assert list(tmp_path.iterdir()) == []
