"""Propagation delays that change."""

import numpy as np
import pytest

from weirlab import _core
from weirlab.errors import InputError, ScenarioError
from weirlab.scenario import load, loads
from weirlab.scenario.network.path import line_spec, path_plan

FILE = """weirlab: 1
name: wander
testbed:
  kind: netns
  hops:
    sky:
      forward: {rate: 10 Mbit/s, delays: DELAYS}
      backward: {rate: 10 Mbit/s, delay: 5 ms}
"""
STEPS = "{steps: [{at: 0 s, delay: 20 ms}, {at: 1 s, delay: 40 ms}], repeat: 2 s}"


def plan_of(delays, **changes):
    return path_plan(loads(FILE.replace("DELAYS", delays), changes))


def delays_at(line, times_ms):
    """When the model lets lone packets of no size worth mention go, after they came [ms]."""
    sent = np.array([at * 10**9 for at in times_ms], dtype=np.uint64)
    zeros = np.zeros(len(sent), dtype=np.uint64)
    told = _core.replay_line(
        line_spec(line).json(),
        seed=1,
        name="x",
        t_ps=sent,
        size_bytes=zeros + np.uint64(1),
        flow=zeros,
        ecn=zeros,
        until_ps=10**14,
    )
    return ((told["departed_ps"] - sent[told["departed"]]) / 1e9).tolist()


def test_a_packet_has_the_delay_of_its_time_again_and_again():
    line = plan_of(STEPS).hops["sky"].forward
    assert delays_at(line, [0, 900, 1100, 1900, 2500, 3500]) == pytest.approx(
        [20, 20, 40, 40, 20, 40], abs=0.01
    )
    assert line.least_delay.s == 0.02


def test_a_trace_is_read_as_steps(tmp_path):
    (tmp_path / "sky.trace").write_text("# time and delay in ms\n0 20\n1000, 40.5  # higher\n\n1500 30\n")
    file = tmp_path / "sky.yaml"
    file.write_text(FILE.replace("DELAYS", "{trace: sky.trace}"))
    line = path_plan(load(file)).hops["sky"].forward
    assert delays_at(line, [0, 1200, 1600, 90_000]) == pytest.approx([20, 40.5, 30, 30], abs=0.01)


def test_a_file_in_full_is_read_back():
    scenario = loads(FILE.replace("DELAYS", STEPS))
    assert loads(scenario.to_yaml()) == scenario


@pytest.mark.parametrize(
    ("delays", "changes", "message"),
    [
        ("{steps: [{at: 1 s, delay: 20 ms}]}", {}, "holds from 0 s on .got 1 s."),
        (
            "{steps: [{at: 0 s, delay: 1 ms}, {at: 0 s, delay: 2 ms}]}",
            {},
            "the delay at 0 is that of the start",
        ),
        (
            STEPS.replace("repeat: 2 s", "repeat: 1 s"),
            {},
            "repeat: the period ends after the last change of delay",
        ),
        (STEPS, {"testbed.hops.sky.forward.delay": "3 ms"}, "cannot be combined with 'delay'"),
        ("{}", {}, "has neither 'steps' nor 'trace'"),
        ("{trace: x, steps: [{at: 0 s, delay: 1 ms}]}", {}, "cannot be combined with 'steps'"),
    ],
)
def test_what_makes_no_sense_is_told_with_its_place(delays, changes, message):
    with pytest.raises(ScenarioError, match=rf"testbed\.hops\.sky\.forward\.delays.*{message}"):
        plan_of(delays, **changes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has lines with a time and a delay"),
        ("5 20\n", ":1: the first delay holds from 0 ms on"),
        ("0 20\n0 30\n", ":2: times ascend"),
        ("0 20\n10\n", ":2: a time and a delay in ms were expected"),
        ("0 -3\n", ":1: a time and a delay in ms were expected"),
    ],
)
def test_a_trace_that_is_none_is_told_with_its_line(tmp_path, text, message):
    (tmp_path / "sky.trace").write_text(text)
    file = tmp_path / "sky.yaml"
    file.write_text(FILE.replace("DELAYS", "{trace: sky.trace}"))
    with pytest.raises(InputError, match=message):
        path_plan(load(file))


def test_a_device_in_the_place_of_a_trace_is_not_read(tmp_path):
    file = tmp_path / "sky.yaml"
    file.write_text(FILE.replace("DELAYS", "{trace: /dev/zero}"))
    with pytest.raises(InputError, match="not an ordinary file"):
        path_plan(load(file))
