"""What is said of ports that PAUSE holds in a cycle at the end of a run."""

import polars as pl
import pytest

import weirlab
from weirlab.report.control import held_in_a_cycle
from weirlab.scenario import loads

BOTH_WAYS = """\
weirlab: 1
name: both-ways
network: {kind: dumbbell, pairs: 3, access: {rate: 10 Gbit/s}, bottleneck: {rate: 10 Gbit/s}}
traffic:
  forth:
    {from: left-*, to: right-*, pattern: {kind: pairs},
     source: {kind: poisson, load: 45 %, frame_size: 1500 B}}
  back:
    {from: right-*, to: left-*, pattern: {kind: pairs},
     source: {kind: poisson, load: 45 %, frame_size: 1500 B}}
control: {pause: {all: {at: "@switches", xoff: 60 kB, xon: 50 kB}}}
run: {duration: 2 ms}
"""


def test_two_switches_that_hold_each_other_are_told_of_with_the_time() -> None:
    run = weirlab.run(loads(BOTH_WAYS))
    (sentence,) = held_in_a_cycle(run.records)
    names = {port for port in sentence.split() if "->" in port}
    assert {name.rstrip(",") for name in names} == {"left->right", "right->left"}
    delivered, sent = (
        run.records["flows"].get_column(f"{what}_frames").sum() for what in ("delivered", "sent")
    )
    assert delivered < sent / 2


TREE = """\
weirlab: 1
name: tree
network:
  kind: graph
  nodes:
    {s-0: {kind: switch}, h-0: {kind: host}, s-1: {kind: switch}, h-1: {kind: host},
     s-2: {kind: switch}, h-2: {kind: host}, s-3: {kind: switch}, h-3: {kind: host}}
  links:
    up-0: {join: [h-0, s-0], rate: 10 Gbit/s, framing: none}
    up-1: {join: [h-1, s-1], rate: 10 Gbit/s, framing: none}
    up-2: {join: [h-2, s-2], rate: 10 Gbit/s, framing: none}
    up-3: {join: [h-3, s-3], rate: 10 Gbit/s, framing: none}
    l-1-0: {join: [s-1, s-0], rate: 10 Gbit/s, framing: none}
    l-2-1: {join: [s-2, s-1], rate: 10 Gbit/s, framing: none}
    l-3-0: {join: [s-3, s-0], rate: 10 Gbit/s, framing: none}
traffic:
  t-0-2: {from: h-0, to: h-2, source: {kind: poisson, load: 60 %, frame_size: 1500 B}}
  t-3-1: {from: h-3, to: h-1, source: {kind: poisson, load: 60 %, frame_size: 1500 B}}
control: {pause: {all: {at: "@switches", xoff: 20 kB, xon: 10 kB}}}
run: {duration: 5 ms, seed: 1}
"""


@pytest.mark.parametrize("milliseconds", [3, 5, 6, 7])
def test_ports_that_are_held_now_and_then_or_with_nothing_to_send_are_no_cycle(milliseconds: int) -> None:
    # Two flows one way over a tree: its switches hold all neighbours, and go on delivering.
    run = weirlab.run(loads(TREE, {"run.duration": f"{milliseconds} ms"}))
    ports = run.records["ports"].filter(pl.col("paused_count") > 0)
    assert ports.height >= 5
    assert held_in_a_cycle(run.records) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"traffic.back.source.load": "5 %"},
        {"control.pause.all.quanta": 200},
        {"control": None},
    ],
    ids=["one way", "quanta that run out", "no PAUSE"],
)
def test_nothing_is_said_where_queues_drain(changes) -> None:
    assert held_in_a_cycle(weirlab.run(loads(BOTH_WAYS, changes)).records) == []
