"""Frames of several sizes in one load: the order they leave in, and that every testbed takes them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from weirlab.errors import InputError, UnsupportedError
from weirlab.scenario import loads
from weirlab.scenario.traffic import IMIX
from weirlab.searches.build import build
from weirlab.searches.runner import run_search
from weirlab.testbed import open_testbed, unhonoured
from weirlab.testbed.mixes import MOST_ROUNDS, runs

TEXT = """\
weirlab: 1
name: mix
testbed: {kind: sim, device: {kind: knee, capacity: 1 Mframe/s}}
traffic:
  offered:
    from: sender
    to: receiver
    source: {kind: constant, mix: imix}
    transport: {kind: udp}
search:
  vary: traffic.offered.source.rate
  between: [10 kframe/s, 3 Mframe/s]
  goals: {NDR: {loss: 0 %, width: 2 %}}
  trial: {duration: 100 ms, settle: 10 ms}
"""
DEVICE = "kind: sim, device: {kind: knee, capacity: 1 Mframe/s}"


def test_the_internet_mix_leaves_in_runs_of_seven_four_and_one():
    assert runs(IMIX) == [(64, 7), (570, 4), (1518, 1)]


def test_sizes_are_spread_over_the_cycle_as_evenly_as_whole_frames_allow():
    assert runs([(64, 3), (1518, 2)]) == [(64, 1), (1518, 1), (64, 2), (1518, 1)]
    assert runs([(64, 99), (1518, 1)]) == [(64, 99), (1518, 1)]
    assert runs([(500, 7)]) == [(500, 1)]


@given(st.dictionaries(st.integers(64, 9000), st.integers(1, 60), min_size=1, max_size=5))
def test_a_cycle_has_the_frames_of_the_weights_and_every_round_its_part_to_one_frame(weights):
    mix = list(weights.items())
    cycle = runs(mix)
    factor = sum(weights.values()) // sum(count for _, count in cycle)
    sent = dict.fromkeys(weights, 0)
    for size, count in cycle:
        sent[size] += count
    assert {size: count * factor for size, count in sent.items()} == weights
    least = min(sent.values())
    for size, _ in mix:
        of_size = [count for each, count in cycle if each == size]
        assert len(of_size) == least
        assert max(of_size) - min(of_size) <= 1


def test_weights_that_need_thousands_of_rounds_are_refused():
    with pytest.raises(InputError, match="the least weight must be 1000 at most, common factors left out"):
        runs([(64, MOST_ROUNDS + 1), (128, MOST_ROUNDS + 2)])
    assert len(runs([(64, 10 * MOST_ROUNDS), (128, 20 * MOST_ROUNDS)])) == 2


def test_a_simulated_device_is_searched_with_a_mix():
    scenario = loads(TEXT)
    result = run_search(build(scenario), open_testbed(scenario))
    assert {trial.spec.frame_size_bytes for trial in result.trials} == {354}
    assert result.goals[0].lower.load_fps == pytest.approx(1e6, rel=0.02)


def test_a_simulated_network_carries_a_mix_up_to_the_rate_of_its_bottleneck():
    text = TEXT.replace(f"testbed: {{{DEVICE}}}", NETWORK).replace("from: sender", "from: left-0")
    text = text.replace("to: receiver", "to: right-0").replace("    transport: {kind: udp}\n", "")
    text = text.replace("3 Mframe/s]", "50 kframe/s]").replace("100 ms", "1 s")
    scenario = loads(text)
    result = run_search(build(scenario), open_testbed(scenario))
    (ndr,) = result.goals
    line_fps = 100e6 / (8 * (354 + 20))
    assert result.regular
    # The queue takes 200 of 33 000 frames, and their mean size varies by 0.7 % from trial to trial.
    assert 0.95 * line_fps < ndr.lower.load_fps < 1.02 * line_fps


NETWORK = """network:
  kind: dumbbell
  pairs: 1
  access: {rate: 1 Gbit/s, delay: 1 us}
  bottleneck: {rate: 100 Mbit/s, delay: 1 us}
queues: {router: {at: left->right, kind: drop-tail, limit: 200 frames}}"""


def test_a_router_takes_a_mix_whose_sizes_it_can_carry():
    router = TEXT.replace(DEVICE, "kind: netns, router: linux")
    assert unhonoured(loads(router)) == []
    (problem,) = unhonoured(loads(router.replace("imix", "{64 B: 3, 9100 B: 1}")))
    assert (problem.path, problem.line) == ("traffic.offered.source.mix", 8)
    assert "frames of 64 to 9018 B can be sent (got 9100 B)" in problem.message
    with pytest.raises(UnsupportedError, match="the least weight must be 1000 at most"):
        open_testbed(loads(router.replace("imix", "{64 B: 1001, 128 B: 1002}")))


def test_a_program_is_told_the_sizes_and_their_weights(tmp_path):
    (tmp_path / "t.py").write_text(
        "import json, sys\n"
        "trial = json.load(sys.stdin)\n"
        "frames = trial['intended_frames']\n"
        "facts = {'sizes': sys.argv[1], 'same': trial['frame_sizes'], 'mean': trial['frame_size_bytes']}\n"
        "got = min(frames, round(1e6 * trial['duration_s']))\n"
        "answer = {'sent_frames': frames, 'received_frames': got, 'facts': facts}\n"
        "print(json.dumps(answer | {'effective_duration_s': trial['duration_s']}))\n"
    )
    told = "64:28,570:16,1518:4"
    for mix, sizes, mean in (("mix: imix", told, 354), ("frame_size: 128 B", "128:1", 128)):
        text = TEXT.replace(DEVICE, "kind: command, run: [python3, t.py, '{frame_sizes}']")
        scenario = loads(text.replace("mix: imix", mix), file=str(tmp_path / "s.yaml"))
        trial = open_testbed(scenario).trial(build(scenario).ask())
        assert trial.facts == {"sizes": sizes, "same": sizes, "mean": mean}
