"""Ports that PAUSE can hold in a cycle, against networks that do stand still in the simulator."""

from __future__ import annotations

import polars as pl
import pytest

from weirlab.analysis.cycles import pause_cycles
from weirlab.report.control import held_in_a_cycle
from weirlab.runs import simulate
from weirlab.scenario import Scenario, loads
from weirlab.scenario.model import Scenario as Model

SIZE = 5
PAUSE = "control: {pause: {all: {at: '@switches', xoff: 20 kB, xon: 10 kB}}}"


def network(*, is_ring: bool, control: str = PAUSE, memory: str = "", ways: str = "on") -> Scenario:
    """Switches in a ring, or in a row, with a host each that sends to the one two further on (`on`), or two
    further on and two back (`both`)."""
    nodes = [f"s-{i}: {{kind: switch{memory}}}, h-{i}: {{kind: host}}" for i in range(SIZE)]
    links = [f"up-{i}: {{join: [h-{i}, s-{i}], rate: 10 Gbit/s}}" for i in range(SIZE)]
    links += [
        f"ring-{i}: {{join: [s-{i}, s-{(i + 1) % SIZE}], rate: 10 Gbit/s}}"
        for i in range(SIZE if is_ring else SIZE - 1)
    ]
    steps = {"on": (2,), "both": (2, -2)}[ways]
    pairs = [(i, i + step) for step in steps for i in range(SIZE)]
    traffic = [
        f"  t-{i}-{to % SIZE}: {{from: h-{i}, to: h-{to % SIZE}, "
        "source: {kind: poisson, load: 95 %, frame_size: 1500 B}}"
        for i, to in pairs
        if is_ring or 0 <= to < SIZE
    ]
    text = [
        "weirlab: 1",
        "name: ring",
        f"network: {{kind: graph, nodes: {{{', '.join(nodes)}}}, links: {{{', '.join(links)}}}}}",
        control,
        "traffic:",
        *traffic,
        "run: {duration: 3 ms, seed: 1}",
        "record: {arrivals: {flow: '*', every: 100 us}}",
    ]
    return loads("\n".join(text))


def stands_still(scenario: Model) -> bool:
    """Whether nothing is delivered in the second half of a run, which what is said of it must agree with."""
    records = simulate(scenario, [1], threads=1)
    late = records["deliveries"].filter(pl.col("t_ps") >= records["runs"]["end_ps"].item() / 2)
    stands = late.get_column("frames").sum() == 0
    assert bool(held_in_a_cycle(records)) == stands
    return stands


def test_a_ring_of_switches_that_stands_still_is_told_before_it_runs() -> None:
    ring = network(is_ring=True)
    (told,) = pause_cycles(ring)
    assert told.startswith("control.pause: s-")
    assert told.count("->") == SIZE
    assert "can wait for each other in a cycle" in told
    assert stands_still(ring)


def test_a_row_of_switches_with_traffic_one_way_has_no_cycle() -> None:
    row = network(is_ring=False)
    assert pause_cycles(row) == []
    assert not stands_still(row)


def test_traffic_both_ways_through_one_link_is_a_cycle_of_two_ports() -> None:
    (told,) = pause_cycles(network(is_ring=False, ways="both"))
    assert told.count("->") == 2


def test_no_pause_and_pauses_that_end_by_themselves_hold_nobody_for_good() -> None:
    assert pause_cycles(network(is_ring=True, control="")) == []
    ends = PAUSE.replace("xon: 10 kB", "xon: 10 kB, quanta: 100")
    assert pause_cycles(network(is_ring=True, control=ends)) == []
    assert not stands_still(network(is_ring=True, control=ends))
    repeated = ends.replace("quanta: 100", "quanta: 100, refresh: 3 us")
    assert pause_cycles(network(is_ring=True, control=repeated))


TREE = """\
weirlab: 1
name: tree
network:
  kind: xgft
  children: [4, 4]
  parents: [1, 4]
  routing: d-mod-k
  link: {rate: 10 Gbit/s, framing: none}
  switch:
    memory: {kind: shared, size: 1024 frames, frame_size: 64 B, pause: {scope: SCOPE}}
traffic:
  load:
    from: "@hosts"
    to: "@hosts"
    pattern: {kind: uniform}
    source: {kind: bursts, load: 85 %, frame_size: 64 B}
run: {duration: 102.4 us}
"""


@pytest.mark.parametrize(("scope", "cycles"), [("switch", 1), ("input", 0)])
def test_memories_of_a_tree_lock_up_as_a_whole_and_not_by_inputs(scope: str, cycles: int) -> None:
    told = pause_cycles(loads(TREE.replace("SCOPE", scope)))
    assert len(told) == cycles
    assert all("write 'scope: input'" in sentence for sentence in told)
