"""Emulated paths in scenario files: what they mean to the core, and what is refused where."""

import json
import os

import pytest
from hypothesis import given, strategies as st

from weirlab import _core, spec as core
from weirlab.errors import InputError, ScenarioError
from weirlab.scenario import load, loads
from weirlab.scenario.network.path import line_spec, path_plan
from weirlab.scenario.network.rate_trace import read_rate_trace

FILE = """weirlab: 1
name: wan
testbed:
  kind: netns
  hops:
    wan:
      forward: {LINE}
"""


def line(text):
    return loads(FILE.replace("LINE", text)).testbed.hops["wan"].forward


def complaint(text):
    with pytest.raises(ScenarioError) as caught:
        loads(FILE.replace("LINE", text))
    return [f"{problem.path}: {problem.message}" for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "part", "meaning"),
    [
        ("rate: 30 Mbit/s", "rate", {"kind": "constant", "rate_bps": 30_000_000}),
        ("delay: 82.5 ms", "rate", {"kind": "unlimited"}),
        (
            "steps: [{at: 0 s, rate: 1 Mbit/s}, {at: 2 s, rate: 0 bit/s}], repeat: 3 s",
            "rate",
            {"kind": "steps", "steps": [[0, 10**6], [2 * 10**12, 0]], "period_ps": 3 * 10**12},
        ),
        ("delay: 82.5 ms", "delay_ps", 82_500_000_000),
        ("loss: 0.015 %", "loss", {"kind": "random", "probability": 0.00015}),
        (
            "bursts: {to_bad: 0.001, to_good: 10 %}",
            "loss",
            {"kind": "gilbert-elliott", "to_bad": 0.001, "to_good": 0.1, "loss_good": 0.0, "loss_bad": 1.0},
        ),
        ("rate: 1 Mbit/s, buffer: 60 kB", "limit", {"bytes": 60_000}),
        ("rate: 1 Mbit/s, buffer: 9 frames", "limit", {"frames": 9}),
        ("rate: 1 Mbit/s", "aqm", None),
        (
            "rate: 1 Mbit/s, queue: {kind: codel, target: 2 ms, ecn: true}",
            "aqm",
            {"kind": "codel", "target_ps": 2 * 10**9, "interval_ps": 10**11, "ecn": True},
        ),
        ("jitter: {size: 1 ms}", "jitter", {"kind": "uniform", "most_ps": 10**9, "keeps_order": True}),
        (
            "jitter: {size: 1 ms, distribution: exponential, keeps_order: false}",
            "jitter",
            {"kind": "exponential", "mean_ps": 10**9, "keeps_order": False},
        ),
        ("reorder: {share: 1 %, later: 5 ms}", "reorder", {"probability": 0.01, "later_ps": 5 * 10**9}),
        (
            "rate: 9 Mbit/s, cross: {web: {source: {kind: poisson, rate: 8 Mbit/s, frame_size: 1000 B}}}",
            "cross",
            [
                {
                    "departures": {"kind": "poisson", "mean_gap_ps": 1e9},
                    "frame_size": {"fixed": 1000},
                    "lane": 0,
                }
            ],
        ),
    ],
)
def test_a_line_means_this_to_the_core(text, part, meaning):
    spec = json.loads(line_spec(line(text)).json())
    assert spec[part] == meaning
    assert json.loads(_core.check_line(json.dumps(spec)))[part] == meaning


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rate: 1 Mbit/s, steps: [{at: 0 s, rate: 1 Mbit/s}]", "steps: cannot be combined with 'rate'"),
        ("steps: [{at: 1 s, rate: 1 Mbit/s}]", "steps: the first rate holds from 0 on"),
        ("rate: 1 Mbit/s, trace: x", "trace: cannot be combined with 'rate' or 'steps'"),
        ("repeat: 1 s", "repeat: of what? write 'steps'"),
        ("loss: 1 %, bursts: {to_bad: 1 %, to_good: 1 %}", "bursts: cannot be combined with 'loss'"),
        ("bursts: {to_bad: 0, to_good: 0}", "bursts: a channel of two states"),
        ("buffer: 60 kB", "buffer: needs a transmitter"),
        (
            "rate: 1 Mbit/s, "
            "cross: {x: {lane: 1, source: {kind: constant, rate: 1 kframe/s, frame_size: 64 B}}}",
            "cross.x.lane: there are 1 transmitters (got 1, counted from 0)",
        ),
        ("rate: 1 Mbit/s, lanes: 1000", "lanes: 1 to 256 transmitters"),
        ("loss: 200 %", "loss: a fraction lies between 0 % and 100 %"),
        (
            "rate: 1 Mbit/s, cross: {x: {source: {kind: constant, load: 1 %, frame_size: 64 B}}}",
            "cross: needs the line rate",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_place(text, message):
    assert [told.startswith(f"testbed.hops.wan.forward.{message}") for told in complaint(text)] == [True]


def traced(tmp_path, times, line="trace: link.trace, trace_bin: 10 ms"):
    (tmp_path / "link.trace").write_text("".join(f"{time}\n" for time in times))
    (tmp_path / "wan.yaml").write_text(FILE.replace("LINE", line))
    return path_plan(load(tmp_path / "wan.yaml")).hops["wan"].forward


def test_a_trace_becomes_the_rates_of_its_bins(tmp_path):
    # Ten packets in the first 10 ms, none in the second, one in the rest of 25 ms.
    spec = json.loads(line_spec(traced(tmp_path, [*range(1, 11), 25])).json())
    bits = 1504 * 8
    rates = [[0, bits * 1000], [10 * 10**9, 0], [20 * 10**9, bits * 200]]
    assert spec["rate"] == {"kind": "steps", "steps": rates, "period_ps": 25 * 10**9}
    _core.check_line(json.dumps(spec))


@given(st.lists(st.integers(0, 500), min_size=1, max_size=200), st.integers(1, 300))
def test_a_trace_keeps_all_that_could_leave(tmp_path_factory, times, bin_ms):
    times = [*sorted(times), 501]
    file = tmp_path_factory.mktemp("trace") / "link.trace"
    file.write_text("".join(f"{time}\n" for time in times))
    steps, period = read_rate_trace(file, bin_ms * 10**9)
    ends = [at for at, _ in steps[1:]] + [period]
    bits = sum(rate * (end - at) / 1e12 for (at, rate), end in zip(steps, ends, strict=True))
    assert bits == pytest.approx(len(times) * 1504 * 8, abs=1.0 * len(steps))


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([], "has times"),
        ([0], "above 0 ms"),
        ([1, "secret"], r"link.trace:2: no time in whole ms; a trace has one on each line$"),
        ([5, 4], r"link.trace:2: times ascend \(got 4 after 5\)"),
    ],
)
def test_what_is_no_trace_is_refused_with_its_line_and_not_shown(tmp_path, times, message):
    with pytest.raises(InputError, match=message):
        traced(tmp_path, times)


def test_a_trace_that_might_never_end_is_refused_before_it_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("/dev/zero", "pipe", "."):
        with pytest.raises(InputError, match="not an ordinary file"):
            read_rate_trace(tmp_path / name, 10**9)
    with pytest.raises(InputError, match="there is no such file"):
        read_rate_trace(tmp_path / "none", 10**9)


def test_an_emulated_path_has_no_network_of_a_simulation():
    text = FILE.replace("LINE", "delay: 1 ms") + "network: {kind: star, hosts: 2, link: {rate: 1 Gbit/s}}\n"
    with pytest.raises(ScenarioError, match="network: a path of 'hops' has none"):
        loads(text)


def test_both_directions_are_alike_unless_said_otherwise():
    path = path_plan(loads(FILE.replace("LINE", "delay: 1 ms")))
    assert path.hops["wan"].backward is None
    assert path.mtu_bytes == 1500
    assert path.joined


def test_a_scenario_may_ask_for_packets_one_by_one():
    text = FILE.replace("LINE", "delay: 1 ms").replace("kind: netns", "kind: netns\n  joined: false")
    assert not path_plan(loads(text)).joined


NETWORK = """weirlab: 1
name: wan
testbed: {kind: netns, path: emulator}
network:
  kind: path
  ends: [a, b]
  link: {rate: 30 Mbit/s, delay: 82.5 ms, loss: {kind: random, ratio: 3e-4}}
queues: {bottleneck: {at: a->b, kind: drop-tail, limit: 120 kB}}
"""


def test_a_network_of_two_hosts_is_a_path_of_one_hop():
    path = path_plan(loads(NETWORK))
    (hop,) = path.hops.values()
    there, back = line_spec(hop.forward), line_spec(hop.backward)
    assert (there.limit, back.limit) == (core.LimitBytes(bytes=120_000), "unlimited")
    assert there.framing_bytes == 38
    assert there.rate == back.rate == core.RateSpecConstant(rate_bps=30_000_000)
    assert there.loss == back.loss == core.LossModelRandom(probability=3e-4)


def test_another_network_is_not_emulated():
    star = NETWORK.replace("kind: path\n  ends: [a, b]", "kind: star\n  hosts: 2").replace("a->b", "'*->*'")
    with pytest.raises(ScenarioError, match="what is emulated is two hosts and a link"):
        loads(star)
