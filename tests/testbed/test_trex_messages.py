"""What travels between a TRex server and its client, without a socket."""

from __future__ import annotations

import base64
import ipaddress
import itertools
import json
import math
import struct
import zlib

import pytest
from hypothesis import given, settings, strategies as st

from weirlab.errors import InputError, TestbedError
from weirlab.scenario.traffic import IMIX
from weirlab.testbed.base import TrialSpec
from weirlab.testbed.trex import FrameMix, TrexSettings
from weirlab.testbed.trex.delays import Delays
from weirlab.testbed.trex.settings import plan
from weirlab.testbed.trex.streams import Lane, Ramp, Traffic, udp_frame
from weirlab.testbed.trex.wire import Call, RpcError, decode, encode, results

LANE = Lane(0, 1, "16.0.0.1", "48.0.0.1")
MAGIC = b"\xab\xe8\x5c\xea"

LOG_NORMAL = (
    "HISTFAAAANR4nJNpmSzMwMBwhQECmKE0I5icMa3B/gNUgEkvJyqrhREEGxhrcuoKMloYs2LczAJiIvxc3Py0vFTEDJSMDHQ0tCQUtFQ0FETE"
    "+ISkxITUhMTERER4uERY+Li4uPj4ePjY2PhYWASEWFg4OPiAHAEuLhYOLhYgwcHEwsjEwsTBxsTEBqRZuJhY2JgYWZjY2FiYgICZCSjLyAJU"
    "w8wEZDKCxMAEMxszUDkjRJCXiZ0JwuIGCXEyhTNVAzWYMwUyiTMFMwky+QNF3jIzPT/GyAQAncAaAg=="
)
"""2 000 log-normal values and 5 000 000, three digits, written by the Python port of HdrHistogram 0.10.3."""
SQUARES = (
    "HISTFAAAAHl4nJNpmSzMwMBwjAECmKA0I4i4NnkJg/0HqAATMxM7EzcTP5MwkziTNJM8kzKTOpM2kz6TMZM5kzWTLJMiEKoCoSaQFgVCcSCU"
    "BEJpIJRl4gVCfigUhEJhMORm4oRDbjBGQF4wBkFWOGRHwZiQE45ZgW5GhQDu9gwd"
)
"""The squares of 1 to 99, two digits, written by the same."""


def test_a_short_request_goes_as_plain_json() -> None:
    message = encode([Call("ping", {"a": 1})], ["x-0"], batch=False)
    assert json.loads(message) == {"jsonrpc": "2.0", "id": "x-0", "method": "ping", "params": {"a": 1}}


def test_a_long_request_is_compressed_behind_magic_number_and_size() -> None:
    calls = [Call("add_stream", {"packet": "A" * 2000})]
    message = encode(calls, ["x-0"], batch=True)
    magic, size = struct.unpack(">4sI", message[:8])
    text = zlib.decompress(message[8:])
    assert magic == MAGIC
    assert size == len(text) > len(message)
    assert json.loads(text)[0]["params"]["packet"] == "A" * 2000


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(), max_size=40))
def test_what_is_encoded_is_decoded(params: dict[str, object]) -> None:
    (call,) = decode(encode([Call("m", params)], ["x-0"], batch=True))
    assert call["params"] == params


@pytest.mark.parametrize("as_list", [False, True])
def test_a_single_call_may_be_answered_by_an_object_or_by_a_list_of_one(as_list: bool) -> None:
    reply = {"jsonrpc": "2.0", "id": "x-0", "result": {"ts": 1}}
    message = json.dumps([reply] if as_list else reply).encode()
    assert results(decode(message), [Call("ping")], ["x-0"]) == [{"ts": 1}]


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (b"", "not JSON"),
        (b"\x00\xff\xfe", "not JSON"),
        (b"[]", "not JSON-RPC"),
        (b"42", "not JSON-RPC"),
        (b'{"id": "x-0", "result": 1}', "not JSON-RPC"),
        (MAGIC + b"\x00\x00\x00\x05" + b"garbage", "damaged"),
        (MAGIC + b"\x00\x00\x00\x05" + zlib.compress(b"[1,2,3]"), "other than the announced 5 bytes"),
        (MAGIC + b"\xff\xff\xff\xff" + zlib.compress(b"[]"), "announced a reply of 4294967295 bytes"),
    ],
)
def test_garbage_is_told_apart_from_answers(message: bytes, says: str) -> None:
    with pytest.raises(TestbedError, match=says):
        decode(message)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ({"id": "y-0", "result": 1}, "answered messages"),
        ({"id": "x-0"}, "neither a result nor an error"),
        ({"id": "x-0", "error": "no"}, "not JSON-RPC"),
        ({"id": "x-0", "error": {"code": -32000, "message": "Failed"}}, "refused acquire: Failed"),
        ({"id": "x-0", "error": {"code": -32000, "message": "F", "specific_err": "taken"}}, "acquire: taken"),
        ({"id": None, "error": {"code": -32700, "message": "Bad JSON Format"}}, "Bad JSON Format"),
    ],
)
def test_an_answer_must_belong_to_its_question(reply: dict[str, object], says: str) -> None:
    with pytest.raises(TestbedError, match=says):
        results([{"jsonrpc": "2.0", **reply}], [Call("acquire")], ["x-0"])


def test_a_refusal_keeps_its_code() -> None:
    reply = {"jsonrpc": "2.0", "id": "x-0", "error": {"code": -32001, "message": "Try again later"}}
    with pytest.raises(RpcError) as caught:
        results([reply], [Call("get_port_status")], ["x-0"])
    assert caught.value.code == RpcError.TRY_AGAIN


@settings(deadline=None)
@given(st.integers(64, 9216))
def test_a_frame_has_its_size_without_fcs_and_a_right_header_checksum(size: int) -> None:
    frame = udp_frame(size, "16.0.0.1", "48.0.0.1")
    header = frame[14:34]
    words = sum(struct.unpack(">10H", header))
    assert len(frame) == size - 4
    assert (words & 0xFFFF) + (words >> 16) == 0xFFFF
    assert struct.unpack(">H", header[2:4]) == (size - 4 - 14,)
    assert ipaddress.IPv4Address(header[12:16]) == ipaddress.IPv4Address("16.0.0.1")


def test_the_frames_of_a_mix_leave_in_the_proportion_of_their_weights() -> None:
    mix = FrameMix(dict(IMIX))
    streams = Traffic(LANE, mix, rate_fps=48_000.0).streams()
    rates = {_size(stream): stream["mode"]["rate"]["value"] for stream in streams}
    assert rates == pytest.approx({64: 28_000.0, 570: 16_000.0, 1518: 4_000.0})
    assert mix.mean_bytes == pytest.approx(353.8333, abs=1e-4)


@settings(deadline=None)
@given(rate=st.floats(10.0, 1e8), ramp_s=st.floats(0.01, 60.0))
def test_a_ramp_grows_by_equal_factors_from_one_per_cent_and_takes_its_time(
    rate: float, ramp_s: float
) -> None:
    steps = Ramp(ramp_s).frames(rate)
    factors = [later / sooner for (sooner, _), (later, _) in itertools.pairwise(steps)]
    assert steps[0][0] == pytest.approx(0.01 * rate)
    assert factors == pytest.approx([factors[0]] * len(factors))
    assert steps[-1][0] * factors[0] == pytest.approx(rate)
    took_s = sum(frames / fps for fps, frames in steps)
    assert took_s <= ramp_s + sum(1.0 / fps for fps, _ in steps)
    if rate * 0.01 * ramp_s / 10.0 > 100.0:
        assert took_s == pytest.approx(ramp_s, rel=0.005)


def test_a_ramp_is_a_chain_of_bursts_that_ends_in_the_load() -> None:
    traffic = Traffic(LANE, FrameMix({64: 1, 128: 1}), 1e6, ramp=Ramp(1.0), group=1, ramp_group=2)
    streams = traffic.streams()
    numbered = dict(enumerate(streams, start=1))
    starts = [number for number, stream in numbered.items() if stream["self_start"]]
    ends = []
    for number in starts:
        chain = [number]
        while (following := numbered[chain[-1]]["next_stream_id"]) != -1:
            chain.append(following)
        assert len(chain) == 11
        assert len({_size(numbered[n]) for n in chain}) == 1
        ends.append(numbered[chain[-1]])
    assert len(starts) == 2
    assert [stream["mode"]["type"] for stream in ends] == ["continuous", "continuous"]
    assert {stream["flow_stats"]["stream_id"] for stream in ends} == {1}
    alone = traffic.ramp_streams()
    assert len(alone) == len(streams) - 2
    assert all(stream["mode"]["type"] == "single_burst" for stream in alone)
    assert [stream["next_stream_id"] for stream in alone].count(-1) == 2


def test_frames_that_measure_the_delay_are_part_of_the_load() -> None:
    traffic = Traffic(LANE, FrameMix({64: 1}), 1e6, latency_fps=1000.0, latency_group=3000)
    rates = [stream["mode"]["rate"]["value"] for stream in traffic.streams()]
    assert sum(rates) == pytest.approx(1e6)
    assert traffic.streams()[-1]["flow_stats"] == {"enabled": True, "stream_id": 3000, "rule_type": "latency"}


def test_flows_count_the_source_address_up() -> None:
    (stream,) = Traffic(LANE, FrameMix({64: 1}), 1e6, flows=1000).streams()
    counter, write, checksum = stream["vm"]["instructions"]
    assert counter["max_value"] - counter["min_value"] == 999
    assert counter["init_value"] == int(ipaddress.IPv4Address("16.0.0.1"))
    assert write["pkt_offset"] == 14 + 12
    assert checksum == {"type": "fix_checksum_ipv4", "pkt_offset": 14}


def test_both_ways_of_every_pair_carry_their_part_of_the_load() -> None:
    settings = TrexSettings(server="t", ports=(0, 1, 2, 3))
    lanes = [each.lane for each in plan(settings, _spec(directions=2))]
    assert [(lane.sender, lane.receiver) for lane in lanes] == [(0, 1), (1, 0), (2, 3), (3, 2)]
    assert {each.rate_fps for each in plan(settings, _spec(directions=2))} == {250.0}
    assert [each.lane.sender for each in plan(settings, _spec(directions=1))] == [0, 2]
    assert lanes[0].source_ip == lanes[1].destination_ip != lanes[2].source_ip


@pytest.mark.parametrize(
    ("settings", "spec", "says"),
    [
        ({}, {"directions": 3}, "one way or both ways"),
        ({}, {"frame_size_bytes": 63}, "64 to 9216 B"),
        ({"mix": FrameMix(dict(IMIX))}, {"frame_size_bytes": 64}, "a mix of 353.8 B"),
    ],
)
def test_a_trial_that_the_ports_cannot_make_is_refused(
    settings: dict[str, object], spec: dict[str, int], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        plan(TrexSettings(server="t", **settings), _spec(**spec))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"ports": (0,)}, "in pairs"),
        ({"ports": (0, 0)}, "in pairs"),
        ({"ports": ()}, "in pairs"),
        ({"settle_s": -0.1}, "settle_s must be 0 or more"),
        ({"stable_s": 0.0}, "stable_s must be above 0 s"),
        ({"cores": ()}, "cores are numbers of 0 to 63"),
        ({"cores": (64,)}, "cores are numbers of 0 to 63"),
        ({"timeout_s": math.nan}, "timeout_s must be above 0 s"),
        ({"ramp_up_s": -1.0}, "ramp_up_s must be 0 or more"),
        ({"count": "bytes"}, "'ports' or 'groups'"),
        ({"flows": 0}, "flows must be 1 or more"),
        ({"addresses": ("16.0.0.1", "fe80::1")}, "IPv4"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        TrexSettings(server="t", **settings)  # type: ignore[arg-type]


def test_percentiles_of_a_histogram_are_those_that_its_author_gives() -> None:
    delays = Delays.decode(LOG_NORMAL)
    assert delays.total == 2001
    us = {name: round(value * 1e6) for name, value in delays.percentiles().items()}
    assert us == {"min": 1, "p50": 21, "p90": 73, "p99": 179, "p99.9": 535, "max": 5_001_215}


def test_a_percentile_is_the_least_delay_that_so_many_do_not_exceed_to_the_width_of_a_bin() -> None:
    percentiles = Delays.decode(SQUARES).percentiles()
    squares = [n * n for n in range(1, 100)]
    for name, quantile in {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}.items():
        exact_us = squares[math.ceil(quantile * len(squares)) - 1]
        assert exact_us <= percentiles[name] * 1e6 * (1 + 1e-12) <= exact_us * (1 + 1 / 128)


def test_histograms_of_several_directions_are_added() -> None:
    one = Delays.decode(SQUARES)
    both = Delays.merged([one, one])
    assert both.total == 2 * one.total
    assert both.percentiles() == one.percentiles()
    assert Delays.merged([]).percentiles() == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no base64!",
        base64.b64encode(b"too short").decode(),
        SQUARES[:-8],
        "HISTFAAAAAR4nJNp",
        base64.b64encode(struct.pack(">II", 0x1C849314, 40) + zlib.compress(bytes(40))).decode(),
    ],
)
def test_a_damaged_histogram_is_no_delay(text: str) -> None:
    with pytest.raises(TestbedError, match="damaged"):
        Delays.decode(text)


def _size(stream: dict[str, dict[str, str]]) -> int:
    return len(base64.b64decode(stream["packet"]["binary"])) + 4


def _spec(directions: int = 2, frame_size_bytes: int = 64) -> TrialSpec:
    return TrialSpec(
        index=0,
        intended_load_fps=1000.0,
        duration_s=1.0,
        frame_size_bytes=frame_size_bytes,
        directions=directions,
    )
