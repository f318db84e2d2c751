"""The tables, the page and the plots of a campaign."""

import dataclasses
import re

import pytest

from made_campaigns import FILE, StopsAfter, measured
from weirlab.campaigns import Campaign, run_campaign
from weirlab.campaigns.campaign import LOG
from weirlab.campaigns.measurement import Pings
from weirlab.campaigns.summary import summaries
from weirlab.campaigns.tables import INTERVALS, MEASUREMENTS, interval_table, measurement_table
from weirlab.errors import Interrupted
from weirlab.plots.bulk import bulk_plots
from weirlab.report import write_report
from weirlab.results import Manifest
from weirlab.scenario import loads

SIMULATED = FILE.replace("kind: netns", "kind: sim").replace("[1, 2]", "[1, 2, 4, 8]")


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    return run_campaign(loads(SIMULATED), tmp_path_factory.mktemp("simulated"))


def test_each_loaded_measurement_stands_beside_the_unloaded_one_of_its_cycle(tmp_path):
    campaign = run_campaign(loads(FILE), tmp_path, measure=measured)
    rows = measurement_table(campaign)
    assert dict(rows.schema) == MEASUREMENTS
    assert rows.height == 6
    second = rows.filter(streams=2).row(0, named=True)
    assert second["goodput_bps"] == 4e6
    assert second["rtt_difference_s"] == pytest.approx(0.002)
    assert second["variability"] == pytest.approx(1 - 0.010 / 0.012)
    assert second["loaded_loss"] == second["unloaded_loss"] == 0.5


def test_a_measurement_without_any_answer_is_in_the_table_without_round_trips(tmp_path):
    def silent(what, path, seed):
        return dataclasses.replace(measured(what, path, seed), pings=Pings(4, (), None, None))

    rows = measurement_table(run_campaign(loads(FILE), tmp_path, measure=silent))
    assert rows.get_column("rtt_difference_s").null_count() == 6
    assert rows.get_column("loaded_loss").to_list() == [1.0] * 6


def test_how_the_path_moved_packets_is_kept_and_told(tmp_path):
    def on_a_path(what, path, seed):
        # The loaded measurements as on a kernel that joins, the others as on one that does not.
        joined = ("tcp", "udp") if what.load else ()
        return dataclasses.replace(measured(what, path, seed), joined=joined)

    directory = tmp_path / "real"
    run_campaign(loads(FILE), directory, measure=on_a_path)
    campaign = Campaign.load(directory)
    assert campaign.joined == ((), ("tcp", "udp"))
    assert measurement_table(campaign).get_column("joined").to_list() == ["tcp udp"] * 6
    page = write_report(directory).page.read_text()
    assert "packets of TCP and UDP joined" in page
    assert "every packet alone" in page


def test_a_log_that_does_not_tell_how_packets_moved_is_read(tmp_path):
    run_campaign(loads(FILE), tmp_path, measure=measured)
    lines = (tmp_path / LOG).read_text().splitlines()
    assert all('"joined":null,' in line for line in lines[1:])
    (tmp_path / LOG).write_text("".join(line.replace('"joined":null,', "") + "\n" for line in lines))
    campaign = Campaign.load(tmp_path)
    assert campaign.complete
    assert campaign.joined == ()
    assert measurement_table(campaign).get_column("joined").null_count() == 6


def test_the_seconds_of_all_streams_add_up_to_the_goodput(simulated):
    intervals = interval_table(simulated)
    assert dict(intervals.schema) == INTERVALS
    together = intervals.filter(cycle=0, point=3).get_column("rate_bps").sum() / 20
    goodput = measurement_table(simulated).filter(cycle=0, point=3).item(0, "goodput_bps")
    assert together == pytest.approx(goodput, rel=0.02)


def test_the_plots_of_a_sweep_are_all_there_and_hold_every_measurement(simulated):
    rows, intervals = measurement_table(simulated), interval_table(simulated)
    plots = {plot.name: plot for plot in bulk_plots(rows, intervals, dict.fromkeys(range(4), "point"))}
    assert set(plots) == {
        *(f"streams-over-time-{point}" for point in range(4)),
        *(f"streams-{name}" for name in ("mbps", "drtt", "iqr", "variability")),
        "streams-delay-own-window",
        *(f"goodput-{name}" for name in ("drtt", "variability")),
        "predictability-drtt",
        *(f"distribution-{name}" for name in ("variability", "mbps")),
    }
    for name in ("streams-drtt", "goodput-drtt"):
        drawn = [row for data in plots[name].spec["datasets"].values() for row in data if "cycle" in row]
        assert len(drawn) == 12
    assert re.search(r"R² = \d\.\d+, n = 12", plots["predictability-drtt"].note)


def test_delays_and_their_variation_have_one_axis_each_also_where_they_answer_the_pointer(simulated):
    rows, intervals = measurement_table(simulated), interval_table(simulated)
    (plot,) = (
        each for each in bulk_plots(rows, intervals, {0: "p"}) if each.name.startswith("streams-delay")
    )
    axes = [axis for axis in plot.answering().vega["axes"] if axis.get("title")]
    sides = [(axis["orient"], axis["scale"]) for axis in axes if axis["orient"] in ("left", "right")]
    assert sorted(side for side, _ in sides) == ["left", "right"]
    scales = dict(sides)
    hovered = [mark for mark in plot.answering().vega["marks"] if "tooltip" in mark["encode"]["update"]]
    on = {
        mark["encode"]["update"]["y"]["scale"]
        for mark in hovered
        if "y" in mark["encode"]["update"] and "scale" in mark["encode"]["update"]["y"]
    }
    assert on == set(scales.values())


def test_lost_pings_are_drawn_only_where_some_were_lost(tmp_path):
    def names(directory, measure):
        campaign = run_campaign(loads(FILE), directory, measure=measure)
        plots = bulk_plots(measurement_table(campaign), interval_table(campaign), {0: "one", 1: "two"})
        return {plot.name for plot in plots}

    def answered(what, path, seed):
        return dataclasses.replace(measured(what, path, seed), pings=Pings(2, (0.010, 0.012), 0.011, 0.010))

    assert "streams-loss" in names(tmp_path / "some", measured)
    assert "streams-loss" not in names(tmp_path / "none", answered)


def test_no_mark_of_a_campaign_is_cut_in_half_by_an_edge(tmp_path):
    campaign = run_campaign(loads(FILE), tmp_path, measure=measured)
    plots = bulk_plots(measurement_table(campaign), interval_table(campaign), {0: "one", 1: "two"})
    (spec,) = [plot.spec for plot in plots if plot.name == "streams-mbps"]
    points = spec["layer"][0]
    rows = spec["datasets"][points["data"]["name"]]
    low, high = points["encoding"]["y"]["scale"]["domain"]
    assert low == 0 < max(row["mbps"] for row in rows) < high
    assert points["encoding"]["x"]["scale"]["zero"] is False, "there is no transfer with 0 streams"


def test_the_page_of_a_campaign_that_was_continued_tells_of_each_sitting(tmp_path):
    with pytest.raises(RuntimeError):
        run_campaign(loads(FILE), tmp_path, measure=StopsAfter(1, RuntimeError("power")))
    first = Manifest.read(tmp_path)
    killed = dataclasses.replace(first.provenance, finished=None)
    dataclasses.replace(first, provenance=killed, status="running").write(tmp_path)
    assert (
        "not known: it is running, or was killed" in write_report(tmp_path, pictures=False).page.read_text()
    )
    run_campaign(loads(FILE), tmp_path, measure=measured)
    page = write_report(tmp_path, pictures=False).page.read_text()
    assert "not known: it was killed" in page
    assert re.search(r"continued \(UTC\)</th><td>[^<]* on [^<]*: [\d.]+ s<", page)


def test_each_second_of_a_stream_is_drawn_from_its_beginning_to_its_end(simulated):
    table = interval_table(simulated)
    stacks = [
        each
        for each in bulk_plots(measurement_table(simulated), table, {0: "point"})
        if each.name.startswith("streams-over-time")
    ]
    spec = stacks[0].spec
    (rows,) = spec["datasets"].values()
    first = [row for row in rows if row["stream"] == 1]
    told = table.filter(point=0, cycle=table["cycle"].min(), stream=1).get_column("rate_bps").to_list()
    assert spec["mark"]["interpolate"] == "step-after"
    assert [row["second"] for row in first] == list(range(len(told) + 1))
    assert [row["rate_bps"] for row in first] == [*told, told[-1]]


@pytest.mark.parametrize(
    ("received", "counted_by", "axis"),
    [
        ((8e6, 6e6), "receiver", "goodput [Mbit/s]"),
        ((), "sender", "written by the sender [Mbit/s]"),
    ],
)
def test_rates_of_seconds_are_the_receivers_or_said_to_be_the_senders(tmp_path, received, counted_by, axis):
    def measure(what, path, seed):
        found = measured(what, path, seed)
        if found.transfer is None:
            return found
        told = {"rates_bps": (17.6e6, 5e6), "received_bps": received}
        streams = tuple(dataclasses.replace(each, **told) for each in found.transfer.streams)
        return dataclasses.replace(found, transfer=dataclasses.replace(found.transfer, streams=streams))

    campaign = run_campaign(loads(FILE), tmp_path, measure=measure)
    table = interval_table(campaign)
    assert table.get_column("counted_by").unique().to_list() == [counted_by]
    assert table.filter(cycle=0, point=0)["rate_bps"].to_list() == list(received or (17.6e6, 5e6))
    (plot,) = (
        each for each in bulk_plots(measurement_table(campaign), table, {0: "p"}) if "time" in each.name
    )
    assert plot.spec["encoding"]["y"]["title"] == axis
    assert ("no goodput" in plot.note) == (counted_by == "sender")


def test_real_stacks_show_what_they_cost(tmp_path):
    campaign = run_campaign(loads(FILE), tmp_path, measure=measured)
    rows, intervals = measurement_table(campaign), interval_table(campaign)
    plots = {plot.name: plot for plot in bulk_plots(rows, intervals, {0: "one", 1: "two"})}
    assert "cpu-streams" in plots
    # 2 % for 1 Mbit/s and 4 % for 4 Mbit/s: (2 + 16) / (1 + 16) through the origin.
    assert "1.06 % per Mbit/s" in plots["cpu-goodput"].note


def test_the_page_of_a_campaign_tells_of_all_points_complete_or_not(tmp_path):
    run_campaign(loads(SIMULATED), tmp_path / "whole")
    page = write_report(tmp_path / "whole", pictures=False).page.read_text()
    for words in ("Greatest goodput", "24", "Streams over time", "degraded", "testbed:"):
        assert words in page
    with pytest.raises(Interrupted):
        run_campaign(loads(FILE), tmp_path / "cut", measure=StopsAfter(1, KeyboardInterrupt()))
    cut = write_report(tmp_path / "cut", pictures=False).page.read_text()
    assert "1 of 12" in cut
    assert "interrupted" in cut


SEVERAL = """weirlab: 1
name: several
testbed:
  kind: netns
  hosts: {desk: {forward: {delay: 1 ms}}, lap: {forward: {delay: 1 ms}}}
  hops: {uplink: {forward: {rate: 20 Mbit/s, delay: 10 ms, buffer: 100 kB}}}
traffic:
  desk: {from: desk, to: receiver, streams: 2, source: {kind: bulk}, transport: TCP}
  lap: {from: lap, to: receiver, source: {kind: bulk}, transport: TCP}
  back: {from: receiver, to: sender, source: {kind: bulk}, transport: TCP}
  ping: {from: sender, to: receiver, source: {kind: ping, every: 1 s}}
campaign:
  cycles: 1
  cycle: [{name: loaded, run: [desk, lap, back, ping], for: 4 s}]
""".replace("TCP", "{kind: tcp, congestion_control: cubic}")


def test_every_transfer_of_a_point_is_on_its_page_and_in_its_plots(tmp_path):
    def measure(what, path, seed):
        found = measured(what, path, seed)
        streams = tuple(dataclasses.replace(each, received_bps=(2e6,) * 4) for each in found.transfer.streams)
        own, other = (dataclasses.replace(found.transfer, streams=part) for part in (streams, streams[:1]))
        return dataclasses.replace(found, transfer=own, beside=dict.fromkeys(what.beside, other))

    campaign = run_campaign(loads(SEVERAL), tmp_path, measure=measure)
    rows, intervals = measurement_table(campaign), interval_table(campaign)
    assert rows.get_column("traffic").to_list() == ["desk", "lap", "back"]
    assert set(intervals.select("traffic", "goes").unique().rows()) == {
        ("desk", "up"),
        ("lap", "up"),
        ("back", "down"),
    }
    plots = {plot.name: plot for plot in bulk_plots(rows, intervals, {0: "p"})}
    drawn = {row["name"] for data in plots["streams-over-time-0"].spec["datasets"].values() for row in data}
    assert drawn == {"desk 1", "desk 2", "lap 1"}
    assert "streams-over-time-0-down" in plots
    (point,) = summaries(campaign)
    # Two streams of 2 MB in 8 s each, and one more; back another one.
    assert point.together_bps == {"up": pytest.approx(6e6), "down": pytest.approx(2e6)}
    page = write_report(tmp_path, pictures=False).page.read_text()
    for words in ("all loads, up", "all loads, down", "goodput of desk"):
        assert words in page
