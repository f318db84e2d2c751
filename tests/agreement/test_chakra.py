"""Chakra traces on an idle star compared with the alpha-beta sum; protobuf itself writes their files."""

from __future__ import annotations

import gzip
import os

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tests.agreement.test_collectives import TCP, TEXT, step_ps, values

from weirlab.errors import ScenarioError
from weirlab.scenario import loads
from weirlab.scenario.traffic import chains

_KINDS = {"string": 9, "uint64": 4, "int64": 3, "int32": 5, "sint64": 18, "fixed32": 7, "double": 1}
_SCHEMA = {
    "Metadata": {"version": (1, "string")},
    "Attribute": {
        "name": (1, "string"),
        "double_val": (3, "double"),
        "int32_val": (7, "int32"),
        "int64_val": (9, "int64"),
        "sint64_val": (17, "sint64"),
        "fixed32_val": (19, "fixed32"),
        "string_val": (29, "string"),
    },
    "Node": {
        "id": (1, "uint64"),
        "name": (2, "string"),
        "type": (3, "int32"),
        "ctrl_deps": (4, "uint64"),
        "data_deps": (5, "uint64"),
        "duration_micros": (7, "uint64"),
        "attr": (10, "Attribute"),
    },
}
"""What the traces here need of et_def.proto: names, numbers, types."""
ALL_REDUCE, REDUCE, ALL_GATHER, GATHER, SCATTER, BROADCAST = 0, 1, 2, 3, 4, 5
ALL_TO_ALL, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, BARRIER = 6, 7, 8, 9


def _classes():
    file = descriptor_pb2.FileDescriptorProto(name="trace.proto", package="trace", syntax="proto3")
    for name, fields in _SCHEMA.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            many = field in ("ctrl_deps", "data_deps", "attr")
            added = message.field.add(name=field, number=number, label=3 if many else 1)
            if kind in _KINDS:
                added.type = _KINDS[kind]
            else:
                added.type, added.type_name = 11, f".trace.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"trace.{name}")) for name in _SCHEMA
    }


CLASSES = _classes()


def node(number, kind, *, after=(), us=0, name="", control=(), **attributes):
    """A node of a trace; attributes are int64 unless they say otherwise."""
    made = CLASSES["Node"](
        id=number, type=kind, name=name, data_deps=after, ctrl_deps=control, duration_micros=us
    )
    for key, value in attributes.items():
        key, _, kind = key.partition("__")
        kind = kind or ("string_val" if isinstance(value, str) else "int64_val")
        made.attr.add(name=key, **{kind: value})
    return made


def compute(number, us, **more):
    return node(number, 4, us=us, **more)


def send(number, to, size, **more):
    return node(number, 5, comm_dst=to, comm_size=size, **more)


def receive(number, of, size, **more):
    return node(number, 6, comm_src=of, comm_size=size, **more)


def collective(number, what, size, **more):
    return node(number, 7, comm_type=what, comm_size=size, **more)


def framed(message) -> bytes:
    data = message.SerializeToString()
    size, front = len(data), b""
    while size > 127:
        front, size = front + bytes([128 | size & 127]), size >> 7
    return front + bytes([size]) + data


def written(nodes) -> bytes:
    return b"".join(map(framed, [CLASSES["Metadata"](version="0.0.4"), *nodes]))


def job(directory, ranks, changes=None):
    """The time that a job takes whose ranks have these nodes [ps]."""
    for rank, nodes in enumerate(ranks):
        (directory / f"job.{rank}.et").write_bytes(nodes if isinstance(nodes, bytes) else written(nodes))
    text = TEXT.replace(
        "kind: collective, operation: all-reduce, size: 8 MB, iterations: 3, compute: 40 us",
        "kind: chakra, file: job.*.et",
    ).replace("  bandwidth: {kind: bus-bandwidth, of: job}\n", "")
    scenario = loads(text, file=str(directory / "job.yaml"))
    return values(scenario.assign(changes or {}))["job"]


def test_computations_and_messages_take_their_sum(tmp_path):
    first = [compute(7, 5), send(3, 1, 100_000, after=[7], comm_tag=4), node(2, 1, name="metadata")]
    second = [
        send(9, 2, 5000, control=[8], comm_tag__fixed32_val=0),
        compute(8, 30, after=[1]),
        receive(1, 0, 100_000, comm_tag__sint64_val=4),
    ]
    third = [receive(0, 1, 5000), node(1, 2, us=2, after=[0])]
    expected = 5_000_000 + step_ps(100_000) + 30_000_000 + step_ps(5000) + 2_000_000
    assert job(tmp_path, [first, second, third]) == expected
    packed = [gzip.compress(written(nodes)) for nodes in (first, second, third)]
    assert job(tmp_path, packed) == expected


@pytest.mark.parametrize(
    ("what", "size", "steps"),
    [
        (ALL_REDUCE, 800_000, [100_000] * 14),
        (ALL_GATHER, 100_000, [100_000] * 7),
        (REDUCE_SCATTER, 800_000, [100_000] * 7),
        (ALL_TO_ALL, 800_000, [100_000] * 7),
        (ALL_REDUCE, 4, [1] * 14),
        (REDUCE_SCATTER_BLOCK, 800_000, [100_000] * 7),
        (BROADCAST, 800_000, [800_000] * 3),
        (REDUCE, 800_000, [800_000] * 3),
        (GATHER, 100_000, [100_000, 200_000, 400_000]),
        (SCATTER, 100_000, [400_000, 200_000, 100_000]),
    ],
)
def test_a_collective_operation_takes_its_steps_between_computations(tmp_path, what, size, steps):
    nodes = [compute(0, 10), collective(1, what, size, after=[0]), compute(2, 20, after=[1])]
    assert job(tmp_path, [nodes] * 8) == 30_000_000 + sum(map(step_ps, steps))


@pytest.mark.parametrize(("what", "first"), [(BROADCAST, 0), (REDUCE, 1)])
def test_who_sends_to_a_root_or_from_it_goes_on_when_its_message_is_over(tmp_path, what, first):
    sends, receives = (
        [collective(0, what, 800_000), compute(1, 500, after=[0])],
        [collective(0, what, 800_000)],
    )
    ranks = [sends, receives] if first == 0 else [receives, sends]
    assert job(tmp_path, ranks) == step_ps(800_000) + 500_000_000


def test_a_field_says_how_an_operation_is_done(tmp_path):
    ranks = [[collective(1, ALL_REDUCE, 800_000)]] * 8
    parts = [400_000, 200_000, 100_000]
    halving = {"traffic.job.source.algorithms": {"all-reduce": "halving-doubling"}}
    assert job(tmp_path, ranks, halving) == 2 * sum(map(step_ps, parts))
    ranks = [[collective(1, BROADCAST, 800_000)]] * 8
    ring = {"traffic.job.source.algorithms": {"broadcast": "ring", "pieces": 8}}
    assert job(tmp_path, ranks, ring) == (6 + 8) * step_ps(100_000)


def test_groups_operate_one_beside_the_other_and_a_barrier_waits_for_the_slowest(tmp_path):
    ranks = [
        [
            compute(0, 10 * rank),
            collective(1, ALL_REDUCE, 200_000, pg_name=f"pair {rank // 2}", after=[0]),
            collective(2, BARRIER, 0, after=[1]),
            compute(3, 1, after=[2]),
        ]
        for rank in range(4)
    ]
    # The later pair starts at 30 us; a barrier of four goes up and down two levels at least.
    least = 30_000_000 + 2 * step_ps(100_000) + 4 * step_ps(1) + 1_000_000
    assert least <= job(tmp_path, ranks) <= least + 2 * step_ps(1)


def test_a_trace_runs_over_tcp(tmp_path):
    ranks = [[collective(1, ALL_REDUCE, 800_000)]] * 8
    assert 1 < job(tmp_path, ranks, TCP) / (14 * step_ps(100_000)) < 1.06


PAIR = [[send(1, 1, 500, name="out")], [receive(1, 0, 500)]]


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ([[compute(1, 1, after=[2]), compute(2, 1, after=[1])]], ["job.0.et: node 1: waits for itself"]),
        ([[compute(1, 1, after=[5])]], ["job.0.et: node 1: waits for node 5, which is not in the file"]),
        ([[compute(1, 1), compute(1, 2, name="b")]], ["job.0.et: node 1: 'b' is there twice"]),
        ([[node(4, 11, name="x")]], ["job.0.et: node 4: 'x' is of the unknown type 11"]),
        ([[node(4, 0)]], ["node 4: is of the unknown type 0"]),
        ([[node(4, 4, num_ops=9)]], ["has num_ops and no duration_micros"]),
        ([[send(1, 1, 500, name="out")], []], ["job.0.et: node 1: rank 1 never receives it (tag 0)"]),
        ([[], [receive(1, 0, 500)]], ["job.1.et: node 1: rank 0 never sends it (tag 0)"]),
        ([PAIR[0], [receive(3, 0, 400)]],
         ["job.1.et: node 3: receives 400 B; rank 0 sends 500 B (tag 0) in node 1 of job.0.et"]),
        ([[send(1, 4, 500, name="out")], []], ["job.0.et: node 1: 'out' needs comm_dst, 0 to 1 (got 4)"]),
        ([[node(1, 5, comm_size=5)]], ["node 1: needs comm_dst, 0 to 0 (it is not there)"]),
        ([[send(1, 0, -5)]], ["needs comm_size, 0 or more (got -5)"]),
        ([[node(1, 7, comm_type=0)]], ["needs comm_size, 0 or more (it is not there)"]),
        ([[node(1, 7, comm_type=0, comm_size__double_val=8e6)]] * 2,
         ["needs comm_size, 0 or more (it is no whole number)"]),
        ([[collective(1, ALL_REDUCE, 80)]] * 2 + [b""],
         ["job.2.et: is no Chakra trace: byte 0: the file is empty"]),
        ([framed(compute(1, 5))], ["byte 0: metadata comes first, and there is a node"]),
        ([[compute(1, 2**45)]], ["job.0.et: node 1: takes 35184372088832 us"]),
        ([[compute(1, 5), send(2, 0, 9), receive(3, 0, 9)]], ["job.*.et: no rank sends anything to another"]),
        ([[collective(1, ALL_REDUCE, 80)], []], ["is a collective operation of one rank: name its group"]),
        ([[collective(1, ALL_REDUCE, 80)], [collective(2, ALL_REDUCE, 90)]],
         ["job.1.et: node 2: needs comm_type 0 and comm_size 80, as node 1 of job.0.et (got 0 and 90)"]),
        ([[collective(1, ALL_REDUCE, 80, pg_name="a"), collective(2, ALL_REDUCE, 80, pg_name="a")],
          [collective(1, ALL_REDUCE, 80, pg_name="a")]],
         ["job.0.et: node 2: is an operation of the group 'a' that rank 1 lacks"]),
        ([[collective(1, 10, 80)]] * 2, ["has comm_type 10; known are all-reduce, reduce, all-gather"]),
        ([[compute(1, 1)]] * 9, ["files of 9 ranks, and 'from' names 8 hosts"]),
        ([written(PAIR[0])[:-1], []],
         ["job.0.et: is no Chakra trace: byte 8: a message is longer than the file"]),
        ([b"\x02\x0a\x00\x02\x0a\x05"], ["byte 3: a field is longer than its message"]),
        ([b"\x00\x01\x0f"], ["byte 1: a field has the unknown wire type 7"]),
        ([b"\x00\x02\x08\x80"], ["byte 1: a number has no end"]),
        ([b"\x00\x02\x50\x01"], ["a number where text or a message is"]),
        ([gzip.compress(b"\x00")[:-12] + b"\xff" * 12], ["job.0.et: cannot be unpacked"]),
        ([b"\x1f\x8b\x08\x00"], ["job.0.et: cannot be unpacked"]),
    ],
)  # fmt: skip
def test_a_fault_is_reported_with_file_and_node(tmp_path, ranks, words):
    with pytest.raises(Exception, match=r"job\.yaml|file") as error:
        job(tmp_path, ranks)
    for each in words:
        assert each in str(error.value)


def test_a_trace_has_a_bound_however_it_comes_to_its_messages(tmp_path, monkeypatch):
    monkeypatch.setattr(chains, "MOST_TASKS", 10)
    reduced = [[collective(1, ALL_REDUCE, 80), collective(2, ALL_REDUCE, 80)]] * 2
    with pytest.raises(ScenarioError, match=r"job\.0\.et: node 2: more than 10 messages and computations"):
        job(tmp_path, reduced)
    with pytest.raises(ScenarioError, match=r"job\.\*\.et: more than 10 messages and computations"):
        job(tmp_path, [[compute(number, 1) for number in range(11)], []])


def test_pieces_that_no_algorithm_sends_are_refused(tmp_path):
    ranks = [[collective(1, ALL_REDUCE, 800_000)]] * 8
    with pytest.raises(
        ScenarioError, match=r"source\.algorithms\.pieces: none of these algorithms sends pie"
    ):
        job(tmp_path, ranks, {"traffic.job.source.algorithms": {"pieces": 8}})


def test_a_pipe_in_the_place_of_a_trace_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.0.et")
    with pytest.raises(Exception, match=r"pipe\.0\.et: not an ordinary file"):
        job(tmp_path, PAIR, {"traffic.job.source.file": "pipe.*.et"})


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("job.et", "write '*' for the rank in the name of the files, as in 'job.*.et'"),
        ("none.*.et", "none.0.et: is missing: ranks count from 0, and each has a file"),
        ("gap.*.et", "gap.1.et: is missing"),
        ("nowhere/job.*.et", "nowhere: cannot be read"),
    ],
)
def test_files_that_are_not_there_are_named(tmp_path, file, words):
    for rank in (0, 2):
        (tmp_path / f"gap.{rank}.et").write_bytes(written([]))
    with pytest.raises(Exception, match="file") as error:
        job(tmp_path, PAIR, {"traffic.job.source.file": file})
    assert words in str(error.value)
