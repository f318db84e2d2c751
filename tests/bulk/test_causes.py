"""What keeps a transfer from carrying more: causes compared with what their removal brings on the same
path."""

import dataclasses
import math

import pytest

from made_campaigns import FILE, measured
from weirlab.campaigns import plan_of, run_campaign
from weirlab.campaigns.campaign import Campaign, Kept
from weirlab.campaigns.causes import ceiling_bps, limits, loss_bound_bps, most_segments
from weirlab.campaigns.simulated import measure_simulated
from weirlab.campaigns.summary import goodput_bps
from weirlab.errors import UnsupportedError
from weirlab.report.page import fixed
from weirlab.scenario import loads
from weirlab.stats import median

PATH = """weirlab: 1
name: path
testbed:
  kind: sim
  hops:
    wan:
      forward: {rate: 20 Mbit/s, delay: 25 ms, buffer: 125 kB}
      backward: {rate: 20 Mbit/s, delay: 25 ms}
traffic:
  bulk:
    from: sender
    to: receiver
    streams: 1
    source: {kind: bulk}
    transport: {kind: tcp, congestion_control: {kind: reno}, window: 1 MiB}
campaign: {cycles: 3, cycle: [{name: loaded, run: bulk, for: 30 s}]}
"""
LINE = "testbed.hops.wan.forward"
BACK = "testbed.hops.wan.backward.rate"
TCP = "traffic.bulk.transport"
WITHOUT_RATE = {f"{LINE}.rate": None, f"{LINE}.buffer": None}
PATHS = {
    "a path as it should be": ({}, {"bottleneck"}),
    "losses that many streams do not mind": (
        {f"{LINE}.loss": "0.1 %", "traffic.bulk.streams": "16"},
        {"bottleneck"},
    ),
    "BBR beside losses": (
        {f"{LINE}.loss": "0.3 %", f"{TCP}.congestion_control.kind": "bbr"},
        {"bottleneck"},
    ),
    "a queue that drops early, for many": (
        {f"{LINE}.queue": "codel", "traffic.bulk.streams": "8"},
        {"bottleneck"},
    ),
    "Reno and losses": ({f"{LINE}.loss": "0.5 %"}, {"loss"}),
    "CUBIC and losses": ({f"{LINE}.loss": "1 %", f"{TCP}.congestion_control.kind": "cubic"}, {"loss"}),
    "losses on a path without a rate": (
        {f"{LINE}.rate": None, f"{LINE}.buffer": None, f"{LINE}.loss": "1 %"},
        {"loss"},
    ),
    "a small buffer": ({f"{LINE}.buffer": "8 kB"}, {"buffer"}),
    "a small buffer over a long path": (
        {
            f"{LINE}.buffer": "30 kB",
            f"{LINE}.delay": "80 ms",
            "campaign.cycle": [{"name": "loaded", "run": "bulk", "for": "60 s"}],
        },
        {"buffer"},
    ),
    "a small window": ({f"{TCP}.window": "32 KiB"}, {"window"}),
    "a small window and no rate": (
        {f"{LINE}.rate": None, f"{LINE}.buffer": None, f"{TCP}.window": "64 KiB"},
        {"window"},
    ),
    "a way back with no room for more acknowledgements": (
        {f"{LINE}.rate": "100 Mbit/s", f"{LINE}.buffer": "600 kB", BACK: "0.5 Mbit/s"},
        {"way back"},
    ),
    "a transfer that is short": (
        {
            f"{LINE}.delay": "250 ms",
            "campaign.cycle": [{"name": "loaded", "run": "bulk", "for": "10 s"}],
            f"{LINE}.buffer": "2 MB",
            f"{TCP}.window": "4 MiB",
        },
        {"start"},
    ),
}
REMEDIES = {
    "bottleneck": {f"{LINE}.rate": "40 Mbit/s", f"{LINE}.buffer": "250 kB"},
    "loss": {f"{LINE}.loss": None},
    "buffer": {f"{LINE}.buffer": "1 MB"},
    "window": {f"{TCP}.window": "4 MiB"},
    "way back": {BACK: "100 Mbit/s"},
}
"""What removes a cause."""
RATE = {"rate": "10 Mbit/s", "frame_size": "1000 B"}
MORE = 1.1
"""What a remedy has to bring, as a factor of the goodput."""


def made(changes):
    """The campaign of a path, simulated."""
    plan = plan_of(loads(PATH, dict(changes)))
    kept = tuple(
        Kept(place, measure_simulated(plan.measured(place), plan.paths[place.point], plan.seed(place)), ())
        for place in plan.places()
    )
    return Campaign(plan, kept)


def goodput(campaign):
    return median([goodput_bps(each.measurement.transfer) for each in campaign.kept])


@pytest.mark.parametrize("name", PATHS)
def test_a_cause_is_what_must_go_for_more_to_be_carried(name):
    changes, expected = PATHS[name]
    campaign = made(changes)
    found = limits(campaign, 0, None)
    assert {limit.what for limit in found} == expected, found
    own, rate = goodput(campaign), changes.get(f"{LINE}.rate", "")
    for what, remedy in REMEDIES.items():
        if what in ("bottleneck", "buffer") and rate is None:
            continue  # nothing waits
        gained = goodput(made({**changes, **remedy})) / own
        if what in expected:
            assert gained > MORE, (what, gained)
        elif what != "bottleneck":  # a faster link also has less to wait for and drops less
            assert gained < MORE, (what, gained)


@pytest.mark.parametrize("sense", [True, False])
def test_losses_count_in_the_direction_of_the_load_alone(sense):
    """Acknowledgements that are lost keep nobody from sending."""
    way = "forward" if sense else "backward"
    changes = {f"testbed.hops.wan.{way}.loss": "2 %", f"{TCP}.window": "1 MiB"}
    found = {limit.what for limit in limits(made(changes), 0, None)}
    assert found == ({"loss"} if sense else {"bottleneck"})


def test_the_ceiling_of_a_path_is_its_slowest_transmitter_without_headers():
    changes = {
        f"{LINE}.framing": "38 B",
        "testbed.hops.last": {"forward": {"rate": "100 Mbit/s", "delay": "1 ms", "buffer": "100 kB"}},
    }
    plan = plan_of(loads(PATH, changes))
    load = plan.steps[0][0].load
    assert ceiling_bps(plan.paths[0], load, 30.0) == pytest.approx(20e6 * 1448 / 1538)
    stepped = {
        LINE: {
            "steps": [{"at": "0 s", "rate": "10 Mbit/s"}, {"at": "15 s", "rate": "30 Mbit/s"}],
            "delay": "25 ms",
        }
    }
    plan = plan_of(loads(PATH, stepped))
    assert ceiling_bps(plan.paths[0], load, 30.0) == pytest.approx(20e6 * 1448 / 1500)
    assert ceiling_bps(plan.paths[0], load, 20.0) == pytest.approx(15e6 * 1448 / 1500)


def test_random_losses_leave_what_the_formulas_say():
    load = plan_of(loads(PATH)).steps[0][0].load
    # 1448 B / 0.1 s * sqrt(3 / (2 * 1e-4)), and little for timeouts.
    assert loss_bound_bps(load, 1e-4, 0.1, 1448) == pytest.approx(14.19e6, rel=0.01)
    cubic = dataclasses.replace(load, congestion_control="cubic")
    # (0.4 * 3.7 / 1.2) ** 0.25 * (0.1 / 1e-4) ** 0.75 segments in 0.1 s: more than Reno's 122.
    assert loss_bound_bps(cubic, 1e-4, 0.1, 1448) == pytest.approx(21.7e6, rel=0.01)
    assert loss_bound_bps(load, 0.0, 0.1, 1448) == math.inf


def with_transfer(campaign, **changes):
    """The same with other values in each measurement."""
    kept = tuple(
        dataclasses.replace(each, measurement=dataclasses.replace(each.measurement, **changes))
        for each in campaign.kept
    )
    return dataclasses.replace(campaign, kept=kept)


def test_a_path_without_rate_that_busy_processors_limit_has_no_bottleneck_but_a_cpu():
    unlimited = {f"{LINE}.rate": None, f"{LINE}.buffer": None, f"{TCP}.window": "256 KiB"}
    campaign = made({**unlimited, f"{LINE}.loss": "2 %"})
    streams = [each.measurement.transfer for each in campaign.kept]
    quiet = with_transfer(
        campaign,
        transfer=dataclasses.replace(
            streams[0], streams=tuple(dataclasses.replace(s, retransmits=0) for s in streams[0].streams)
        ),
    )
    assert limits(quiet, 0, goodput(campaign)) == []
    # 1.88 CPUs, of which the ends have none and others one: the emulator has as much as it takes of one.
    emulator = with_transfer(quiet, busy_cpus=1.88, foreign_cpus=1.0, joined=())
    (found,) = limits(emulator, 0, goodput(campaign))
    assert found.what == "cpu"
    assert "the emulator of the path keeps a CPU busy for 88 %" in found.evidence
    host = with_transfer(quiet, busy_cpus=1000.0, foreign_cpus=1000.0, joined=())
    (found,) = limits(host, 0, goodput(campaign))
    assert (found.what, "with others' work" in found.evidence) == ("cpu", True)


def test_streams_that_share_a_lane_fill_it_and_leave_others_empty():
    lanes = {f"{LINE}.lanes": "4", f"{LINE}.rate": "10 Mbit/s", f"{LINE}.buffer": "60 kB"}
    for streams, full in (("1", 1), ("4", 3), ("16", 4)):
        campaign = made({**lanes, "traffic.bulk.streams": streams})
        assert goodput(campaign) == pytest.approx(full * 9.65e6, rel=0.03)
        (found,) = limits(campaign, 0, None)
        assert found.what == "bottleneck"
        assert (f"{full} of 4 lanes are full" in found.evidence) == (streams == "4")


def test_larger_windows_that_carry_no_more_are_no_full_link_where_streams_lose_at_random():
    """The most that such a path carries is not known: others use it, too."""
    others = {f"{LINE}.cross": {"others": {"source": {"kind": "poisson", **RATE}}}}
    losing = made({**others, f"{LINE}.loss": "2 %"})
    assert [each.what for each in limits(losing, 0, None, goodput(losing))] == ["loss"]
    assert [each.what for each in limits(losing, 0, 2 * goodput(losing), goodput(losing))] == ["loss"]
    full = made({**others, "traffic.bulk.streams": "4"})
    assert [each.what for each in limits(full, 0, goodput(full))] == ["bottleneck"]
    used_up = made({**others, f"{TCP}.window": "64 KiB"})
    assert [each.what for each in limits(used_up, 0, None, goodput(used_up))] == ["bottleneck"]
    assert [each.what for each in limits(used_up, 0, None, 2 * goodput(used_up))] == ["window"]


def test_between_real_hosts_the_bottleneck_is_where_more_brings_no_more(tmp_path):
    text = FILE.replace(
        "testbed: {kind: netns, path: emulator}\nnetwork: {kind: path, ends: [a, b], link: "
        "{rate: 10 Mbit/s, delay: 1 ms}}",
        "testbed: {kind: ssh, far: far.example.net}",
    )
    text = text.replace("from: a", "from: sender").replace("to: b", "to: receiver")
    campaign = run_campaign(loads(text), tmp_path, measure=measured)
    own = 1e6  # of a stream
    assert [each.what for each in limits(campaign, 0, own)] == ["bottleneck"]
    assert limits(campaign, 0, 2 * own) == []
    resent = with_resent(campaign)
    (found,) = limits(resent, 0, 2 * own)
    assert (found.what, "where they were lost is not known" in found.evidence) == ("loss", True)


def with_resent(campaign):
    def told(measurement):
        if measurement is None or measurement.transfer is None:
            return measurement
        streams = tuple(dataclasses.replace(each, retransmits=10) for each in measurement.transfer.streams)
        return dataclasses.replace(
            measurement, transfer=dataclasses.replace(measurement.transfer, streams=streams)
        )

    kept = tuple(dataclasses.replace(each, measurement=told(each.measurement)) for each in campaign.kept)
    return dataclasses.replace(campaign, kept=kept)


def test_a_difference_that_rounds_to_nothing_has_no_sign():
    assert [fixed(value, 2) for value in (-0.004, 0.0, -0.006, math.nan)] == ["0.00", "0.00", "-0.01", ""]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {
            f"{LINE}.rate": None,
            f"{LINE}.buffer": None,
            f"{TCP}.window": "64 KiB",
            "traffic.bulk.streams": "4",
        },
        {**WITHOUT_RATE, f"{LINE}.loss": "1 %"},
    ],
)
def test_how_much_there_is_to_simulate_is_known_before(changes):
    campaign = made(changes)
    carried = sum(
        stream.received_bytes / 1448 for kept in campaign.kept for stream in kept.measurement.transfer.streams
    )
    assert carried / 1.5 < most_segments(campaign.plan) < 1.5 * carried


def test_a_simulated_path_without_rate_and_delay_is_refused():
    instant = {LINE: {"delay": "0 s"}, "testbed.hops.wan.backward": None}
    with pytest.raises(UnsupportedError, match="needs a delay or a rate"):
        plan_of(loads(PATH, instant))
    assert plan_of(loads(PATH, {**instant, "testbed.hops.wan.forward.delay": "1 us"}))
