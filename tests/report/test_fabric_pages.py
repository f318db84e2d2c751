"""Pages of runs with priority flow control, shared buffers and messages: who stopped whom, and who waited."""

import json
import math

import polars as pl
import pytest

import weirlab
from weirlab.plots.messages import by_size, message_plots
from weirlab.records import Records
from weirlab.report.run import run_page
from weirlab.results import Manifest


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    place = tmp_path_factory.mktemp("pfc") / "run"
    result = weirlab.run("pfc-victim", out=place)
    return result, run_page(result.run, Manifest.read(place), place)[0]


def section(page, title):
    return next(each for each in page.sections if each.title == title)


def test_the_story_says_who_was_stopped_for_how_long_and_because_of_whom(held):
    result, page = held
    worst = result.records["hold_causes"].sort("stopped_ps", descending=True).row(0, named=True)
    names = dict(result.records["port_names"].select("port", "name").iter_rows())
    (said,) = [each for each in page.story if each.startswith("Flow control stopped")]
    assert f"class {worst['class']} at {names[worst['port']]}" in said
    assert said.endswith(f"because of {names[worst['root_port']]}.")


def test_a_tree_shows_each_port_below_the_one_that_stopped_it(held):
    result, page = held
    (tree,) = [each for each in section(page, "Congestion control").blocks if each.kind == "code"]
    first, *others = tree.text.splitlines()
    assert first == "level1-0->level2-0, class 3"
    stopped = result.records.named("hold_causes").get_column("port_name").unique()
    assert {line.split()[1] for line in others} == set(stopped)


def test_the_picture_of_the_network_colours_what_flow_control_held_and_says_why(held):
    result, page = held
    data = json.loads(section(page, "Network").blocks[0].data)
    names = dict(result.records["port_names"].select("name", "port").iter_rows())
    victim = names["host-3->level1-0"]
    share = result.records["holds"].filter(port=victim)["held_ps"].max() / 2e9
    assert data["paused"][victim] == round(1000 * share)
    assert data["holds"][str(victim)].endswith("mostly because of level1-0->level2-0")


def test_messages_stand_in_ranges_of_length_and_those_that_have_not_ended_count_as_slowest():
    count = 400
    rows = pl.DataFrame(
        {
            "replicate": 0,
            "message": range(count),
            "traffic": 0,
            "size_bytes": [1000] * (count // 2) + [100_000] * (count // 2),
            "start_ps": 0,
            "delivered_ps": [1000 * (1 + n) for n in range(count // 2)] + [None] * (count // 2),
            "ideal_ps": 1000,
        },
        schema_overrides={"delivered_ps": pl.UInt64},
    )
    names = pl.DataFrame({"traffic": [0], "name": ["web"]})
    records = Records({"messages": rows, "traffic_names": names})
    found = by_size(records)
    short, long = found.row(0, named=True), found.row(-1, named=True)
    assert (short["low_bytes"], short["high_bytes"], short["messages"]) == (1000, 1000, 200)
    assert short["median"] == 100
    assert short["tail"] == math.ceil(0.99 * 200)
    assert (long["unfinished"], long["median"], long["tail"]) == (200, None, None)
    assert [plot.name for plot in message_plots(records)] == ["message-slowdown", "message-time"]
    few = Records({"messages": rows.head(50), "traffic_names": names})
    assert by_size(few)["tail"].to_list() == [None]


def test_a_queue_that_notifies_senders_is_drawn_above_its_set_point(tmp_path):
    changes = {"measure": None, "record": {"hot": {"queue": "cs->es-4", "every": "1 ms"}}}
    result = weirlab.run("bcn", assign=changes, out=tmp_path / "run")
    _, plots = run_page(result.run, Manifest.read(tmp_path / "run"), tmp_path / "run")
    (plot,) = [each for each in plots if each.name == "port-excess"]
    rows = [row for rows in plot.spec["datasets"].values() for row in rows if "mean" in row]
    queue = result.records["intervals"]
    mean_kb = (queue["queue_byte_ps"] / queue["t_ps"].diff().fill_null(queue["t_ps"][0])).to_list()
    assert plot.title.endswith("above its set point of 24 kB")  # 16 frames of 1500 B
    assert [row["mean"] for row in rows][1:] == pytest.approx([each / 1e3 - 24 for each in mean_kb])
    assert min(row["mean"] for row in rows) < 0
