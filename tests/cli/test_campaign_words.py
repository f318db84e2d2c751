"""A campaign in the words of a command line."""

import pytest

from weirlab.campaigns import plan_of
from weirlab.cli.campaign_words import CampaignWords, host_of
from weirlab.cli.link import Link
from weirlab.errors import ScenarioError
from weirlab.scenario import loads

LINK = Link(rate="20mbit", delay="20ms")


def steps(words):
    (point,) = plan_of(words.over(LINK, {})).steps
    return point


def test_pings_run_alone_and_then_beside_one_transfer():
    alone, loaded = steps(CampaignWords())
    assert (alone.name, alone.loads, alone.probe.every_s) == ("unloaded", (), 0.2)
    assert (loaded.load.forward, loaded.load.streams, loaded.load.congestion_control) == (True, 1, "cubic")
    assert loaded.duration_s == 10


def test_transfers_go_both_ways_at_once_with_udp_beside_them():
    loaded = steps(CampaignWords(way="both", udp="1mbit", streams="3", lasts="4 s"))[1]
    assert [(each.forward, each.streams) for each in loaded.loads] == [
        (True, 3),
        (True, 1),
        (False, 3),
        (False, 1),
    ]
    assert loaded.beside["udp-down"].rate_bps == 1e6
    assert [each.forward for each in steps(CampaignWords(way="down"))[1].loads] == [False]


def test_several_values_are_compared_and_hold_for_both_ways():
    words = CampaignWords(way="both", streams="1,4", window="64KiB, 1MiB", congestion_control="reno,bbr")
    plan = plan_of(words.over(LINK, {}))
    assert len(plan.steps) == 8
    last = plan.steps[-1][1]
    assert {(each.streams, each.window_bytes, each.congestion_control) for each in last.loads} == {
        (4, 1 << 20, "bbr")
    }
    assert plan.levels[-1] == {"streams": "4", "window": "1MiB", "congestion-control": "bbr"}


@pytest.mark.parametrize("words", [CampaignWords(), CampaignWords(way="both", streams="1,4", udp="1mbit")])
def test_what_is_written_is_the_same_campaign_and_says_no_more_than_was_said(words):
    scenario = words.over(LINK, {"campaign.cycles": "3"})
    text = scenario.as_written()
    assert loads(text).dump() == scenario.dump()
    assert "'" not in text
    assert "record" not in text


@pytest.mark.parametrize("controls", ["cubic,bbr", "bbr,cubic,reno", "reno,cubic"])
def test_a_campaign_that_compares_controllers_reads_back_what_it_saves_in_full(controls):
    scenario = CampaignWords(congestion_control=controls).over(LINK, {})
    again = loads(scenario.to_yaml())
    assert plan_of(again).levels == plan_of(scenario).levels
    assert plan_of(again).steps == plan_of(scenario).steps


@pytest.mark.parametrize(
    ("words", "place", "message"),
    [
        (CampaignWords(streams="many"), "--streams", "write a whole number"),
        (CampaignWords(window="64"), "--window", "write a size with its unit"),
        (CampaignWords(way="both", congestion_control="vegas"), "--congestion-control", "unknown kind"),
        (CampaignWords(udp="1 mbt"), "--udp", "write a rate as"),
        (CampaignWords(lasts="10"), "--for", "write a duration with its unit"),
    ],
)
def test_what_is_wrong_is_told_with_its_option(words, place, message):
    with pytest.raises(ScenarioError) as caught:
        words.over(LINK, {})
    first = caught.value.problems[0]
    assert first.path == place
    assert message in first.message


@pytest.mark.parametrize(
    ("word", "bed"),
    [
        ("far.example.net", {"kind": "iperf3", "server": "far.example.net"}),
        ("192.0.2.7:5202", {"kind": "iperf3", "server": "192.0.2.7", "port": "5202"}),
        ("2001:db8::7", {"kind": "iperf3", "server": "2001:db8::7"}),
        ("[2001:db8::7]:5202", {"kind": "iperf3", "server": "2001:db8::7", "port": "5202"}),
        ("localhost", {"kind": "iperf3", "server": "localhost"}),
        ("box:5201", {"kind": "iperf3", "server": "box", "port": "5201"}),
        ("me@box", {"kind": "ssh", "far": "me@box"}),
        ("ssh://box", {"kind": "ssh", "far": "ssh://box"}),
        ("bulk-streams", None),
        ("bulk-stream", None),
        ("mine.yaml", None),
        ("there/mine", None),
    ],
)
def test_a_word_is_a_host_or_a_scenario(word, bed):
    assert host_of(word) == bed


def test_to_a_server_of_iperf3_transfers_go_both_ways_and_pings_start_here():
    plan = plan_of(CampaignWords(way="both").to({"kind": "iperf3", "server": "192.0.2.7"}, {}))
    assert [each.forward for each in plan.steps[0][1].loads] == [True, False]
    assert plan.paths == [None]


def test_a_written_campaign_runs_as_the_options_do(weir, tmp_path):
    file, sim = tmp_path / "mine.yaml", "testbed.kind=sim"
    words = ["--rate", "5mbit", "--delay", "5ms", "--for", "1 s", "--set", sim]
    assert weir("bulk", *words, "--write", str(file)).code == 0
    again = weir("bulk", *words, "--write", str(file))
    assert (again.code, "exists already" in again.err) == (2, True)
    results = [
        weir("bulk", *how, "--out", str(tmp_path / str(place)))
        for place, how in enumerate((words, [str(file)]))
    ]
    assert [outcome.code for outcome in results] == [0, 0], results[0].err
    logs = [(tmp_path / str(place) / "measurements.jsonl").read_text() for place in range(2)]
    assert logs[0] == logs[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "which path? name a scenario file or a host"),
        (["bulk-streams", "--rate", "1mbit"], "options describe the path already"),
        (["bulk-streams", "--streams", "2"], "--streams: the traffic of a file is in the file"),
        (["bulk-stream"], "did you mean 'bulk-streams'"),
    ],
)
def test_two_campaigns_and_no_campaign_are_refused(weir, words, said):
    outcome = weir("bulk", *words)
    assert outcome.code == 2
    assert said in outcome.err
