"""What is said of ports that PAUSE holds in a cycle at the end of a run."""

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
