"""The same campaign in simulated time, from the same file."""

import numpy as np
import pytest

from weirlab import _core
from weirlab.campaigns import plan_of, run_campaign, summaries
from weirlab.campaigns.simulated import measure_simulated
from weirlab.errors import ScenarioError, UnsupportedError
from weirlab.scenario import load, loads
from weirlab.scenario.network.path import line_spec

FILE = """weirlab: 1
name: small
testbed: {kind: netns, path: emulator}
network: {kind: path, ends: [a, b], link: {rate: 20 Mbit/s, delay: 25 ms, framing: none}}
queues: {bottleneck: {at: a->b, kind: drop-tail, limit: 60 kB}}
traffic:
  bulk:
    from: a
    to: b
    streams: 3
    source: {kind: bulk}
    transport: {kind: tcp, congestion_control: {kind: reno}, window: 14480 B}
  ping: {from: a, to: b, source: {kind: ping, every: 1 s}}
campaign:
  cycles: 2
  cycle: [{name: loaded, run: [bulk, ping], for: 10 s}, {name: unloaded, run: ping, for: 5 s}]
"""
CONTROL = "traffic.bulk.transport.congestion_control"
RAPID = {f"{CONTROL}.kind": "rapid", f"{CONTROL}.n": "99", f"{CONTROL}.rho": "7.2"}
RAPID |= {f"{CONTROL}.estimator.kind": "gap", f"{CONTROL}.estimator.epsilon": "0.5 us"}
HOPS = """weirlab: 1
name: chain
testbed:
  kind: sim
  hops:
    access: {forward: {rate: 10 Mbit/s, delay: 5 ms, buffer: 40 kB, bursts: {to_bad: 0.001, to_good: 0.2}}}
    core: {forward: {rate: 8 Mbit/s, delay: 15 ms, buffer: 60 kB}}
traffic:
  bulk:
    from: sender
    to: receiver
    source: {kind: bulk}
    transport: {kind: tcp, congestion_control: {kind: cubic}}
  ping: {from: sender, to: receiver, source: {kind: ping, every: 500 ms}}
campaign: {cycles: 1, cycle: [{name: loaded, run: [bulk, ping], for: 10 s}]}
"""


def simulated(text, tmp_path, **changes):
    scenario = loads(text, assign={"testbed.kind": "sim", **changes})
    return run_campaign(scenario, tmp_path)


def test_one_field_moves_a_campaign_to_the_simulator():
    there, here = plan_of(loads(FILE)), plan_of(loads(FILE, assign={"testbed.kind": "sim"}))
    assert there.steps == here.steps
    assert there.paths == here.paths
    assert there.places() == here.places()
    assert [there.seed(place) for place in there.places()] == [here.seed(place) for place in here.places()]


@pytest.mark.parametrize("starts", ["on", "chance"])
def test_traffic_of_others_comes_and_goes_as_on_an_emulated_path_with_the_same_seed(starts):
    """`replay_line` is what the emulator's packets are held to, packet by packet; here those of the simulator
    are."""
    cross = {"kind": "on-off", "rate": "7 Mbit/s", "frame_size": "1500 B"}
    cross |= {"mean_on": "300 ms", "mean_off": "200 ms", "starts": starts}
    changes = {
        "testbed.hops.access.forward": {"rate": "10 Mbit/s", "cross": {"others": {"source": cross}}},
        "testbed.hops.access.backward": {"delay": "1 ms"},
        "testbed.hops.core": None,
        "campaign.cycle": [{"name": "unloaded", "run": "ping", "for": "10 s"}],
        "traffic.ping.source.every": "20 ms",
    }
    plan = plan_of(loads(HOPS, assign=changes))
    (place,) = plan.places()
    seed, path = plan.seed(place), plan.paths[0]
    found = measure_simulated(plan.measured(place), path, seed)
    assert found.pings.sent == len(found.pings.rtts_s) == 500
    sent_ps = np.arange(500, dtype=np.uint64) * 20_000_000_000
    again = _core.replay_line(
        line_spec(path.hops["access"].forward).json(),
        seed=seed,
        name="hop-0/forward",
        t_ps=sent_ps,
        size_bytes=np.full(500, 84, dtype=np.uint64),
        flow=np.zeros(500, dtype=np.uint64),
        ecn=np.zeros(500, dtype=np.uint64),
        until_ps=12 * 10**12,
    )
    told_s = (again["departed_ps"] - sent_ps[again["departed"]]) / 1e12 + 0.001
    assert found.pings.rtts_s == pytest.approx(told_s.tolist(), abs=1e-9)
    waited = told_s > 0.003
    assert 0.2 < waited.mean() < 0.9  # it comes and goes


def test_windows_bind_streams_and_an_idle_path_adds_nothing(tmp_path):
    (point,) = summaries(simulated(FILE, tmp_path))
    # Ten segments each round trip of 50 ms and three transmissions.
    assert point.goodput_bps == pytest.approx(3 * 8 * 14480 / 0.0515, rel=0.03)
    assert point.window_bytes == pytest.approx(14480, rel=0.03)
    assert 0.05 < point.unloaded_min_s < 0.0501
    assert point.loaded_loss == 0
    assert point.fairness > 0.99


def test_the_factor_of_windows_is_what_a_system_grants(tmp_path):
    (bare,) = summaries(simulated(FILE, tmp_path / "bare"))
    (granted,) = summaries(simulated(FILE, tmp_path / "granted", **{"testbed.window_factor": "1.2"}))
    assert granted.goodput_bps / bare.goodput_bps == pytest.approx(1.2, rel=0.02)


def test_measurements_are_repeated_to_the_bit_and_differ_from_cycle_to_cycle(tmp_path):
    text = FILE.replace("framing: none", "framing: none, loss: {kind: random, ratio: 1 %}")
    first, second = (simulated(text, tmp_path / name) for name in ("first", "second"))
    assert first.kept == second.kept
    assert first.kept[0].measurement != first.kept[2].measurement


def test_a_chain_with_bursts_of_losses_is_loaded_and_its_narrowest_hop_bounds_it(tmp_path):
    campaign = run_campaign(loads(HOPS), tmp_path)
    (point,) = summaries(campaign)
    assert 2e6 < point.goodput_bps < 8e6
    assert point.loaded_min_s >= 0.040
    measurement = campaign.kept[0].measurement
    assert measurement.lost > 0
    (stream,) = measurement.transfer.streams
    assert len(stream.rates_bps) == len(stream.rtts_s) == len(stream.cwnds_bytes) == 10
    assert sum(stream.interval_retransmits) == stream.retransmits > 0
    assert 8 * stream.received_bytes / 10 == pytest.approx(sum(stream.rates_bps) / 10, rel=0.02)


@pytest.mark.parametrize(
    ("kind", "change", "place"),
    [
        ("sim", RAPID, "traffic.bulk.transport"),
        ("netns", {"traffic.bulk.transport.sack": "false"}, "traffic.bulk.transport.sack"),
        ("netns", {"traffic.bulk.transport.initial_window": "3"}, "traffic.bulk.transport.initial_window"),
    ],
)
def test_what_a_testbed_does_not_honour_it_refuses_with_the_place(kind, change, place):
    with pytest.raises(UnsupportedError) as caught:
        plan_of(loads(FILE, assign={"testbed.kind": kind, **change}))
    assert [problem.path for problem in caught.value.problems] == [place]


def test_settings_that_a_file_writes_out_in_full_are_none_that_were_changed():
    plan_of(loads(loads(FILE).to_yaml()))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"campaign": None}, "is missing: what loads the path"),
        ({"testbed.path": "emulator"}, "cannot be combined with 'hops'"),
        ({"testbed.window_factor": "0"}, "a factor from 0.1 to 10"),
    ],
)
def test_a_simulated_path_that_makes_no_sense_is_told(changes, message):
    with pytest.raises(ScenarioError, match=message):
        loads(HOPS, assign={"run.duration": "1 s", **changes})


def test_the_ready_made_campaign_shows_the_published_order_in_seconds(tmp_path):
    scenario = load("windows-against-streams").assign({"testbed.kind": "sim", "campaign.cycles": 2})
    few, many = summaries(run_campaign(scenario, tmp_path))
    assert 1.5 < many.goodput_bps / few.goodput_bps < 4
