"""The classes of the spec: frozen, complete, with the places that they come from."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from weirlab import _core, spec as core
from weirlab.scenario import load
from weirlab.spec import At, Part, Runs, origin_of

PORTS = core.PortProbe(port=3, every_ps=10, origin=At("record", "q", every_ps="every"))


def source(start_ps: int = 0) -> core.Source:
    return core.Source(
        from_=1,
        to=core.DestinationUniform(uniform=(2, 3)),
        start_ps=start_ps,
        stop_ps=10,
        departures=core.DeparturesConstant(gap_ps=2.5, origin=At("traffic", "t", "source", gap_ps="rate")),
        frame_size=core.FrameSizeMix(mix=[(64, 1), (1500, 2)]),
        stream=core.StreamNamed(),
        origin=At("traffic", "t", start_ps="start", frame_size=("source", "mix")),
    )


def test_a_part_is_written_as_rust_reads_it() -> None:
    assert json.loads(source().json()) == {
        "from": 1,
        "to": {"uniform": [2, 3]},
        "start_ps": 0,
        "stop_ps": 10,
        "departures": {"kind": "constant", "gap_ps": 2.5},
        "frame_size": {"mix": [[64, 1], [1500, 2]]},
        "stream": {"kind": "named"},
    }


def test_a_field_that_has_a_default_in_rust_may_be_left_out() -> None:
    burst = core.DeparturesBursts(slot_ps=1, load=0.5, mean_frames=2.0)
    assert json.loads(burst.json())["starts_by_chance"] is False


def test_a_part_does_not_change() -> None:
    with pytest.raises(AttributeError, match="PortProbe is frozen"):
        PORTS.port = 4  # type: ignore[misc]
    with pytest.raises(AttributeError, match="PortProbe is frozen"):
        del PORTS.port
    assert PORTS.port == 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"port": 1}, "PortProbe lacks every_ps"),
        ({"port": 1, "every_ps": 1, "each_ps": 1}, "PortProbe has no each_ps"),
        ({"port": 1, "every_ps": 1, "origin": At("record", each_ps="every")}, "PortProbe has no each_ps"),
    ],
)
def test_a_part_has_exactly_the_fields_of_its_rust_type(fields: dict[str, int], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        core.PortProbe(**fields)


def test_parts_are_equal_by_their_fields_wherever_they_come_from() -> None:
    assert core.PortProbe(port=3, every_ps=10) == PORTS
    assert core.PortProbe(port=4, every_ps=10) != PORTS
    assert core.StreamNamed() != core.EngineEvent()
    assert len({core.LimitBytes(bytes=1), core.LimitBytes(bytes=1), core.LimitFrames(frames=1)}) == 2


@pytest.mark.parametrize(
    ("pointer", "place"),
    [
        ("", ("traffic", "t")),
        ("/from", ("traffic", "t")),
        ("/start_ps", ("traffic", "t", "start")),
        ("/departures", ("traffic", "t", "source")),
        ("/departures/gap_ps", ("traffic", "t", "source", "rate")),
        ("/frame_size/mix/1", ("traffic", "t", "source", "mix")),
        ("/to/uniform/7", ("traffic", "t")),
        ("/nothing/of/this", ("traffic", "t")),
    ],
)
def test_what_stands_at_a_pointer_comes_from_the_nearest_place_above_it(
    pointer: str, place: tuple[str, ...]
) -> None:
    assert origin_of(source(), pointer) == place


def test_a_field_comes_from_the_one_that_is_called_like_it_but_for_its_unit() -> None:
    stop = core.PortProbe(port=0, every_ps=10, origin=At("record", "q"))
    fields = {("record", "q"): ["every", "kind"]}
    assert origin_of(stop, "/every_ps", fields.__getitem__) == ("record", "q", "every")
    assert origin_of(stop, "/port", fields.__getitem__) == ("record", "q")
    assert origin_of(stop, "/every_ps") == ("record", "q")


def test_a_list_passes_the_places_of_its_members_on() -> None:
    record = core.Record(
        ports=[PORTS],
        traffic=[],
        flows=[],
        connections=[],
        probe_streams=[],
        delays=False,
        limiters=[],
        queue_levels=[],
        captures=[],
        origin=At("record"),
    )
    assert origin_of(record, "/ports/0/every_ps") == ("record", "q", "every")
    assert origin_of(record, "/ports/1/every_ps") == ("record",)
    assert origin_of(record, "/delays") == ("record",)


@given(st.lists(st.integers(0, 30), max_size=20), st.integers(0, 30), st.integers(-25, 25))
def test_runs_are_the_ids_that_they_were_made_of(ids: list[int], absent: int, place: int) -> None:
    runs = Runs(ids)
    assert runs == ids
    assert list(runs) == ids
    assert len(runs) == len(ids)
    assert (absent in runs) == (absent in ids)
    assert list(Runs(dict.fromkeys(ids)).without(absent)) == [
        each for each in dict.fromkeys(ids) if each != absent
    ]
    assert runs[place:] == tuple(ids[place:])
    if -len(ids) <= place < len(ids):
        assert runs[place] == ids[place]
    else:
        with pytest.raises(IndexError, match="no place"):
            runs[place]


def test_runs_are_short_in_json_and_read_back_by_the_core() -> None:
    all_but_one = Runs(range(2048)).without(7)
    assert core.DestinationUniform(uniform=all_but_one).json() == '{"uniform": [[0, 6], [8, 2047]]}'
    scenario = load("zrl-128-3")
    resolved = scenario.resolve()
    assert len(resolved.spec_json) < 100_000
    assert json.loads(_core.check(resolved.spec_json)) == json.loads(resolved.spec_json)


def test_all_classes_are_parts() -> None:
    classes = [each for each in vars(core).values() if getattr(each, "__module__", "") == core.__name__]
    assert len(classes) > 80
    assert all(issubclass(each, Part) or each is At for each in classes)
