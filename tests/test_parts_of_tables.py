"""Rows that leave a run while it goes on are those of a run that keeps them."""

import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import weirlab
from weirlab import _core, runs
from weirlab.errors import InputError, WeirlabError
from weirlab.evaluation import evaluate
from weirlab.files import Scratch
from weirlab.records import Parts, Records, empty_table
from weirlab.runs import Run
from weirlab.scenario import load

# What is recorded, and which tables leave in parts.
RECORDED = {
    "incast": ({"record.each": {"flow": "load", "every": "50 us", "by": "flow"}}, "intervals"),
    "tcp-dumbbell": ({}, "intervals"),
    "zrl-og": ({}, "intervals"),
    "hotspot-tree": ({}, "intervals"),
    # Ports that are not in the order of their ids.
    "load-and-buffer": (
        {
            "record.late": {"queue": "switch-0->host-1", "every": "1 ms"},
            "record.early": {"queue": "host-0->switch-0", "every": "1 ms"},
        },
        "intervals",
    ),
    "bcn": ({"run.duration": "20 ms", "measure": None}, "intervals control_intervals limiters"),
    "rapid-ideal": (
        {"run.duration": "1 s", "measure": None, "record.streams.packets": True},
        "probe_streams probe_packets",
    ),
    "estimators": ({"run.duration": "5 s"}, "probe_trains"),
}


def pair(scenario, tmp_path, monkeypatch, rows=200):
    """The same runs, kept and in parts."""
    kept = runs.run(scenario, replicates=3, threads=2)
    assert not any(map(kept.records.is_parted, kept.records))
    monkeypatch.setattr("weirlab.runs.PART_ROWS", rows)
    return kept, runs.run(scenario, replicates=3, threads=2, parts=Parts(tmp_path / "tables"))


@pytest.mark.parametrize("name", RECORDED)
def test_tables_and_measures_are_the_same_in_parts(name, tmp_path, monkeypatch):
    changes, tables = RECORDED[name]
    scenario = load(name, {"study": None, **changes})
    kept, parted = pair(scenario, tmp_path, monkeypatch, rows=3000 if name == "hotspot-tree" else 30)
    assert all(map(parted.records.is_parted, tables.split()))
    values = evaluate(kept)
    assert evaluate(parted).equals(values)
    parted.save(tmp_path)
    loaded = Run.load(tmp_path)
    assert all(map(loaded.records.is_parted, tables.split()))
    assert evaluate(loaded).equals(values)
    for table in kept.records:
        assert parted.records[table].equals(kept.records[table]), table
        assert loaded.records[table].equals(kept.records[table]), table


def test_messages_in_parts_are_those_of_a_run_that_keeps_them(tmp_path, monkeypatch):
    small = {"network.children": [4, 2], "network.parents": [1, 2], "traffic.web.source.rows": 20}
    scenario = load("fabric-websearch", {**small, "measure": None})
    kept, parted = pair(scenario, tmp_path, monkeypatch, rows=7)
    assert parted.records.is_parted("messages")
    assert kept.records["message_totals"]["stride"].max() > 1
    for table in ("messages", "message_totals"):
        assert parted.records[table].equals(kept.records[table]), table


def test_sums_over_parts_are_those_of_the_table(tmp_path, monkeypatch):
    kept, parted = pair(load("zrl-og"), tmp_path, monkeypatch)
    whole, parts = (run.records.made_of("intervals") for run in (kept, parted))
    assert len(whole) == len(parts)
    ports = sorted(set(kept.records["intervals"]["port"]))
    edges = kept.records["intervals"]["t_ps"].unique().sort()
    window = (edges[10], edges[50])
    for ids in (ports, ports[:2], None, [10_000]):
        for column in ("bytes", "queue_byte_ps"):
            for span in (None, window):
                for greatest in (False, True):
                    asked = (column, "port", ids, span)
                    answers = [table.totals(*asked, greatest=greatest) for table in (whole, parts)]
                    assert answers[0] == answers[1]
                    assert [type(each) for each in answers[0].values()] == [
                        type(each) for each in answers[1].values()
                    ]
    for span in (window, (0, edges[50]), (edges[10] + 1, edges[50])):
        assert parts.covers("port", [*ports, 10_000], span) == whole.covers("port", [*ports, 10_000], span)


def test_a_sum_of_fractions_is_rounded_once_whatever_the_order_of_rows_and_parts(tmp_path):
    draw = random.Random(5)
    values = [draw.uniform(-1, 1) * 10.0 ** draw.randrange(-20, 20) for _ in range(3000)]
    values += [1e16, 1.0, -1e16, 1e-300, 2.0**53, 2.0**-53, 2.0**-200]
    empty = empty_table("limiters")
    of_replicate = [values[::-1], values[:1000]]
    frames = [
        pl.DataFrame({"rate_bit": mine})
        .with_columns(pl.lit(number, pl.UInt32).alias("replicate"), pl.lit(7, pl.UInt32).alias("flow"))
        .select(
            pl.col(name) if name in ("replicate", "flow", "rate_bit") else pl.lit(0, kind).alias(name)
            for name, kind in empty.schema.items()
        )
        for number, mine in enumerate(of_replicate)
    ]
    parts = Parts(tmp_path)
    for number, frame in enumerate(frames):
        for part in frame.iter_slices(700):
            parts.take(0, number, "limiters", _core.Table.of(part.rechunk()))
    parted = Records({"limiters": empty}).with_parts(parts, [0, 1]).made_of("limiters")
    expected = {number: math.fsum(mine) for number, mine in enumerate(of_replicate)}
    assert parted.totals("rate_bit", "flow", None) == expected
    whole = pl.concat(frames)
    for order in (
        whole,
        whole.reverse(),
        whole.sort("rate_bit"),
        whole.sample(fraction=1, shuffle=True, seed=2),
    ):
        assert _core.Table.of(order.rechunk()).totals("rate_bit", "flow", None) == expected
    infinite = whole.with_columns(
        rate_bit=pl.when(pl.col("replicate") == 0).then(math.inf).otherwise("rate_bit")
    )
    assert _core.Table.of(infinite).totals("rate_bit", "flow", None) == {**expected, 0: math.inf}


@pytest.fixture
def in_parts(monkeypatch):
    monkeypatch.setattr("weirlab.runs.PART_ROWS", 400)


def test_a_result_in_parts_is_kept_read_reported_and_saved_elsewhere(tmp_path, in_parts):
    found = weirlab.run("zrl-og", out=tmp_path / "first")
    names = sorted(part.name for part in (tmp_path / "first/tables/intervals").iterdir())
    assert names[:2] == ["000000-000000.parquet", "000000-000001.parquet"]
    assert weirlab.read(tmp_path / "first").measures.equals(found.measures)
    assert found.report().is_file()
    unkept = weirlab.run("zrl-og")
    unkept.save(tmp_path / "second")
    del unkept
    assert weirlab.read(tmp_path / "second").records["intervals"].equals(found.records["intervals"])


def test_a_part_that_is_lost_or_half_written_is_never_taken_for_a_result(tmp_path, in_parts):
    weirlab.run("zrl-og", out=tmp_path)
    rows = weirlab.read(tmp_path).records["intervals"]
    folder = tmp_path / "tables/intervals"
    (folder / "000000-999999.parquet.part").write_bytes(b"PAR1")
    (folder / "000001-000000.parquet").write_bytes(b"of a run that did not end")
    assert weirlab.read(tmp_path).records["intervals"].equals(rows)
    part = folder / "000000-000001.parquet"
    content = part.read_bytes()
    part.write_bytes(content[:-10])
    with pytest.raises(InputError, match=r"000000-000001\.parquet: not a table that can be read"):
        weirlab.read(tmp_path).records["intervals"]
    part.unlink()
    with pytest.raises(
        InputError, match=r"000000-000001\.parquet: this part of table 'intervals' is missing"
    ):
        weirlab.read(tmp_path)


def test_a_disk_that_is_full_ends_the_run_and_says_so(tmp_path, in_parts, monkeypatch):
    def full(*_, **__):
        raise WeirlabError("intervals: cannot be written: No space left on device")

    monkeypatch.setattr("weirlab.records.save_table", full)
    with pytest.raises(WeirlabError, match="No space left"):
        weirlab.run("zrl-og", out=tmp_path / "full")


RUN = """
import sys, weirlab, weirlab.runs
weirlab.runs.PART_ROWS = 1000
changes = {"run.duration": "1 s", "measure": None, "record.outputs.every": "5.12 us"}
weirlab.run("zrl-og", assign=changes, out=sys.argv[1])
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_keeps_what_it_has_written(end, tmp_path):
    work = subprocess.Popen([sys.executable, "-c", RUN, tmp_path / "out"], stderr=subprocess.DEVNULL)
    folder = tmp_path / "out/tables/intervals"
    while len(list(folder.glob("*.parquet"))) < 3:
        assert work.poll() is None
        time.sleep(0.05)
    work.send_signal(end)
    work.wait()
    rows = pl.concat(map(pl.read_parquet, sorted(folder.glob("*.parquet"))))
    assert rows.select(pl.struct("port", "t_ps").is_duplicated().any()).item() is False
    assert rows.height > 1000
    with pytest.raises(InputError, match=r"manifest\.json"):
        weirlab.read(tmp_path / "out")


KILLED = """
import os, signal, sys
from weirlab.files import Scratch
kept = Scratch()
(kept.path / "part").write_text("rows")
print(kept.path, flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdin.read()
"""


def test_what_a_killed_process_has_left_is_removed_by_the_next_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    stranger = tmp_path / "weirlab-scratch-link"
    (tmp_path / "precious").mkdir()
    stranger.symlink_to(tmp_path / "precious")

    def start(how):
        command = [sys.executable, "-c", KILLED, how]
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        made = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        return made, Path(made.stdout.readline().strip())

    with start("lives")[0] as living:
        alive = set(tmp_path.iterdir())
        killed, left = start("killed")
        killed.communicate()
        assert (left / "part").exists()
        mine = Scratch()
        assert not left.exists()
        assert set(tmp_path.iterdir()) == {*alive, mine.path}
        living.communicate()
    place = mine.path
    del mine
    assert not place.exists()


def test_rows_of_runs_that_nobody_keeps_leave_no_files(tmp_path, in_parts, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = runs.run("zrl-og")
    assert made.records.is_parted("intervals")
    assert len(list(tmp_path.iterdir())) == 1
    del made
    assert list(tmp_path.iterdir()) == []
