"""Collective operations on an idle network compared with the alpha-beta model: m bytes take a + b m."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from weirlab.errors import ScenarioError
from weirlab.evaluation import measured
from weirlab.runs import run
from weirlab.scenario import Scenario, load, loads
from weirlab.scenario.traffic import chains
from weirlab.scenario.traffic.chains import ALGORITHMS, collective, share_at_best

RANKS, PAYLOAD, HEADERS, GBPS, DELAY_PS = 8, 1000, 48, 100, 1_000_000
TEXT = f"""\
weirlab: 1
name: collective
network: {{kind: star, hosts: {RANKS}, link: {{rate: {GBPS} Gbit/s, delay: 1 us, framing: none}}}}
queues: {{all: {{at: "@switches->*", kind: drop-tail, limit: 10 MB}}}}
traffic:
  job:
    from: host-*
    start: 3 us
    source: {{kind: collective, operation: all-reduce, size: 8 MB, iterations: 3, compute: 40 us}}
run: {{duration: 50 ms, seed: 1}}
measure:
  job: {{kind: job-time, of: job}}
  bandwidth: {{kind: bus-bandwidth, of: job}}
"""
SOURCE = "traffic.job.source"
CARRIERS = ("raw", "tcp")
TCP = {
    "traffic.job.transport": {
        "kind": "tcp",
        "congestion_control": {"kind": "reno"},
        "initial_window": 10000,
        "window": "64 MB",
        "min_rto": "1 s",
    }
}


def step_ps(size: int) -> int:
    """A message over the two links of a star: frames stored and forwarded."""
    fulls, rest = divmod(size, PAYLOAD)
    frames = [PAYLOAD + HEADERS] * fulls + ([rest + HEADERS] if rest else [])
    wire = [8000 * frame // GBPS for frame in frames]
    return 2 * DELAY_PS + sum(wire) + (wire[-1] if len(wire) == 1 or not rest else max(wire[-2], wire[-1]))


def values(scenario: Scenario) -> dict[str, float | None]:
    return dict(measured(run(scenario).records, scenario).select("measure", "value").iter_rows())


@pytest.mark.parametrize(
    ("operation", "algorithm", "steps"),
    [
        ("all-reduce", "ring", [1_000_000] * 14),
        (
            "all-reduce",
            "halving-doubling",
            [4_000_000, 2_000_000, 1_000_000, 1_000_000, 2_000_000, 4_000_000],
        ),
        ("reduce-scatter", "ring", [1_000_000] * 7),
        ("reduce-scatter", "halving-doubling", [4_000_000, 2_000_000, 1_000_000]),
        ("all-gather", "ring", [1_000_000] * 7),
        ("all-gather", "halving-doubling", [1_000_000, 2_000_000, 4_000_000]),
        ("all-to-all", "rounds", [1_000_000] * 7),
        ("broadcast", "binomial", [8_000_000] * 3),
        ("reduce", "binomial", [8_000_000] * 3),
        ("gather", "binomial", [1_000_000, 2_000_000, 4_000_000]),
        ("scatter", "binomial", [4_000_000, 2_000_000, 1_000_000]),
        ("gather", "direct", [7_000_000]),
        ("scatter", "direct", [7_000_000]),
    ],
)
def test_an_operation_takes_the_sum_of_its_steps_to_the_picosecond(operation, algorithm, steps):
    # To a root one iteration overlaps with the next: who has sent its part goes on.
    times = 1 if operation in ("reduce", "gather") else 3
    changes = {"operation": operation, "algorithm": algorithm, "iterations": times}
    found = values(loads(TEXT).assign({f"{SOURCE}.{key}": value for key, value in changes.items()}))
    once = sum(map(step_ps, steps))
    assert found["job"] == times * (40_000_000 + once)
    carried = float(8_000_000 * share_at_best(operation, RANKS))
    assert found["bandwidth"] == pytest.approx(8e12 * carried / once, rel=1e-12)


@pytest.mark.parametrize("operation", ["broadcast", "reduce"])
def test_a_ring_passes_pieces_on_one_behind_the_other(operation):
    changes = {"operation": operation, "algorithm": "ring", "pieces": 16, "iterations": 1}
    found = values(loads(TEXT).assign({f"{SOURCE}.{key}": value for key, value in changes.items()}))
    assert found["job"] == 40_000_000 + (7 - 1 + 16) * step_ps(500_000)


def test_a_tree_of_any_number_of_ranks_takes_the_steps_of_the_next_power_of_two():
    once = {f"{SOURCE}.iterations": 1, f"{SOURCE}.size": "100 kB"}
    for ranks, steps in ((2, 1), (3, 2), (5, 3), (6, 3), (7, 3)):
        for operation in ("broadcast", "reduce"):
            changes = {**once, f"{SOURCE}.operation": operation, "traffic.job.from": f"host-[0-{ranks - 1}]"}
            found = values(loads(TEXT).assign(changes))
            assert found["job"] == 40_000_000 + steps * step_ps(100_000), (ranks, operation)


def test_over_tcp_only_acknowledgements_come_on_top():
    found = values(loads(TEXT).assign({**TCP, f"{SOURCE}.compute": "0 s"}))
    # 1460 B of data in a frame, 58 B of headers; an acknowledgement for two frames on the way back.
    full = 8000 * 1518 // GBPS
    step = 2 * DELAY_PS + (1_000_000 / 1448 + 1) * full
    assert 1.0 < found["job"] / (3 * 14 * step) < 1.06


def test_over_rdma_a_lossy_network_ends_the_job_all_the_same():
    rdma = {"kind": "rdma", "congestion_control": {"kind": "hpcc"}, "timeout": "100 us"}
    lossy = {"network.link.loss": {"kind": "random", "ratio": "0.01 %"}, "traffic.job.transport": rdma}
    alone, hurt = (loads(TEXT).assign({"traffic.job.transport": rdma, **more}) for more in ({}, lossy))
    first, second = values(alone)["job"], values(hurt)["job"]
    assert first is not None
    assert second is not None
    assert first < second


def test_the_tree_waits_less_often_than_the_ring_and_is_pipelined_by_pieces():
    def job(size: str, algorithm: str, pieces: int) -> float:
        changes = {"size": size, "algorithm": algorithm, "pieces": pieces, "compute": "0 s", "iterations": 1}
        found = values(loads(TEXT).assign({f"{SOURCE}.{key}": value for key, value in changes.items()}))
        assert found["job"] is not None
        return found["job"]

    # Of small arrays the number of steps counts, log n against 2 (n - 1).
    assert job("8 kB", "tree", 1) < 0.75 * job("8 kB", "ring", 1)
    assert job("8 MB", "tree", 64) < 0.7 * job("8 MB", "tree", 1)
    # Leaf in one tree, up once and down twice in the other: half of the array up to four times.
    sent = [0] * RANKS
    for sender, _, data, *_ in collective("all-reduce", "tree", RANKS, 8_000_000, pieces=64).tasks:
        sent[sender] += data
    assert max(sent) <= 2 * 8_000_000
    assert job("8 MB", "tree", 64) > max(sent) * 80 * 1.048


@pytest.mark.parametrize("operation", list(ALGORITHMS))
@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 16])
def test_every_algorithm_moves_all_data_and_none_sends_less_than_the_best(operation, ranks):
    for algorithm in ALGORITHMS[operation]:
        if algorithm == "halving-doubling" and ranks & (ranks - 1):
            continue
        size = 840 * 16
        chain = collective(operation, algorithm, ranks, size)
        sent, received = [0] * ranks, [0] * ranks
        for sender, receiver, data, _, after in chain.tasks:
            sent[sender] += data if sender != receiver else 0
            received[receiver] += data
            ends = {sender, receiver} if operation in ROOTED else {sender}
            assert all(ends & {*chain.tasks[before][:2]} for before in after), "it waits for what it has"
        at_best = float(size * share_at_best(operation, ranks))
        most = max(*sent, *received)
        assert most >= at_best - 1
        if algorithm == "tree" or (operation, algorithm) == ("broadcast", "binomial"):
            assert most <= size * ranks.bit_length()
        elif (operation, algorithm) != ("reduce", "binomial"):
            assert most <= at_best + ranks
        known = known_by(chain.tasks, ranks)
        assert all(known[rank] >= has for rank, has in needed(operation, ranks)), algorithm


ROOTED = ("broadcast", "reduce", "gather", "scatter")


def needed(operation: str, ranks: int):
    """Whose data each rank needs that gets a result."""
    everyone = set(range(ranks))
    if operation in ("broadcast", "scatter"):
        return [(rank, {0}) for rank in everyone]
    return [(rank, everyone) for rank in ([0] if operation in ROOTED else everyone)]


def known_by(tasks, ranks: int) -> list[set[int]]:
    """On whose data that of each rank depends: on what it receives, with all that its sender had by then."""
    knows: list[set[int]] = []
    earlier: list[set[int]] = []
    have = [{rank} for rank in range(ranks)]
    for sender, receiver, _, _, after in tasks:
        earlier.append({*after}.union(*(earlier[before] for before in after)))
        knows.append({sender}.union(*(knows[task] for task in earlier[-1] if tasks[task][1] == sender)))
        have[receiver] |= knows[-1]
    return have


@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 16])
@pytest.mark.parametrize("operation", ["gather", "scatter"])
def test_each_part_passes_each_rank_of_its_way_once(operation, ranks):
    parts = [100 * (rank + 1) - 100 * rank for rank in range(ranks)]
    tasks = [task for task in collective(operation, "binomial", ranks, sum(parts)).tasks if task[2]]
    outer = 0 if operation == "gather" else 1
    for rank in range(1, ranks):
        (own,) = (task for task in tasks if task[outer] == rank)
        below = [task for task in tasks if task[1 - outer] == rank]
        assert own[2] == parts[rank] + sum(task[2] for task in below), "its own, and theirs"
    assert sum(task[2] for task in tasks if task[1 - outer] == 0) == sum(parts[1:])


def test_a_neighbour_on_the_same_links_makes_the_job_longer_and_a_lost_frame_without_connection_ends_it():
    alone = loads(TEXT)
    stream = {
        "from": "host-0",
        "to": "host-1",
        "source": {"kind": "constant", "load": "50 %", "frame_size": "1048 B"},
    }
    assert values(alone.assign({"traffic.other": stream}))["job"] > 1.2 * values(alone)["job"]
    lossy = values(alone.assign({"network.link.loss": {"kind": "random", "ratio": "0.1 %"}}))
    assert lossy["job"] is None
    assert lossy["bandwidth"] is None
    carried = alone.assign({**TCP, "network.link.loss": {"kind": "random", "ratio": "0.01 %"}})
    assert values(carried.assign({"traffic.job.transport.min_rto": "1 ms"}))["job"] is not None


def test_rounds_follow_each_other_with_the_computation_between_them():
    rounds = run(loads(TEXT)).records["rounds"]
    starts, ends = (rounds.get_column(name).cast(pl.Int64).to_list() for name in ("start_ps", "over_ps"))
    assert starts[0] == 43_000_000
    assert [start - end for start, end in zip(starts[1:], ends[:-1], strict=True)] == [40_000_000] * 2


@pytest.mark.parametrize(
    ("changes", "place", "words"),
    [
        ({"traffic.job.from": "host-0"}, "from", "2 ranks or more: name more hosts (got 1)"),
        ({f"{SOURCE}.algorithm": "rounds"}, "algorithm", "write 'ring' or 'halving-doubling' or 'tree'"),
        ({f"{SOURCE}.algorithm": "halving-doubling", "traffic.job.from": "host-[0-5]"}, "algorithm", "2, 4"),
        ({f"{SOURCE}.size": "7 B"}, "size", "up to 8 parts"),
        ({f"{SOURCE}.operation": "reduce", f"{SOURCE}.algorithm": "ring", f"{SOURCE}.pieces": 9,
          f"{SOURCE}.size": "8 B"}, "size", "9 parts"),
        ({f"{SOURCE}.pieces": 2}, "source.pieces", "'ring' sends no pieces: leave this out (got 2)"),
        ({f"{SOURCE}.iterations": 10**9}, "source.iterations", "more than 4,194,304 messages and comp"),
        ({f"{SOURCE}.operation": "gather", f"{SOURCE}.algorithm": "ring"},
         "algorithm", "write 'binomial' or 'direct'"),
        ({"traffic.job.to": "host-1"}, "to", "leave this out"),
        ({"traffic.job.pattern": {"kind": "uniform"}}, "pattern", "leave this out"),
        ({"traffic.job.stop": "1 ms"}, "stop", "leave this out"),
        ({"measure.job.of": "other", "traffic.other": {"from": "host-0", "to": "host-1", "source": {
            "kind": "messages", "sizes": {"kind": "fixed", "size": "1 kB"}, "every": "1 ms"}}},
         "of", "needs the source 'collective' or 'goal' or 'chakra'; that of 'other' is 'messages'"),
    ],
)  # fmt: skip
def test_a_fault_is_reported_at_its_field(changes, place, words):
    with pytest.raises(Exception, match="job") as error:
        loads(TEXT).assign(changes)
    assert words in str(error.value)
    assert place in str(error.value)


@pytest.mark.parametrize("changes", [{"algorithm": "tree", "pieces": 1000}, {"operation": "all-to-all"}])
def test_a_single_operation_has_a_bound_too(monkeypatch, changes):
    monkeypatch.setattr(chains, "MOST_TASKS", 50)
    with pytest.raises(ScenarioError, match=r"job\.source: more than 50 messages and computations: ask"):
        loads(TEXT).assign({f"{SOURCE}.{key}": value for key, value in {"iterations": 1, **changes}.items()})


PROGRAM = """\
num_ranks 3   // a pipeline
rank 0 {
a: calc 1000
b: send 100000b to 1 tag 5
b requires a
}
rank 1 {
a: recv 100000b from 0 tag 5
b: calc 2000
c: send 5000b to 2
d: calc 500
b requires a
c requires b
d irequires c
}
rank 2 {
r: recv 5000b from 1
s: calc 700
s requires r
}
"""


def program(directory: Path, text: str = PROGRAM) -> Scenario:
    (directory / "p.goal").write_text(text)
    file = directory / "p.yaml"
    file.write_text(
        TEXT.replace("kind: collective, operation: all-reduce, size: 8 MB, iterations: 3, compute: 40 us",
                     "kind: goal, file: p.goal").replace("  bandwidth: {kind: bus-bandwidth, of: job}\n", "")
    )  # fmt: skip
    return loads(file.read_text(), file=str(file))


def test_a_program_takes_its_computations_and_messages(tmp_path):
    messages = step_ps(100_000) + step_ps(5000)
    assert values(program(tmp_path))["job"] == messages + 1_000_000 + 2_000_000 + 700_000


def test_a_program_that_is_not_there_is_named_once(tmp_path):
    program(tmp_path)
    (tmp_path / "p.goal").unlink()
    with pytest.raises(Exception, match=r"p\.goal: there is no such file") as error:
        load(tmp_path / "p.yaml")
    assert str(error.value).count("p.goal") == 1


def test_a_device_in_the_place_of_a_program_is_not_read(tmp_path):
    program(tmp_path)
    with pytest.raises(Exception, match="/dev/zero: not an ordinary file"):
        load(tmp_path / "p.yaml", {"traffic.job.source.file": "/dev/zero"})


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("num_ranks 3   // a pipeline\n", "num_ranks 3\nnum_ranks 2\n", 2, "is there already: 3"),
        ("num_ranks 3 ", f"num_ranks {'3' * 5000} ", 1, "more than 15 digits (got '33333"),
        ("num_ranks 3", "num_ranks 9", 1, "9 ranks, and 'from' names 8 hosts"),
        ("b: send 100000b to 1 tag 5", "b: send 100000b to 1 tag 6", 8, "rank 0 never sends it (tag 5)"),
        ("b: send 100000b to 1 tag 5", "b: send 100000b from 1", 4, "write 'send Nb to R'"),
        ("b: send 100000b to 1 tag 5", "b: put 100000b to 1", 4, "expected a task"),
        ("b requires a\nc", "b requires x\nc", 12, "has no task 'x'"),
        ("b requires a\nc", "a requires c\nb requires a\nc", 8, "waits for itself"),
        ("r: recv 5000b", "r: recv 4999b", 17, "receives 4999 B; rank 1 sends 5000 B (tag 0) in line 10"),
        ("d: calc 500", "c: calc 500", 11, "has a task 'c' already"),
        ("rank 2 {", "rank 1 {", 16, "ranks are 0 to 2, each once (got 1)"),
        ("s requires r\n}", "s requires r", 19, "'}' is missing"),
    ],
)
def test_a_fault_of_a_program_is_reported_with_its_line(tmp_path, old, new, line, words):
    text = PROGRAM.replace(old, new, 1)
    assert text != PROGRAM
    with pytest.raises(Exception, match=r"p\.goal") as error:
        program(tmp_path, text)
    assert f"p.goal:{line}:1" in str(error.value)
    assert words in str(error.value)
