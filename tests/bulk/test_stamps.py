"""One-way delays and jitter of test packets: what a plan takes, and what is told of them."""

import dataclasses
import math

import pytest

from made_campaigns import FILE, measured
from weirlab.campaigns import plan_of, run_campaign, summaries
from weirlab.campaigns.measurement import Stamps
from weirlab.campaigns.simulated import measure_simulated
from weirlab.campaigns.summary import goodput_bps
from weirlab.errors import UnsupportedError
from weirlab.report.bulk import delays_table
from weirlab.scenario import loads

STAMPED = (
    FILE.replace(
        "\ncampaign:", "\n  stamp: {from: a, to: b, source: {kind: stamp, every: 100 ms}}\ncampaign:"
    )
    .replace("run: [bulk, ping],", "run: [bulk, ping, stamp],")
    .replace("run: ping,", "run: [ping, stamp],")
)


def stamped(what, path, seed):
    """Ten packets: one lost on the way there, another one on the way back; queues under load."""
    queue = 0.0 if what.load is None else 0.020
    there = (0.010, 0.010 + queue, None, 0.010 + queue, *(0.010,) * 6)
    back = (0.011, 0.011, None, None, *(0.011,) * 6)
    found = measured(what, path, seed)
    return dataclasses.replace(found, stamps=Stamps(there, back, 0.0))


def test_a_step_has_as_many_packets_as_fit_into_it():
    (unloaded, loaded) = plan_of(loads(STAMPED)).steps[0][::-1]
    assert (unloaded.stamps.count(unloaded.duration_s), loaded.stamps.count(20.0)) == (100, 200)
    assert loaded.stamps.payload_bytes == 44


def test_losses_count_in_the_direction_in_which_they_happened(tmp_path):
    found = summaries(run_campaign(loads(STAMPED), tmp_path, measure=stamped))
    up, down = found[0].delays[:2]
    assert [(each.direction, each.loaded) for each in found[0].delays] == [
        ("forward", False),
        ("backward", False),
        ("forward", True),
        ("backward", True),
    ]
    assert (up.sent, up.lost) == (30, pytest.approx(0.1))
    # Of 27 answers three did not arrive.
    assert (down.sent, down.lost) == (27, pytest.approx(3 / 27))
    assert (down.median_s, down.jitter_s) == (0.011, 0.0)


def test_jitter_is_the_mean_change_between_packets_that_both_arrived(tmp_path):
    loaded = summaries(run_campaign(loads(STAMPED), tmp_path, measure=stamped))[0].delays[2]
    # Of seven pairs one grows by 20 ms and one falls by as much; those beside the lost packet tell nothing.
    assert loaded.jitter_s == pytest.approx(2 * 0.020 / 7)
    assert loaded.p99_s == pytest.approx(0.030)
    assert loaded.least_s == 0.010


def test_the_table_has_a_row_for_each_direction_and_load(tmp_path):
    campaign = run_campaign(loads(STAMPED), tmp_path, measure=stamped)
    table = delays_table(summaries(campaign))
    assert len(table.rows) == 2 * 4
    assert table.rows[2][1:3] == ["up", "loaded"]
    assert delays_table(summaries(run_campaign(loads(FILE), tmp_path / "plain", measure=measured))) is None


@pytest.mark.parametrize(
    ("changes", "place", "message"),
    [
        ({"testbed.kind": "sim"}, "source", "the simulator's campaigns have no test packets"),
        ({"traffic.stamp.from": "b", "traffic.stamp.to": "a"}, "from", "start at the near end"),
        ({"traffic.stamp.source.every": "100 us"}, "source.every", "is 1 ms or more"),
        ({"traffic.stamp.source.payload": "40 B"}, "source.payload", "have 44 B to 65.507 kB"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_its_place(changes, place, message):
    with pytest.raises(UnsupportedError) as caught:
        plan_of(loads(STAMPED, {"study": None, **changes}))
    (problem,) = (each for each in caught.value.problems if each.path.startswith("traffic.stamp"))
    assert problem.path == f"traffic.stamp.{place}"
    assert message in problem.message


def test_between_hosts_with_clocks_of_their_own_they_are_refused():
    text = STAMPED.replace("from: a", "from: sender").replace("to: b", "to: receiver")
    bed = {"testbed": {"kind": "iperf3", "server": "192.0.2.7"}, "network": None, "study": None}
    with pytest.raises(UnsupportedError, match="need one clock at both ends"):
        plan_of(loads(text, bed))


def test_ipv6_takes_twenty_bytes_of_each_segment():
    changes = {"testbed.kind": "sim", "traffic.bulk.transport.window": "1 MiB", "campaign.cycles": "1"}
    goodputs = []
    for ip in ("ipv4", "ipv6"):
        plan = plan_of(loads(FILE, {**changes, "testbed.ip": ip}))
        place = plan.places()[0]
        found = measure_simulated(plan.measured(place), plan.paths[0], 1)
        goodputs.append(goodput_bps(found.transfer))
    # Payloads of 1448 B and 1428 B in packets of 1500 B and 18 B of Ethernet.
    assert goodputs[1] / goodputs[0] == pytest.approx(1428 / 1448, rel=2e-3)
    assert not math.isnan(goodputs[0])
