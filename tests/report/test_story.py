"""What a page says first: what happened, with its numbers, and how to repeat it."""

from __future__ import annotations

import re
import shlex

import polars as pl
import pytest

import weirlab
from weirlab.analysis.outcome import hotspot_outcomes
from weirlab.cli.app import execute
from weirlab.report import write_comparison, write_report
from weirlab.report.chain import Link, Stop, chain
from weirlab.report.shared import time_text
from weirlab.report.story import run_story
from weirlab.scenario import load

SHORT = {"run.duration": "10 ms", "measure": None}


@pytest.fixture(scope="module")
def incast():
    return weirlab.run("incast", assign={**SHORT, "record.tail": {"delays": "load"}})


def test_a_run_tells_what_was_lost_where_how_much_was_asked_and_how_long_frames_took(incast):
    lost, port, delays = run_story(incast.records, incast.scenario)
    assert lost.startswith("48.6 % of the frames were lost")
    row = incast.records.named("ports").filter(port_name="switch-0->host-4").row(0, named=True)
    asked = 8 * (row["bytes"] + row["dropped_bytes"]) / 10e9 / 10e-3 * 100  # no framing here
    assert port.startswith(f"switch-0->host-4 was offered {asked:.3g} % of its rate")
    assert "150 kB at most, 120 µs at its rate" in port
    assert "all of the drops were there" in port
    flows = incast.records["flows"]
    mean = flows["delay_sum_ps"].sum() / flows["delivered_frames"].sum()
    assert f"Frames were {mean / 1e6:.4g} µs on their way on average" in delays
    tail = float(re.search(r"up to ([\d.]+) µs for 99 %", delays)[1]) * 1e6
    bins = incast.records["delays"]
    below = bins.filter(pl.col("high_ps") <= tail * 1.001)["frames"].sum() / bins["frames"].sum()
    assert below >= 0.99
    assert flows["delay_max_ps"].max() / 1e6 == pytest.approx(
        float(re.search(r"at most ([\d.]+)", delays)[1]), 1e-3
    )


def test_drops_in_limiters_of_hosts_are_not_said_to_be_where_the_queue_is():
    run = weirlab.run("bcn-stop", assign={"run.duration": "5 ms", "measure": {}})
    (said,) = [each for each in run_story(run.records, run.scenario) if "was offered" in each]
    causes = dict(run.records.named("drops").group_by("cause_name").agg(pl.col("frames").sum()).iter_rows())
    share = causes["queue-full"] / sum(causes.values())
    assert share < 0.1
    assert said.endswith(f"{100 * share:.3g} % of the drops were there, most at hosts.")


def test_the_tail_is_told_only_where_the_delays_of_all_flows_were_recorded():
    run = weirlab.run("incast", assign={**SHORT, "record.tail": None})
    assert "99 %" not in " ".join(run_story(run.records, run.scenario))


def test_kinds_of_traffic_whose_frames_take_different_times_are_told_apart():
    run = weirlab.run(load("l4s", {"run.duration": "4 s", "measure": None}))
    told = run_story(run.records, run.scenario)[-1]
    rows = run.records.named("flows").filter(carries="data")
    for name in ("l4s", "classic"):
        own = rows.filter(traffic_name=name)
        mean = own["delay_sum_ps"].sum() / own["delivered_frames"].sum()
        rate = 8 * own["delivered_bytes"].sum() / 4 / 1e6
        assert f"{name} got {rate:.4g} Mbit/s, and its frames were {mean / 1e9:.4g} ms on their way" in told


def test_kinds_of_traffic_whose_frames_take_the_same_time_are_told_together(records):
    told = run_story(records(), load("incast"))[-1]
    assert told.startswith("Frames were ")
    assert " got " not in told


def test_a_run_with_pause_tells_how_many_ports_it_held_and_which_longest():
    run = weirlab.run(load("pause-victim", SHORT))
    (told,) = [each for each in run_story(run.records, run.scenario) if each.startswith("PAUSE")]
    rows = run.records.named("ports").filter(pl.col("paused_ps") > 0).sort("paused_ps", descending=True)
    share = rows["paused_ps"][0] / 10e9 * 100
    assert (
        told == f"PAUSE held {rows.height} ports, {rows['port_name'][0]} longest: {share:.3g} % of the time."
    )


def test_a_run_in_which_nothing_waits_has_no_bottleneck():
    assign = {**SHORT, "traffic.load.source.load": "1 %", "traffic.load.from": "host-0", "record": None}
    run = weirlab.run("incast", assign=assign)
    said = run_story(run.records, run.scenario)
    assert said[0].startswith("Nothing was lost")
    assert not any("queue" in each for each in said)


def test_the_page_starts_with_the_story_before_its_numbers(incast, tmp_path):
    page = write_report(incast.save(tmp_path / "run"), pictures=False).page.read_text()
    story = page.index('<p class="story"><strong>48.6 % of the frames were lost')
    assert story < page.index('<ul class="cards">')


def test_the_command_on_the_page_repeats_the_result(tmp_path, monkeypatch):
    options = ["--set", "run.duration=1 ms", "--set", "measure=", "--seed", "7", "--replicates", "2"]
    assert execute(["run", "incast", *options, "--out", str(tmp_path / "first")]) == 0
    page = write_report(tmp_path / "first", pictures=False).page.read_text()
    command = re.search(r"<pre[^>]*>(weir [^<]*)</pre>", page)[1]
    assert command == "weir run scenario.yaml --seed 7 --replicates 2 --report"
    monkeypatch.chdir(tmp_path / "first")
    assert execute([*shlex.split(command)[1:], "--out", str(tmp_path / "again")]) == 0
    one, other = (pl.read_parquet(tmp_path / name / "tables/flows.parquet") for name in ("first", "again"))
    assert one.equals(other)


def test_a_path_goes_back_below_itself_and_its_narrowest_link_is_named_in_words():
    stops = [Stop(f"node {n}", "switch") for n in range(7)]
    links = [Link(f"{n} Mbit/s", is_narrowest=n == 4) for n in range(6)]
    picture = chain("A path", "", stops, links)
    assert picture.svg.count("<line") == 6
    assert 'class="c8"' in picture.svg
    assert "The narrowest link leaves node 4: 4 Mbit/s." in picture.svg
    places = [
        tuple(map(float, each)) for each in re.findall(r'<rect [^>]*x="([\d.]+)" y="([\d.]+)"', picture.svg)
    ]
    assert len({y for _, y in places}) == 3
    assert places[2][0] == places[3][0]


def test_a_comparison_without_intervals_starts_with_the_largest_difference_and_can_be_repeated(tmp_path):
    places = []
    for load_share in ("49 %", "40 %"):
        run = weirlab.run("incast", assign={**SHORT, "traffic.load.source.load": load_share})
        places.append(run.save(tmp_path / load_share.removesuffix(" %")))
    page = write_comparison(places, pictures=False).page.read_text()
    one, other = (
        run["dropped_frames"].sum() / run["sent_frames"].sum()
        for run in (pl.read_parquet(place / "tables/flows.parquet") for place in places)
    )
    share = 100 * (1 - other / one)
    assert (
        f"<strong>The largest difference: load: loss ratio is {share:.3g} % lower in 40 than in 49." in page
    )
    assert f"weir compare {places[0]} {places[1]} --report" in page


def test_a_port_that_dropped_nothing_is_told_by_what_it_carried_not_by_what_it_was_asked_for():
    run = weirlab.run(load("zrl-egress", {"measure": None}))
    said = run_story(run.records, run.scenario)
    row = run.records.named("ports").filter(port_name="switch-0->host-0").row(0, named=True)
    end_s = run.records["runs"]["end_ps"].item() / 1e12
    carried = 8 * (row["bytes"] + row["frames"] * row["framing_bytes"]) / row["rate_bps"] / end_s * 100
    assert said[1].startswith(
        f"The longest queue of a switch was at switch-0->host-0, which carried {carried:.3g} % of its rate"
    )


@pytest.mark.parametrize(("ps", "text"), [(999_999_999_999, "1 s"), (999_940_000, "999.9 µs"), (0, "0 s")])
def test_a_time_that_rounds_to_a_thousand_has_the_next_unit(ps, text):
    assert time_text(ps) == text


def test_a_hotspot_is_told_first_with_what_it_cost_those_who_had_nothing_to_do_with_it(tmp_path):
    run = weirlab.run("hotspot-tree", assign={"measure": {}})
    (outcome,) = hotspot_outcomes(run)
    innocent = outcome.of("innocent ports")
    page = write_report(run.save(tmp_path / "run"), pictures=False).page.read_text()
    (mean,) = innocent.values
    told = f"Innocent ports carried {100 * mean:.3g} % of the line rate in the second half of hotspot"
    assert f'<p class="story"><strong>{told}' in page
    assert f"where {100 * innocent.ideal:.3g} % is possible; throughput did not recover." in page


def test_a_study_tells_where_a_measure_is_least_and_greatest_once(tmp_path):
    loss = {"loss": {"kind": "loss-ratio", "of": "load"}}
    changes = {"run.duration": "1 ms", "study.replicates": 2, "measure": loss}
    weirlab.study(load("load-and-buffer", changes), out=tmp_path / "study")
    page = write_report(tmp_path / "study", pictures=False).page.read_text()
    story = re.search(r'<p class="story">(.*?)</p>', page)[1]
    assert story.startswith("<strong>The mean of loss is least at load ")
    assert story.count("loss") == 1
