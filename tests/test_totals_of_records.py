"""Totals that the core takes are those of data frames."""

from __future__ import annotations

import random

import polars as pl
import pytest

from weirlab.evaluation import evaluate, measured
from weirlab.measures.rows import frame_counts
from weirlab.records import Records
from weirlab.runs import run, simulate
from weirlab.scenario import load

NAMES = ["load-and-buffer", "zrl-og", "incast", "hotspot-tree", "tcp-dumbbell", "l4s"]


def scenario_of(name):
    return load(name).assign({"study": None})


@pytest.mark.parametrize("name", NAMES)
def test_measures_are_the_same_of_records_in_memory_in_files_and_one_by_one(name, tmp_path):
    scenario = scenario_of(name)
    made = run(scenario, replicates=2, threads=1)
    made.save(tmp_path)
    values = evaluate(made).sort("measure", "replicate")
    assert evaluate(type(made).load(tmp_path)).sort("measure", "replicate").equals(values)
    for replicate, seed in enumerate(made.seeds):
        alone = measured(simulate(scenario, [seed]), scenario).sort("measure")
        assert alone["value"].to_list() == values.filter(replicate=replicate)["value"].to_list()


@pytest.mark.parametrize("name", NAMES)
def test_counts_are_the_sums_over_flows_of_data(name):
    records = run(scenario_of(name), replicates=2, threads=1).records
    back = records["flow_names"].filter(carries="acknowledgements")["flow"].implode()
    flows = records["flows"].with_columns(back=pl.col("flow").is_in(back))
    counts = frame_counts(records)
    for column in ("sent_frames", "delivered_frames", "dropped_frames", "live_frames"):
        sums = [flows.filter(~pl.col("back"), replicate=i)[column].sum() for i in range(2)]
        assert counts[column].to_list() == sums
    assert counts["acknowledgement_frames"].to_list() == [
        flows.filter(pl.col("back"), replicate=i)["sent_frames"].sum() for i in range(2)
    ]


def test_totals_are_sums_and_maxima_over_ids_and_time_without_what_is_unknown():
    rng = random.Random(1)
    rows = [
        {
            "replicate": i // 40,
            "port": rng.randrange(4),
            "t_ps": rng.randrange(1, 10),
            "bytes": rng.choice([None, rng.randrange(2**63)]),
            "queue_byte_ps": rng.choice([None, float(rng.randrange(1000))]),
        }
        for i in range(120)
    ]
    schema = {"replicate": pl.UInt32, "port": pl.UInt32, "t_ps": pl.UInt64, "bytes": pl.UInt64}
    frame = pl.DataFrame(rows, schema={**schema, "queue_byte_ps": pl.Float64})
    table = Records({"intervals": frame}).made_of("intervals")
    for column in ("bytes", "queue_byte_ps"):
        for ids in (None, [0], [1, 3], [7]):
            for window in (None, (0, 5), (3, 9)):
                chosen = [
                    row
                    for row in rows
                    if (ids is None or row["port"] in ids)
                    and (window is None or window[0] < row["t_ps"] <= window[1])
                ]
                for how, of in ((False, sum), (True, max)):
                    expected = {
                        replicate: of(known) if known else None
                        for replicate in {row["replicate"] for row in chosen}
                        for known in [
                            [
                                row[column]
                                for row in chosen
                                if row["replicate"] == replicate and row[column] is not None
                            ]
                        ]
                    }
                    assert table.totals(column, "port", ids, window, greatest=how) == expected
    with pytest.raises(KeyError, match="no column 'lost'"):
        table.totals("lost", "port", None)


def test_a_row_that_does_not_add_up_is_found():
    frame = pl.DataFrame({"a": [3, 7], "b": [1, 4], "c": [2, 3]}, schema=dict.fromkeys("abc", pl.UInt64))
    assert Records({"flows": frame}).made_of("flows").adds_up("a", ["b", "c"])
    broken = frame.with_columns(c=pl.Series([2, 4], dtype=pl.UInt64))
    assert not Records({"flows": broken}).made_of("flows").adds_up("a", ["b", "c"])
