"""Timelines for Perfetto, decoded by its own package: what they hold is what was recorded."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import polars as pl
import pytest

import weirlab
from weirlab.analysis.timeline import with_frames
from weirlab.cli.app import execute
from weirlab.errors import InputError
from weirlab.scenario import load

perfetto_trace_pb2 = pytest.importorskip(
    "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="needs the package perfetto"
)
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


class Decoded:
    """A timeline as its readers take it: events by the path of their track."""

    def __init__(self, file):
        trace = perfetto_trace_pb2.Trace()
        trace.ParseFromString(file.read_bytes())
        names, notes, self.tracks, self.units = {}, {}, {}, {}
        self.events = defaultdict(list)
        for packet in trace.packet:
            assert packet.trusted_packet_sequence_id == 1
            names |= {each.iid: each.name for each in packet.interned_data.event_names}
            notes |= {each.iid: each.name for each in packet.interned_data.debug_annotation_names}
            if packet.HasField("track_descriptor"):
                track = packet.track_descriptor
                assert track.uuid not in self.tracks
                above = (*self.tracks[track.parent_uuid],) if track.parent_uuid else ()
                self.tracks[track.uuid] = (*above, track.name)
                self.units[self.tracks[track.uuid]] = track.counter.unit_name
                continue
            event = packet.track_event
            said = {notes[each.name_iid]: each.uint_value for each in event.debug_annotations}
            name = names[event.name_iid] if event.name_iid else ""
            value = event.double_counter_value if event.type == COUNTER else None
            kept = (event.type, packet.timestamp, name, list(event.flow_ids), said, value)
            self.events[self.tracks[event.track_uuid]].append(kept)

    def below(self, *path):
        return {track[-1]: events for track, events in self.events.items() if track[:-1] == path}

    def slices(self, *track):
        """Begin, end, name, arrows and notes of each slice."""
        events = self.events[track]
        pairs = [(a, b) for a, b in zip(events[::2], events[1::2], strict=True)]
        assert all(a[0] == BEGIN and b[0] == END for a, b in pairs)
        return [(a[1], b[1], *a[2:5]) for a, b in pairs]

    def values(self, *track):
        assert all(event[0] == COUNTER for event in self.events[track])
        return [(event[1], event[5]) for event in self.events[track]]


def timeline_of(run, tmp_path, **options):
    file = tmp_path / "timeline.pftrace"
    weirlab.perfetto(run, file, **options)
    return Decoded(file)


@pytest.fixture(scope="module")
def incast():
    assign = {"run.duration": "2 ms", "record.bottleneck.every": "100 us", "measure": None}
    return weirlab.run(with_frames(load("incast", assign)))


def test_each_transmission_is_a_slice_on_the_track_of_its_port_as_long_as_it_took(incast, tmp_path):
    decoded = timeline_of(incast, tmp_path)
    ports = incast.records.named("ports").filter(pl.col("frames") > 0)
    drawn = decoded.below("incast", "frames-0", "ports")
    assert set(drawn) == set(ports["port_name"])
    for name, frames, busy_ps in ports.select("port_name", "frames", "busy_ps").iter_rows():
        slices = decoded.slices("incast", "frames-0", "ports", name)
        assert len(slices) == frames
        assert all(after[0] >= before[1] for before, after in pairwise(slices))
        lasted_ns = sum(end - begin for begin, end, *_ in slices)
        assert lasted_ns == pytest.approx(busy_ps / 1000, abs=frames)  # whole ns


def test_arrows_lead_a_frame_from_port_to_port_and_end_where_it_is_dropped(incast, tmp_path):
    decoded = timeline_of(incast, tmp_path)
    places = defaultdict(list)
    for name in decoded.below("incast", "frames-0", "ports"):
        for _, _, _, (arrow,), _ in decoded.slices("incast", "frames-0", "ports", name):
            places[arrow].append(name)
    flows = incast.records["flows"]
    assert len(places) == flows["sent_frames"].sum() - _waiting_at_hosts(incast)
    arrived = [path for path in places.values() if "switch-0->host-4" in path]
    assert all(len(path) == 2 for path in arrived)
    last = incast.records.named("ports").filter(port_name="switch-0->host-4")["frames"].item()
    assert len(arrived) == last
    dropped = len(places) - len(arrived)
    assert dropped >= flows["dropped_frames"].sum() > 0


def _waiting_at_hosts(run):
    """Frames that were handed to hosts and did not begin to leave."""
    sent = run.records.named("ports").filter(pl.col("port_name").str.starts_with("host-"))["frames"].sum()
    return run.records["flows"]["sent_frames"].sum() - sent


def test_slices_are_named_after_flows_as_tables_name_them(incast, tmp_path):
    decoded = timeline_of(incast, tmp_path)
    names = {name for _, _, name, _, _ in decoded.slices("incast", "frames-0", "ports", "switch-0->host-4")}
    assert names == set(incast.records["flow_names"]["name"])
    assert set(decoded.below("incast", "frames-0", "flows")) == names


def test_queues_are_counters_with_the_recorded_values(incast, tmp_path):
    decoded = timeline_of(incast, tmp_path)
    rows = incast.records.named("intervals").filter(port_name="switch-0->host-4").sort("t_ps")
    track = ("incast", "queues", "switch-0->host-4", "waiting at the end of intervals")
    assert decoded.units[track] == "B"
    ends = [t_ps // 1000 for t_ps in rows["t_ps"]]
    assert decoded.values(*track) == list(zip(ends, rows["queue_bytes"], strict=True))
    drops = decoded.values(*track[:3], "drops in an interval")
    assert [value for _, value in drops] == rows["drops"].to_list()
    assert [at for at, _ in drops] == [0, *ends[:-1]]


def test_pause_is_seen_as_frames_and_as_time_for_which_a_port_is_held(tmp_path):
    assign = {"run.duration": "10 ms", "record": None, "measure": None}
    scenario = load("pause-victim", assign).assign(
        {
            "record.queues": {"queue": "*->*", "every": "100 us"},
            "record.wire": {"frames": "*->*", "as": "pcapng"},
        }
    )
    run = weirlab.run(scenario)
    decoded = timeline_of(run, tmp_path)
    names = {
        name
        for port in decoded.below(scenario.name, "wire-0", "ports")
        for _, _, name, _, _ in decoded.slices(scenario.name, "wire-0", "ports", port)
    }
    assert {"PAUSE: go on"} < {name for name in names if name.startswith("PAUSE")}
    held = run.records.named("ports").filter(pl.col("paused_ps") > 0)
    assert not held.is_empty()
    for name, paused_ps in held.select("port_name", "paused_ps").iter_rows():
        shares = decoded.values(scenario.name, "queues", name, "held by PAUSE")
        assert sum(value for _, value in shares) / 100 * 100e6 == pytest.approx(paused_ps, rel=1e-9)


def test_each_class_that_a_port_asks_to_hold_has_a_track_of_the_times_at_which_it_was_held(tmp_path):
    result = weirlab.run(
        "pfc-victim", assign={"measure": {}, "record": {"all": {"frames": "*->*", "as": "pcapng"}}}
    )
    weirlab.perfetto(result, tmp_path / "pfc.perfetto-trace")
    decoded = Decoded(tmp_path / "pfc.perfetto-trace")
    held = result.records.named("holds").filter(pl.col("class") == 3)
    drawn = {
        track[-2]: [(begin, end, notes) for begin, end, _, _, notes in decoded.slices(*track)]
        for track in decoded.events
        if track[-1] == "holds class 3"
    }
    assert drawn
    for asking, slices in drawn.items():
        source, target = asking.split("->")
        row = held.filter(port_name=f"{target}->{source}").row(0, named=True)
        assert all(a[1] <= b[0] for a, b in pairwise(slices)), "no two at a time"
        assert (
            len(slices) == row["held_count"] or len(slices) == row["held_count"] + 1
        )  # the last is on its way
        # What was asked reaches the other end after the delay of the link, stop and go alike.
        sum_ps = 1000 * sum(end - begin for begin, end, _ in slices)
        assert sum_ps == pytest.approx(row["held_ps"], rel=0.01)


def test_bytes_in_flight_are_what_was_sent_and_not_acknowledged(tmp_path):
    assign = {"run.duration": "1 s", "record": None, "measure": None}
    scenario = load("tcp-dumbbell", assign).assign(
        {"record.wire": {"frames": ["left-0->left", "left->left-0"], "as": "pcapng"}}
    )
    run = weirlab.run(scenario)
    decoded = timeline_of(run, tmp_path)
    flow = next(name for name in decoded.below(scenario.name, "wire-0", "flows") if "left-0->" in name)
    values = decoded.values(scenario.name, "wire-0", "flows", flow, "sent and not acknowledged")
    peak = weirlab.diagnose(run.save(tmp_path / "run")).trace.flows["flight_max_bytes"].max()
    assert max(value for _, value in values) == peak


def test_frames_of_a_capture_without_a_rate_are_marks_and_with_one_slices(incast, tmp_path):
    content = incast.captures["frames-0.pcapng"]
    bare = tmp_path / "bare.pcapng"
    bare.write_bytes(content.replace(_rate_option(10_000_000_000), _rate_option(0)))
    marks = timeline_of(bare, tmp_path).below("bare", "ports")["host-0->switch-0"]
    assert {event[0] for event in marks} == {INSTANT}
    slices = timeline_of(bare, tmp_path, link_rate="10 Gbit/s").slices("bare", "ports", "host-0->switch-0")
    begin, end, name, _, notes = slices[-1]
    assert end - begin == (1500 + 20) * 8 // 10  # preamble and gap are not known to be absent
    assert all(after[0] >= before[1] for before, after in pairwise(slices))
    assert name == "10.0.0.0:1024 → 10.0.0.4:5001"
    assert notes == {"bytes": 1500}


def _rate_option(bps):
    return b"\x08\x00\x08\x00" + bps.to_bytes(8, "little")


def test_what_is_no_capture_is_refused_by_name_and_leaves_no_file(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("not a capture")
    with pytest.raises(InputError, match=r"text\.txt: not a capture"):
        weirlab.perfetto(text, tmp_path / "out.pftrace")
    with pytest.raises(InputError, match="there is no such file"):
        weirlab.perfetto(tmp_path / "absent.pcap", tmp_path / "out.pftrace")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["text.txt"]


def test_a_saved_run_gives_the_same_timeline(incast, tmp_path):
    place = incast.save(tmp_path / "kept")
    weirlab.perfetto(incast, tmp_path / "one")
    weirlab.perfetto(place, tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_run_that_recorded_nothing_over_time_says_how_to(tmp_path):
    run = weirlab.run("incast", assign={"run.duration": "1 ms", "record": None, "measure": None})
    with pytest.raises(InputError, match=r"recorded neither frames nor series; .* as: pcapng"):
        weirlab.perfetto(run, tmp_path / "out")


def test_one_word_writes_the_timeline_of_a_run_that_records_no_frames(tmp_path, capsys):
    file = tmp_path / "frames.pftrace"
    options = ["--set", "run.duration=1 ms", "--set", "measure=", "--out", str(tmp_path / "run")]
    assert execute(["run", "incast", *options, "--perfetto", str(file)]) == 0
    assert "whole ns; open it at https://ui.perfetto.dev" in capsys.readouterr().err
    assert Decoded(file).slices("incast", "frames-0", "ports", "switch-0->host-4")


def test_a_study_has_no_timeline_and_says_so(tmp_path, capsys):
    assert execute(["run", "load-and-buffer", "--perfetto", str(tmp_path / "out")]) == 2
    assert "--perfetto is for one run" in capsys.readouterr().err


def test_the_time_held_by_pause_in_the_intervals_of_a_port_is_that_of_the_port():
    for name, every in (("pause-victim", "70 us"), ("zrl-egress", "69.9904 us")):
        scenario = load(name, {"record": None, "measure": None})
        scenario = scenario.assign({"record.queues": {"queue": "*->*", "every": every}})
        records = weirlab.run(scenario).records
        whole = records["ports"].filter(pl.col("paused_ps") > 0).select("port", "paused_ps").sort("port")
        parts = records["intervals"].group_by("port").agg(pl.col("paused_ps").sum())
        parts = parts.filter(pl.col("paused_ps") > 0).sort("port")
        assert not whole.is_empty()
        assert parts.rows() == whole.rows(), name
