"""What a campaign measures, in which order, and what it refuses."""

import pytest

from weirlab.campaigns import Load, Place, Probe, RequestSeries, plan_of
from weirlab.campaigns.causes import ceiling_bps
from weirlab.errors import ScenarioError, UnsupportedError
from weirlab.scenario import load, loads

FILE = """weirlab: 1
name: small
testbed: {kind: netns, path: emulator}
network: {kind: path, ends: [a, b], link: {rate: 10 Mbit/s, delay: 1 ms}}
traffic:
  bulk:
    from: a
    to: b
    streams: 8
    source: {kind: bulk}
    transport: {kind: tcp, congestion_control: {kind: reno}, window: 64 KiB}
  ping: {from: b, to: a, source: {kind: ping, every: 1 s}}
campaign:
  cycles: 3
  cycle: [{name: loaded, run: [bulk, ping], for: 20 s}, {name: unloaded, run: ping, for: 10 s}]
study:
  factors: {traffic.bulk.streams: [1, 20, 5, 12]}
"""
POINT = FILE.partition("study:")[0]
"""The same without a study."""


def complaint(before, after):
    with pytest.raises(UnsupportedError) as caught:
        plan_of(loads(POINT.replace(before, after)))
    return [f"{problem.path}: {problem.message}" for problem in caught.value.problems]


def test_a_cycle_takes_each_point_loaded_and_unloaded_in_turn():
    plan = plan_of(loads(FILE))
    assert [dict(levels) for levels in plan.levels] == [
        {"traffic.bulk.streams": name} for name in ("1", "20", "5", "12")
    ]
    assert plan.places()[:4] == [Place(0, 0, 0), Place(0, 0, 1), Place(0, 1, 0), Place(0, 1, 1)]
    assert len(plan.places()) == 3 * 4 * 2
    loaded, unloaded = (plan.measured(Place(0, 1, step)) for step in (0, 1))
    assert loaded.load == Load(True, 20, 65536, "reno", loads(FILE).traffic["bulk"].transport)
    assert loaded.probe == unloaded.probe == Probe(False, 1.0, 56, 20.0)
    assert unloaded.load is None
    assert (loaded.duration_s, unloaded.duration_s) == (20.0, 10.0)


def test_a_random_order_is_another_in_each_cycle_and_the_same_each_time():
    text = FILE.replace("cycles: 3", "cycles: 30\n  order: random")
    plan = plan_of(loads(text))
    orders = [
        tuple(p.point for p in plan.places() if p.cycle == cycle and p.step == 0) for cycle in range(30)
    ]
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    assert len(set(orders)) > 5
    assert plan.places() == plan_of(loads(text)).places()
    assert plan.places() != plan_of(loads(text + "run: {seed: 2}\n")).places()


def test_each_measurement_has_chance_of_its_own():
    plan = plan_of(loads(FILE))
    seeds = {plan.seed(place) for place in plan.places()}
    assert len(seeds) == len(plan.places())
    assert plan.seed(Place(1, 2, 0)) == plan_of(loads(FILE)).seed(Place(1, 2, 0))


def test_without_a_study_there_is_one_point():
    plan = plan_of(loads(POINT))
    assert [dict(levels) for levels in plan.levels] == [{}]


def test_a_factor_may_change_the_path():
    text = FILE.replace("traffic.bulk.streams: [1, 20, 5, 12]", "network.link.rate: [1 Mbit/s, 2 Mbit/s]")
    rates = [path.hops["link"].forward.rate.bps for path in plan_of(loads(text)).paths]
    assert rates == [10**6, 2 * 10**6]


@pytest.mark.parametrize(
    ("before", "after", "messages"),
    [
        (
            "kind: reno",
            "kind: rapid, n: 4, rho: 2, estimator: {kind: gap, epsilon: 1 us}",
            ["traffic.bulk.transport"],
        ),
        (
            "source: {kind: ping, every: 1 s}",
            "source: {kind: constant, rate: 1 Mbit/s, frame_size: 64 B}",
            ["traffic.ping.source"],
        ),
        ("source: {kind: bulk}", "source: {kind: bulk, stop: 1 s}", ["traffic.bulk.transport"]),
        (
            "source: {kind: ping, every: 1 s}",
            "source: {kind: ping, every: 1 s}, stop: 1 s",
            ["traffic.ping.stop"],
        ),
    ],
)
def test_what_real_stacks_have_not_is_refused_with_its_place(before, after, messages):
    told = complaint(before, after)
    assert [each.partition(": ")[0] for each in told] == messages


def test_two_transfers_at_a_time_are_for_real_stacks():
    text = POINT.replace(
        "  ping:",
        "  more: {from: a, to: b, source: {kind: bulk}, "
        "transport: {kind: tcp, congestion_control: {kind: cubic}}}\n  ping:",
    ).replace("[bulk, ping]", "[bulk, more]")
    assert list(plan_of(loads(text)).steps[0][0].beside) == ["more"]
    with pytest.raises(UnsupportedError, match="more than one bulk transfer in simulated time"):
        plan_of(loads(text, {"testbed.kind": "sim"}))


REQUESTS = POINT.replace(
    "\ncampaign:",
    "\n  requests: {from: a, to: b, source: {kind: requests, every: 100 ms}}\ncampaign:",
).replace("[bulk, ping]", "[bulk, ping, requests]")


def test_requests_run_beside_pings_and_transfer():
    loaded, unloaded = plan_of(loads(REQUESTS)).steps[0]
    assert loaded.requests == RequestSeries(True, 0.1, 20.0)
    assert loaded.requests.count(20.0) == 200
    assert loaded.load is not None
    assert loaded.probe is not None
    assert unloaded.requests is None


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("every: 100 ms", "every: 1 ms", r"requests.source: 'every' is 10 ms or more \(got 1 ms\)"),
        ("every: 100 ms", "every: 20 ms", r"more than 500 connections .* \(got 20 s of 20 ms each\)"),
        ("{kind: netns,", "{kind: sim,", "requests.source: the simulator's campaigns have no HTTP requests"),
        (
            "testbed: {kind: netns, path: emulator}\nnetwork: {kind: path, ends: [a, b], link: "
            "{rate: 10 Mbit/s, delay: 1 ms}}",
            "testbed: {kind: ssh, far: box}",
            "nothing but OpenSSH, iperf3 and ping is used",
        ),
    ],
)
def test_requests_that_cannot_be_made_are_refused_with_the_reason(before, after, message):
    text = REQUESTS.replace(before, after)
    if "kind: ssh" in text:
        for end, name in (("a", "sender"), ("b", "receiver")):
            text = text.replace(f"from: {end}", f"from: {name}").replace(f"to: {end}", f"to: {name}")
    with pytest.raises(UnsupportedError, match=message):
        plan_of(loads(text))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "for: 20 s",
            "for: 2.5 s",
            "campaign.cycle.0.for: iperf3 takes whole seconds, a day at most (got 2.5 s)",
        ),
        (
            "for: 20 s",
            "for: 500 ms",
            "campaign.cycle.0.for: iperf3 takes whole seconds, a day at most (got 500 ms)",
        ),
        ("streams: 8", "streams: 200", "traffic.bulk.streams: iperf3 has at most 128 (got 200)"),
        (
            "window: 64 KiB",
            "window: 600 MiB",
            "traffic.bulk.transport.window: iperf3 asks for at most 536.870912 MB (got 629.1456 MB)",
        ),
        (
            "kind: ping,",
            "kind: ping, payload: 15 B,",
            "traffic.ping.source.payload: ping times requests of 16 B to 65.507 kB (got 15 B)",
        ),
        (
            "kind: ping,",
            "kind: ping, payload: 65508 B,",
            "traffic.ping.source.payload: ping times requests of 16 B to 65.507 kB (got 65.508 kB)",
        ),
    ],
)
def test_what_iperf3_or_ping_would_cut_or_refuse_is_told_beforehand(before, after, message):
    assert complaint(before, after) == [message]
    simulated = POINT.replace("kind: netns", "kind: sim").replace(before, after)
    assert plan_of(loads(simulated)).steps


def test_a_step_without_a_transfer_may_take_a_part_of_a_second():
    assert plan_of(loads(POINT.replace("for: 10 s", "for: 2.5 s"))).steps[0][1].duration_s == 2.5


def test_requests_have_no_transport_of_their_own():
    with pytest.raises(ScenarioError, match="requests open connections of the system's TCP"):
        loads(REQUESTS.replace("every: 100 ms}", "every: 100 ms}, transport: {kind: udp}"))


def test_two_series_of_requests_at_a_time_are_refused():
    text = REQUESTS.replace(
        "\ncampaign:", "\n  more: {from: a, to: b, source: {kind: requests, every: 1 s}}\ncampaign:"
    )
    with pytest.raises(UnsupportedError, match="more than one series of requests"):
        plan_of(loads(text.replace("ping, requests]", "ping, requests, more]")))


def test_the_ready_made_campaign_asks_beside_each_queue():
    plan = plan_of(load("responsiveness"))
    assert [levels["queue"] for levels in plan.levels] == ["drop-tail", "codel", "pie", "fq-codel"]
    assert all(step.requests is not None for steps in plan.steps for step in steps)
    queues = [path.hops["access"].forward.queue for path in plan.paths]
    assert queues[0] is None
    assert queues[3].kind == "fq-codel"


def test_a_campaign_needs_an_emulated_path():
    with pytest.raises(UnsupportedError, match="needs a path"):
        plan_of(loads(FILE.replace("testbed: {kind: netns, path: emulator}\n", "")))


def test_the_ready_made_campaign_keeps_the_product_of_streams_and_windows():
    plan = plan_of(load("windows-against-streams"))
    assert {steps[0].load.streams * steps[0].load.window_bytes for steps in plan.steps} == {2 * 256 * 1024}


HOSTS = """weirlab: 1
name: hosts
testbed:
  kind: netns
  hosts: {left: {forward: {delay: 1 ms}}, right: {forward: {rate: 5 Mbit/s, delay: 2 ms, buffer: 50 kB}}}
  hops: {uplink: {forward: {rate: 20 Mbit/s, delay: 10 ms, buffer: 100 kB}}}
traffic:
  up: {from: right, to: receiver, source: {kind: bulk}, transport: {kind: tcp, congestion_control: reno}}
  down: {from: receiver, to: left, source: {kind: bulk}, transport: {kind: tcp, congestion_control: reno}}
  ping: {from: sender, to: receiver, source: {kind: ping, every: 1 s}}
campaign: {cycles: 1, cycle: [{name: loaded, run: [up, down, ping], for: 5 s}]}
"""


def test_traffic_of_hosts_behind_the_near_end_says_of_which():
    plan = plan_of(loads(HOSTS))
    (step,) = plan.steps[0]
    assert [(each.host, each.forward) for each in step.loads] == [("right", True), ("left", False)]
    assert list(plan.paths[0].hosts) == ["left", "right"]
    assert loads(loads(HOSTS).to_yaml()).testbed == loads(HOSTS).testbed


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"traffic.up.to": "left"}, UnsupportedError, "goes from 'sender' or one of the hosts 'left, right'"),
        ({"traffic.ping.from": "left"}, UnsupportedError, "hosts have transfers and UDP"),
        ({"traffic.up.from": "middle"}, ScenarioError, "no node is called 'middle'"),
        ({"testbed.hosts.uplink": {"forward": {}}}, ScenarioError, "is the name of an end or of a hop"),
        ({"testbed.hops": None, "testbed.path": "emulator"}, ScenarioError, "are behind the near end"),
    ],
)
def test_hosts_that_cannot_be_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        plan_of(loads(HOSTS, changes))


def test_the_hop_of_a_host_bounds_what_it_can_carry():
    plan = plan_of(loads(HOSTS))
    up = plan.steps[0][0].load
    assert ceiling_bps(plan.paths[0], up, 5.0) == pytest.approx(5e6 * 1448 / 1500)
