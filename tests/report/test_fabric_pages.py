"""Pages of runs with priority flow control, shared buffers and messages: who stopped whom, and who waited."""

import json
import math

import polars as pl
import pytest

import weirlab
from weirlab.plots.messages import by_size, message_plots
from weirlab.plots.series import flow_control_plots, port_plots
from weirlab.records import Records
from weirlab.report.network import series
from weirlab.report.run import run_page
from weirlab.report.story import sent_again
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
    assert said in result.summary()


def test_the_sentences_of_a_run_say_which_traffic_sent_packets_again():
    result = weirlab.run("trimming-incast", assign={"study": None})
    again = result.records["message_totals"].get_column("retransmits").sum()
    assert again > 0
    include = "frames that were sent or delivered include them."
    assert f"{again} packets of incast were sent again; {include}" in result.summary()
    assert sent_again(_with_totals([0, 0])) == ""
    assert sent_again(_with_totals([1, 0])).startswith("1 packet of one was sent again; ")
    assert (
        sent_again(_with_totals([2, 3]))
        == f"5 packets of messages were sent again, 3 of them of other; {include}"
    )
    several = sent_again(_with_totals([2, 0], replicates=2))
    assert several == f"4 packets of one were sent again in 2 replicates together; {include}"


def _with_totals(retransmits, replicates=1):
    """Records of two entries of messages that sent so many packets again in each replicate."""
    return Records(
        {
            "runs": pl.DataFrame({"replicate": range(replicates)}),
            "traffic_names": pl.DataFrame({"traffic": [0, 1], "name": ["one", "other"]}),
            "message_totals": pl.DataFrame(
                {
                    "replicate": [each for each in range(replicates) for _ in range(2)],
                    "traffic": [0, 1] * replicates,
                    "retransmits": retransmits * replicates,
                }
            ),
        }
    )


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


def test_the_picture_plays_the_holds_of_a_class_in_the_interval_in_which_they_were(held):
    result, _ = held
    port = dict(result.records["port_names"].select("name", "port").iter_rows())["host-3->level1-0"]
    steps = series(result.records)
    rows = result.records["hold_intervals"].filter(port=port)
    expected = dict(zip(rows["t_ps"], (rows["held_ps"] / 2e4).round(), strict=True))
    played = steps.paused[steps.ports.index(port)].tolist()
    assert played == [expected.get(end, 0) for end in steps.ends_ps]
    assert (min(played[3:]), max(played)) == (0, 1000), "not held at times, and for whole intervals"


def test_holds_and_buffers_over_time_add_up_to_their_totals(held):
    records = held[0].records
    holds = records["hold_intervals"].group_by("port", "class").agg(sum=pl.col("held_ps").sum())
    both = records["holds"].join(holds, on=["port", "class"], how="full")
    assert both.height == 4
    assert both.get_column("sum").to_list() == both.get_column("held_ps").to_list()
    whole = records["pool_names"].filter(part="whole").join(records["pool_intervals"], on="pool")
    sums = whole.group_by("switch", maintain_order=True).agg(
        pl.col("max_bytes").max(), pl.col("byte_ps").sum()
    )
    totals = records["buffers"].select("max_bytes", "byte_ps")
    assert sums.get_column("max_bytes").to_list() == totals.get_column("max_bytes").to_list()
    assert sums.get_column("byte_ps").to_list() == pytest.approx(totals.get_column("byte_ps").to_list())
    parts = records["pool_intervals"].join(records["pool_names"], on="pool").filter(switch="level1-0")
    inside = (
        parts.filter(pl.col("part").is_in(["headroom", "ingress"]))
        .group_by("t_ps")
        .agg(pl.col("bytes").sum())
    )
    around = parts.filter(part="whole").join(inside, on="t_ps", suffix="_inside")
    reserved = 5 * 4000 * 2
    assert (around["bytes"] >= around["bytes_inside"]).all()
    assert (around["bytes"] <= around["bytes_inside"] + reserved).all()


def test_the_fullest_buffer_its_pools_and_the_holds_are_drawn_over_time(held):
    records = held[0].records
    pools, holds = flow_control_plots(records)
    assert pools.name == "pools"
    assert "level1-0" in pools.title, "no other buffer held anything for a while"
    assert "all that waits, headroom and ingress, class 3" in pools.description
    assert holds.name == "held"
    assert "host-3->level1-0, class 3" in holds.description
    assert flow_control_plots(Records({name: records[name] for name in ("intervals", "port_names")})) == []


def test_paused_links_are_drawn_without_classes():
    records = weirlab.run(
        "pause-victim", assign={"measure": {}, "record": {"all": {"queue": "*->*", "every": "50 us"}}}
    ).records
    (holds,) = flow_control_plots(records)
    assert holds.name == "held"
    assert "class" not in holds.description


def test_queues_of_switches_are_not_hidden_by_the_backlog_of_hosts(held):
    queues = {plot.name: plot for plot in port_plots(held[0].records) if plot.name.endswith("queue")}
    assert list(queues) == ["port-queue", "host-queue"]
    assert "host-0->" not in queues["port-queue"].description
    assert "level1" not in queues["host-queue"].description.replace("->level1", "")


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
    assert [plot.name for plot in message_plots(by_size(records))] == ["message-slowdown", "message-time"]
    few = Records({"messages": rows.head(50), "traffic_names": names})
    assert message_plots(by_size(few)) == [], "one point of one length says no more than its table"
    assert by_size(few)["tail"].to_list() == [None]


def test_a_percentile_of_replicates_has_the_interval_of_their_mean_and_that_of_one_run_has_none():
    def messages(*slowdowns):
        count = 120
        rows = pl.DataFrame(
            {
                "replicate": [replicate for replicate in range(len(slowdowns)) for _ in range(count)],
                "traffic": 0,
                "size_bytes": 1000,
                "start_ps": 0,
                "delivered_ps": [1000 * slowdown for slowdown in slowdowns for _ in range(count)],
                "ideal_ps": 1000,
            }
        )
        return Records({"messages": rows, "traffic_names": pl.DataFrame({"traffic": [0], "name": ["web"]})})

    (row,) = by_size(messages(2, 4)).iter_rows(named=True)
    # t of one degree of freedom at 97.5 % times sqrt(2) / sqrt(2).
    assert row["median_half"] == row["tail_half"] == pytest.approx(12.706, rel=1e-4)
    assert row["tail_ps_half"] == pytest.approx(12706, rel=1e-4)
    assert by_size(messages(3))["median_half"].to_list() == [None]


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
