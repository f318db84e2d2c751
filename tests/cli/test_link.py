"""A path in the words of a command line."""

import math
from pathlib import Path

import pytest

from weirlab.cli.campaign_words import CampaignWords
from weirlab.cli.emulate import _file_and_command
from weirlab.cli.link import Link, link_words, write_scenario
from weirlab.cli.meters import DelayMeter, Gauge, delay_line, meter_line
from weirlab.errors import InputError, ScenarioError
from weirlab.scenario import load, loads
from weirlab.scenario.network.path import path_plan
from weirlab.testbed.netem import netem_refusals


def line(scenario, direction):
    return getattr(scenario.testbed.hops["path"], direction)


@pytest.mark.parametrize("rate", ["20mbit", "20 Mbit/s", "20Mbps", "20000kbit", "0.02gbit/s", "20Mbit"])
def test_rates_are_read_as_people_write_them(rate):
    scenario = Link(rate=rate, delay="40ms").scenario({})
    assert {line(scenario, way).rate.bps for way in ("forward", "backward")} == {20_000_000}


def test_what_is_said_of_one_way_replaces_what_is_said_of_both():
    link = Link(up=["rate=2mbit,loss=1%"], down=["delay=30ms", "queue=fq-codel"], rate="20mbit", delay="10ms")
    scenario = link.scenario({})
    up, down = line(scenario, "forward"), line(scenario, "backward")
    assert (up.rate.bps, up.loss, up.delay.s, up.queue) == (2_000_000, 0.01, 0.01, None)
    assert (down.rate.bps, down.loss, down.delay.s, down.queue.kind) == (20_000_000, 0, 0.03, "fq-codel")


def test_a_buffer_that_is_not_told_is_the_rate_times_the_round_trip():
    scenario = Link(up=["rate=100kbit"], rate="20mbit", delay="40ms").scenario({})
    # 20 Mbit/s for 80 ms; for the slow way fifteen packets, since its product is less.
    assert line(scenario, "backward").buffer.bytes == 200_000
    assert line(scenario, "forward").buffer.bytes == 15 * 1500
    told = Link(rate="20mbit", delay="40ms", buffer="unlimited").scenario({})
    assert line(told, "forward").buffer == "unlimited"
    assert line(Link(delay="40ms").scenario({}), "forward").buffer == "unlimited"


def test_what_the_options_stand_for_can_be_kept_as_a_file():
    whole = Link(rate="20mbit", delay="40ms", queue="codel").scenario({})
    assert loads(whole.to_yaml()).testbed == whole.testbed


def test_a_buffer_for_netem_is_counted_in_frames_of_the_greatest_size():
    link = Link(up=["rate=100kbit"], rate="20mbit", delay="40ms")
    plan = path_plan(link.scenario({}, in_frames=True))
    assert plan is not None
    assert netem_refusals(plan) == []
    ways = plan.hops["path"]
    assert ways.backward.buffer.count == math.ceil(200_000 / 1500)
    assert ways.forward.buffer.count == 15


def test_a_file_that_lies_elsewhere_means_the_same_trace(tmp_path, monkeypatch):
    (tmp_path / "rate.trace").write_text("1\n2\n3\n")
    (tmp_path / "kept").mkdir()
    monkeypatch.chdir(tmp_path)
    scenario = Link(up=["trace=rate.trace"], delay="5ms").scenario({})
    write_scenario(scenario, Path("kept/path.yaml"))
    assert path_plan(load("kept/path.yaml")) == path_plan(scenario)


@pytest.mark.parametrize(
    ("up", "both", "place", "message"),
    [
        ([], {"rate": "20mbt"}, "--rate", "'mbt' is not a unit of rate"),
        (["los=1%"], {}, "--up los", "unknown field"),
        (["loss=2"], {"delay": "1 ms"}, "--up loss", ""),
        ([], {"queue": "blue"}, "--queue", ""),
        ([], {"buffer": "10 kB"}, "--buffer", "needs a transmitter: write 'rate'"),
        (
            [],
            {"rate": "1 Gbit/s", "queue": "threshold"},
            "--queue '{kind: threshold, k_min: ...}'",
            "is missing",
        ),
        ([], {"queue": "{kind: codel, target: 5}"}, "--queue target", "write a duration"),
        ([], {"jitter": "{distribution: uniform}"}, "--jitter size", "is missing"),
        (["rate=1mbit"], {"buffer": "10 kB"}, "--buffer (far to near)", "needs a transmitter: write 'rate'"),
    ],
)
def test_what_is_wrong_is_told_with_its_option_and_once(up, both, place, message):
    with pytest.raises(ScenarioError) as caught:
        Link(up=up, **both).scenario({})
    (problem,) = caught.value.problems
    assert problem.path.startswith(place)
    assert message in problem.message


@pytest.mark.parametrize(
    "up",
    [
        [
            "jitter={size: 3 ms},queue={kind: codel, target: 3 ms},"
            "bursts={to_bad: 1 %, to_good: 20 %, loss_bad: 1}"
        ],
        [
            "jitter=3ms",
            "queue=codel",
            "queue.target=3 ms",
            "bursts.to_bad=1 %,bursts.to_good=20 %,bursts.loss_bad=1",
        ],
    ],
)
def test_a_field_that_is_a_mapping_is_written_in_braces_or_with_dots(up):
    up = line(Link(up=up, rate="20mbit", delay="5ms").scenario({}), "forward")
    assert (up.jitter.size.s, up.queue.kind, up.queue.target.s) == (0.003, "codel", 0.003)
    assert (up.bursts.to_bad, up.bursts.to_good) == (0.01, 0.2)
    assert up.rate.bps == 20_000_000


def test_a_field_in_a_mapping_adds_to_what_is_said_of_both_ways_in_its_own_way_alone():
    scenario = Link(up=["queue.target=3ms"], rate="20mbit", delay="5ms", queue="codel").scenario({})
    up, down = line(scenario, "forward"), line(scenario, "backward")
    assert up.queue.target.s == 0.003
    assert down.queue.kind == up.queue.kind == "codel"
    assert down.queue.target != up.queue.target


@pytest.mark.parametrize(
    ("up", "error", "message"),
    [
        ("rate.x=2", InputError, "--up rate: is 20 Mbit/s already"),
        ("bursts.=2", InputError, "write FIELD=VALUE"),
        ("bursts.to_bda=0.1", ScenarioError, "--up bursts.to_bda: unknown field"),
        ("bursts={to_bad: 1 %", ScenarioError, "--up bursts"),
    ],
)
def test_what_is_wrong_in_a_mapping_is_told_with_its_place(up, error, message):
    with pytest.raises(error) as caught:
        Link(up=[up], rate="20mbit", delay="5ms").scenario({})
    assert message in str(caught.value)


def test_a_missing_field_without_an_option_is_reported_with_what_adds_it():
    words = CampaignWords(congestion_control="rapid")
    with pytest.raises(ScenarioError) as caught:
        words.over(Link(rate="20mbit", delay="5ms"), {})
    path = "traffic.up.transport.congestion_control.estimator"
    assert caught.value.problems[-1].path == "--congestion-control"
    assert f"add --set {path}=" in caught.value.problems[-1].message


def test_a_fault_of_an_assignment_is_reported_at_its_path():
    path = "testbed.hops.path.forward.queue"
    with pytest.raises(ScenarioError) as caught:
        Link(rate="20mbit", delay="5ms").scenario({f"{path}.kind": "red"})
    assert {problem.path for problem in caught.value.problems} == {f"{path}.min", f"{path}.max"}


def test_a_wrong_time_of_all_transfers_is_one_fault():
    with pytest.raises(ScenarioError) as caught:
        CampaignWords(lasts="3").over(Link(rate="20mbit", delay="5ms"), {})
    (problem,) = caught.value.problems
    assert (problem.path, problem.message[:16]) == ("--for", "write a duration")


def test_an_option_of_both_ways_takes_a_mapping_as_well():
    queue = "{kind: red, min: 9 kB, max: 30 kB}"
    scenario = Link(rate="20mbit", delay="5ms", queue=queue).scenario({})
    assert line(scenario, "backward").queue.min.bytes == 9000


def test_a_wrong_value_of_an_option_is_reported_with_the_option_alone():
    with pytest.raises(ScenarioError) as caught:
        Link(up=[], jitter="3mss").scenario({})
    assert [each.path for each in caught.value.problems] == ["--jitter"]


def test_commas_in_quotes_part_nothing():
    hops = Link(up=["trace='a,b.trace',delay=5ms"]).hops()
    assert hops["path"]["forward"] == {"trace": "a,b.trace", "delay": "5ms"}


def test_a_field_without_a_value_is_told():
    with pytest.raises(InputError, match=r"--up: write FIELD=VALUE, such as rate=2mbit \(got 'loss'\)"):
        Link(up=["loss"]).scenario({})


def test_the_path_is_told_in_a_line():
    scenario = Link(up=["loss=1%"], rate="20mbit", delay="40ms").scenario({})
    assert link_words(scenario) == (
        "up 20 Mbit/s, delay 40 ms, buffer 200 kB, 1 % lost; down 20 Mbit/s, delay 40 ms, buffer 200 kB; "
        "round trip 80 ms"
    )
    scenario = Link(rate="20mbit").scenario({})
    assert link_words(scenario) == "20 Mbit/s, no delay, buffer 22.5 kB each way; round trip 0 ms"


NO, SOME = Link(), Link(rate="1mbit")


def test_words_are_a_file_and_a_command_or_a_command_alone():
    assert _file_and_command(["wan.yaml"], ["ping", "x"], NO) == ("wan.yaml", ["ping", "x"])
    assert _file_and_command(["wan.yaml", "ping", "x"], None, NO) == ("wan.yaml", ["ping", "x"])
    assert _file_and_command(["wan.yaml"], None, NO) == ("wan.yaml", [])
    assert _file_and_command([], ["ping", "x"], SOME) == (None, ["ping", "x"])
    assert _file_and_command([], None, SOME) == (None, [])


@pytest.mark.parametrize(
    ("words", "link", "message"), [([], NO, "which path"), (["wan.yaml"], SOME, "describe the path already")]
)
def test_two_paths_and_no_path_are_refused(words, link, message):
    with pytest.raises(InputError, match=message):
        _file_and_command(words, ["true"], link)


def test_a_meter_tells_the_rate_since_it_was_read_and_how_long_what_waits_takes():
    before = Gauge("up", 1_000_000, 0, 0, 0, 0, 20e6)
    now = Gauge("up", 1_500_000, 50_000, 3, 0, 2, 20e6)
    told = meter_line(before, now, 0.25)
    # 500 kB in a quarter of a second; 50 kB at 20 Mbit/s.
    words = " ".join(told.split())
    assert words == "up: 16.00 Mbit/s, waiting 50.0 kB 20.0 ms, 3 dropped, 2 lost"
    assert "ms" not in meter_line(before, Gauge("up", 1, 0, 0, 0, 0, None), 0.25)


def test_delays_are_told_of_what_arrived_in_each_direction():
    nan = float("nan")
    told = {"forward_s": [0.020, 0.021, nan, 0.020], "backward_s": [0.030, nan, nan, 0.030]}
    # Of four packets three arrived, one change of 1 ms is known, and of three answers two.
    assert delay_line(told) == (
        "one-way delay: up 20.00 ms, jitter 1.00 ms, 1 of 4 lost; down 30.00 ms, 1 of 3 lost"
    )
    nothing = {"forward_s": [nan], "backward_s": [nan]}
    assert delay_line(nothing) == "one-way delay: up: no packet; down: no packet"


def test_a_delay_meter_that_cannot_measure_says_why_and_ends():
    def refused():
        raise OSError("bind 198.18.0.2:862: in use")

    with DelayMeter(refused) as meter:
        meter._thread.join(10)
        assert meter.lines() == ["one-way delay: not known: bind 198.18.0.2:862: in use"]
