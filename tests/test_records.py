"""Records: tables in memory and on disk."""

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from weirlab.errors import InputError, WeirlabError
from weirlab.records import TABLES, Records

RUNS = {name: np.arange(2, dtype=np.uint64) for name in TABLES["runs"]}


def test_columns_become_frames_and_what_is_not_a_number_becomes_null():
    records = Records.from_columns({"runs": RUNS, "more": {"x_ps": np.array([1.0, np.nan])}})
    assert records["more"].get_column("x_ps").to_list() == [1.0, None]
    assert list(records) == ["runs", "more"]


def test_a_table_without_its_columns_is_refused():
    with pytest.raises(ValueError, match="'runs' lacks the columns seed, end_ps"):
        Records({"runs": pl.DataFrame({"replicate": [0], "events": [1], "packet_hops": [1]})})


def test_names_stand_beside_ids_and_the_order_of_rows_is_kept():
    drops = pl.DataFrame(
        {"replicate": [0, 0, 0], "port": [1, 0, 1], "flow": [0, 0, 0], "cause": [0] * 3, "frames": [3, 2, 1]}
    )
    ports = pl.DataFrame(
        {"port": [0, 1], "name": ["a->b", "b->a"], "rate_bps": [10, 10], "framing_bytes": [20, 20]}
    )
    named = Records({"drops": drops, "port_names": ports}).named("drops")
    assert named.get_column("port_name").to_list() == ["b->a", "a->b", "b->a"]
    assert named.get_column("frames").to_list() == [3, 2, 1]


def test_what_is_saved_is_what_is_loaded(tmp_path):
    records = Records.from_columns({"runs": RUNS, "more": {"x": [1.5, None], "name": ["a", "b"]}})
    records.save(tmp_path)
    loaded = Records.load(tmp_path)
    assert set(loaded) == set(records)
    for name in records:
        assert_frame_equal(loaded[name], records[name])
    assert not list(tmp_path.glob("*.part"))


def test_a_table_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "runs.parquet").write_bytes(b"not parquet")
    with pytest.raises(InputError, match=r"runs\.parquet: not a table that can be read"):
        Records.load(tmp_path)


def test_a_directory_without_tables_is_no_record(tmp_path):
    with pytest.raises(InputError, match="no tables here"):
        Records.load(tmp_path)


def test_a_table_that_there_is_not_is_named_with_those_that_there_are():
    with pytest.raises(KeyError, match="no table 'nosuch'; there are runs"):
        Records({"runs": pl.DataFrame({name: [0] for name in TABLES["runs"]})})["nosuch"]


def test_a_table_for_which_there_is_no_room_is_named_with_the_reason_and_leaves_nothing(
    tmp_path, small_files
):
    records = Records({"noise": pl.DataFrame({"x": np.random.default_rng(1).random(10_000)})})
    said = r"noise\.parquet: cannot be written: File too large"
    with small_files(4096), pytest.raises(WeirlabError, match=said):
        records.save(tmp_path)
    assert list(tmp_path.iterdir()) == []
