"""`weir stability`, `weir rank` and what `weir check` says of hotspots."""

import json
from pathlib import Path

import pytest

HOT = """
weirlab: 1
name: hot
network: {kind: star, hosts: 4, link: {rate: 10 Gbit/s, framing: none}}
control:
  bcn:
    congestion_point: {at: switch-0->*, q_eq: 16 frames, frame_size: 1500 B, sampling: {kind: per-frame}}
    reaction_point: {at: "@hosts", gi: 12.42, gd: 6.09e-3, ru: 1 Mbit/s, pacing_jitter: 0}
traffic:
  load:
    from: "@hosts"
    to: "@hosts"
    pattern: {kind: uniform}
    source: {kind: bernoulli, load: 50 %, frame_size: 1500 B}
hotspots:
  slow: {kind: output-generated, at: host-0, severity: 4, called: severe}
run: {duration: 1.2 ms, engine: slotted}
"""


@pytest.fixture
def hot(place: Path) -> str:
    (place / "hot.yaml").write_text(HOT)
    return "hot.yaml"


def test_stability_judges_the_hot_queue_and_leaves_the_others_out(weir, hot):
    found = weir("stability", hot, "--json").json
    (queue,) = found["queues"]
    assert queue["port"] == "switch-0->host-0"
    assert queue["severity"] == pytest.approx(4, rel=1e-6)
    assert queue["class"] == "moderate, large"
    assert [loop["name"] for loop in queue["loops"]] == ["increase", "decrease"]
    # One sample in 960 us at 1/8 of the line rate: Gi Ru h (1 + 2 w) = 5 is more than 4, without any delay.
    assert [loop["stable"] for loop in queue["loops"]] == [False, True]
    assert queue["loops"][0]["sampled_delay_margin_s"] == 0


def test_stability_prints_queues_and_loops(weir, hot):
    outcome = weir("stability", hot)
    assert outcome.code == 0
    assert "Queues that measure" in outcome.out
    assert outcome.out.count("switch-0->host-0") == 5
    assert "\nUnstable: the loop 'increase' at switch-0->host-0 has " in outcome.out
    assert "µs of delay and bears 0 µs.\n" in outcome.out


def test_stability_tells_the_gains_that_the_rule_gives_for_the_set_point(weir):
    """16 frames and w = 2: the largest feedback is 80 frames, Ru a ten-thousandth of the line rate."""
    (queue,) = weir("stability", "bcn", "--json").json["queues"]
    assert queue["gains_of_rule"]["gi"] == pytest.approx(12.5, rel=1e-9)
    assert queue["gains_of_rule"]["gd"] == pytest.approx(6.25e-3, rel=1e-9)
    assert "By the rule of the BCN calibration" in weir("stability", "bcn").out
    assert "gains_of_rule" not in weir("stability", "qcn", "--json").json["queues"][0]


def test_a_plane_is_kept_as_picture_page_and_numbers(weir, hot, place):
    found = weir("stability", hot, "--over", "delay=0us..2ms:5,gi=1..100:3", "--out", "plane", "--json").json
    assert len(found["plane"]["spare_delay_s"]) == 3
    assert len(found["plane"]["spare_delay_s"][0]) == 5
    assert (place / "plane" / "plots" / "stability.png").stat().st_size > 1000
    assert "limit of stability" in (place / "plane" / "report.html").read_text()
    assert weir("stability", hot, "--over", "delay=0us..2ms:5,gi=1..100:3", "--out", "plane").code == 2


@pytest.mark.parametrize(
    "over",
    [
        "delay=1us..300us:4,n=1..32:3",  # n on equal ratios
        "n=0.01..1e6:3,gd=1e-9..100:3",
        "p=1e-9..1e-6:2,w=0..1000:2",  # samples too rare for recovery to be summed: no number
    ],
)
def test_qcn_has_a_plane_over_odd_ranges_too(weir, place, over):
    found = weir("stability", "qcn", "--over", over, "--out", "plane", "--json").json
    kept = json.loads((place / "plane" / "result.json").read_text())
    assert kept["plane"] == found["plane"]
    assert kept["queues"][0]["loops"][0]["sampled_delay_margin_s"] is None
    levels = [len(found["plane"][axis]["levels"]) for axis in "xy"]
    assert [len(found["plane"]["spare_delay_s"]), len(found["plane"]["spare_delay_s"][0])] == levels[::-1]


def test_qcn_samples_as_much_more_often_at_the_largest_feedback_wherever_it_begins(weir):
    """So that a plane over `p` varies both ends: the margin at p is that of a scenario with this p."""
    over = "p=0.01..0.02:2,delay=0us..10us:2"
    plane = weir("stability", "qcn", "--over", over, "--out", "plane", "--json").json
    sampled = "control.qcn.congestion_point.sample_every=75 kB"
    twice = weir("stability", "qcn", "--set", sampled, "--json").json
    assert plane["plane"]["spare_delay_s"][0][1] == pytest.approx(
        twice["queues"][0]["loops"][0]["delay_margin_s"], rel=1e-9
    )


def test_the_spare_delay_falls_as_the_delay_grows(weir, hot):
    found = weir("stability", hot, "--over", "delay=0us..2ms:5,gi=1..100:3", "--out", "plane", "--json").json
    for row in found["plane"]["spare_delay_s"]:
        assert row == sorted(row, reverse=True)


def test_rank_puts_the_hardest_queue_and_the_sampling_first(weir, hot):
    found = weir("rank", hot, "--json").json
    assert found["traffic"][0]["port"] == "switch-0->host-0"
    assert [line["name"] for line in found["parameters"]][:2] == ["sampling", "gd"]
    shown = weir("rank", hot).out
    assert "Parameters by their weight" in shown
    assert "\nswitch-0->host-0 stresses BCN most (demand on Gd " in shown


def test_a_page_of_the_ranking_is_kept_on_request(weir, hot, place):
    assert weir("rank", hot, "--out", "ranked").code == 0
    assert "Parameters by their weight" in (place / "ranked" / "report.html").read_text()


def test_the_result_of_stability_is_kept_where_the_user_says_without_a_plane_too(weir, hot, place):
    outcome = weir("stability", hot, "--out", "kept")
    assert outcome.code == 0
    assert "Report: kept/report.html" in outcome.out
    document = json.loads((place / "kept" / "result.json").read_text())
    assert document["queues"] == weir("stability", hot, "--json").json["queues"]
    assert "plane" not in document
    page = (place / "kept" / "report.html").read_text()
    assert "Queues that measure" in page
    assert "Plane" not in page


def test_check_says_how_hard_a_hotspot_is_and_where_it_contradicts_itself(weir, hot):
    outcome = weir("check", hot, "--set", "control=")
    assert "moderate" in outcome.out
    assert "slow: called 'severe', but a severity of 4.00 is 'moderate'" in outcome.out
    (spot,) = weir("check", hot, "--set", "control=", "--json").json["hotspots"]
    assert spot["severity_class"] == "moderate"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("stability", "incast"), "theory needs 'control.bcn' or 'control.qcn'"),
        (("stability", "hot.yaml", "--over", "p=1"), "a plane has two parameters"),
        (("rank", "incast"), "the ranking is made for BCN; it needs 'control.bcn'"),
        (("rank", "dcqcn"), "control: the ranking is made for BCN; it needs 'control.bcn'"),
        (("rank", "qcn"), "control: the ranking is made for BCN; it needs 'control.bcn'"),
        (
            ("stability", "hot.yaml", "--set", "control.bcn.congestion_point.at=host-1->*"),
            "only queues of switches measure",
        ),
    ],
)
def test_what_theory_cannot_judge_is_told_with_its_place(weir, hot, words, told):
    outcome = weir(*words)
    assert told in outcome.err
    assert outcome.code == 2


@pytest.mark.parametrize("change", ["byte_counter=none", "hyper_after=1", "hyper_grows=false"])
def test_growth_that_is_not_that_of_the_theory_is_told_with_its_place(weir, change):
    outcome = weir("stability", "qcn", "--set", f"control.qcn.reaction_point.recovery.{change}")
    assert outcome.code == 2
    assert "control.qcn.reaction_point.recovery: theory needs a byte counter" in outcome.err


def test_queues_that_no_limited_flow_passes_are_told_with_their_place(weir, hot):
    outcome = weir(
        "stability",
        hot,
        "--set",
        "control.bcn.reaction_point.at=host-0",
        "--set",
        "control.bcn.congestion_point.at=switch-0->host-0",
    )
    assert outcome.code == 2
    assert (
        "control.bcn.congestion_point.at: no flow of a host that obeys passes any of these ports"
        in outcome.err
    )
