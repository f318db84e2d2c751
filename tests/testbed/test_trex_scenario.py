"""Scenario files with `testbed: {kind: trex}`."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest

from weirlab.errors import ScenarioError, UnsupportedError
from weirlab.scenario import loads
from weirlab.searches.build import build
from weirlab.searches.points import point_searches
from weirlab.searches.runner import run_search
from weirlab.testbed import open_testbed

from .fake_trex import FakeTrex
from .fake_trex_model import Device

FILE = """\
weirlab: 1
name: trex
testbed: {kind: trex, server: "127.0.0.1:%d", stable: 20 ms, ports: [0, 1]}
traffic:
  offered:
    from: sender
    to: receiver
    source: {kind: constant, frame_size: 64 B}
search:
  vary: traffic.offered.source.rate
  between: [100 kframe/s, 4 Mframe/s]
  goals: {NDR: {loss: 0 %%, width: 20 %%}}
  trial: {duration: 50 ms, settle: 10 ms}
  algorithm: {kind: binary}
"""
BOTH_WAYS = FILE.replace(
    "    from: sender\n    to: receiver\n", "    from: '@hosts'\n    pattern: {kind: permutation}\n"
)


@pytest.mark.parametrize(("text", "capacity_fps"), [(FILE, 1e6), (BOTH_WAYS, 2e6)])
def test_a_file_is_all_that_a_search_needs(text: str, capacity_fps: float) -> None:
    with FakeTrex(device=Device(capacity_fps=capacity_fps)) as server:
        scenario = loads(text % server.rpc_port)
        testbed = open_testbed(scenario)
        try:
            result = run_search(build(scenario), testbed)
        finally:
            testbed.close()
        senders = {params["port_id"] for method, params in server.calls if method == "start_traffic"}
    (ndr,) = result.goals
    assert result.regular
    assert ndr.lower.load_fps <= capacity_fps <= ndr.upper.load_fps
    assert senders == ({0, 1} if text is BOTH_WAYS else {0})


def test_a_mix_of_frame_sizes_is_searched_like_one_size() -> None:
    text = FILE.replace("frame_size: 64 B", "mix: imix").replace("4 Mframe/s", "3 Mframe/s")
    with FakeTrex(device=Device(capacity_fps=1e6)) as server:
        scenario = loads(text % server.rpc_port)
        testbed = open_testbed(scenario)
        try:
            result = run_search(build(scenario), testbed)
        finally:
            testbed.close()
        sizes = {_sent_bytes(stream) for start in server.starts for stream in start[0].values()}
    (ndr,) = result.goals
    assert ndr.lower.load_fps <= 1e6 <= ndr.upper.load_fps
    assert {trial.spec.frame_size_bytes for trial in result.trials} == {354}
    assert sizes == {64, 570, 1518}


def test_the_example_of_the_documentation_is_a_search_of_each_of_its_sizes() -> None:
    page = (Path(__file__).parents[2] / "docs" / "testbed-trex.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    searches = point_searches(loads(example))
    assert [each.scenario.offered().frame_size_bytes for each in searches] == [64, 512, 1518, 354]
    assert all(each.scenario.offered().flows == 2 for each in searches)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("[0, 1]", "[0]", "testbed.ports: ports are different numbers in pairs"),
        ("[0, 1]", "[1, 1]", "testbed.ports: ports are different numbers in pairs"),
        ("127.0.0.1:%d", "127.0.0.1:x", "testbed.server: write a name or an address"),
        ("127.0.0.1:%d", "http://trex", "testbed.server: write a name or an address"),
        ("ports: [0, 1]", "addresses: [16.0.0.1, 16.0.0]", "write an IPv4 address"),
        ("stable: 20 ms", "stable: 20", "testbed.stable: write a duration with its unit"),
        ("stable: 20 ms", "stabel: 20 ms", "did you mean 'stable'"),
        ("traffic:", "network: {kind: star, hosts: 2, link: {rate: 1 Gbit/s}}\ntraffic:", "own network"),
    ],
)
def test_mistakes_are_told_with_their_place(before: str, after: str, says: str) -> None:
    assert before in FILE
    text = FILE.replace(before, after)
    with pytest.raises(ScenarioError) as caught:
        loads(text % 4501 if "%d" in text else text.replace("%%", "%"), file="f.yaml")
    assert any(says in str(problem) for problem in caught.value.problems)
    assert all(problem.line > 0 for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (
            "kind: constant",
            "kind: poisson",
            "traffic.offered.source.kind: a TRex server is offered a constant load",
        ),
        (
            "from: sender\n    to: receiver",
            "from: receiver\n    to: sender",
            "from 'sender' to 'receiver', or both",
        ),
        (
            "frame_size: 64 B}\n",
            "frame_size: 64 B}\n    stop: 1 s\n",
            "each trial sends for its whole duration",
        ),
    ],
)
def test_what_a_server_cannot_honour_is_refused_before_it_is_called(
    before: str, after: str, says: str
) -> None:
    with FakeTrex() as server:
        assert before in FILE
        with pytest.raises(UnsupportedError, match=says):
            open_testbed(loads(FILE.replace(before, after) % server.rpc_port))
        assert not server.calls


def _sent_bytes(stream: Any) -> int:
    return len(base64.b64decode(stream["packet"]["binary"])) + 4
