"""A TRex server that has no network cards: the wire protocol of the real one, a model of a device, and
faults.

It listens on a real ZeroMQ REP socket, checks requests as the real server does (trex-core:
src/rpc-server/trex_rpc_jsonrpc_v2_parser.cpp, trex_rpc_cmd_api.h; src/stx/common/trex_rpc_cmds_common.cpp,
trex_port.cpp; src/stx/stl/trex_stl_rpc_cmds.cpp, trex_stl_port.cpp) and counts frames that a device between
its ports would have forwarded. Its time is that on the wall, or passes while its
client sleeps.

    python -m tests.testbed.fake_trex --port 4501 --capacity 5e6 --fault counters_late_s=0.3
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

import zmq

from .fake_trex_model import Device, FakeClock, Faults, Port, Segment, WallClock

PARSE, INVALID, UNKNOWN, BAD_PARAMS = -32700, -32600, -32601, -32602
EXECUTE, TRY_AGAIN = -32000, -32001
MAGIC = 0xABE85CEA
ACTIVE = ("TX",)
WIRE_OVERHEAD_BYTES = 24
"""FCS, preamble, start delimiter and gap, beyond the bytes of the packet."""


class RefusalError(Exception):
    """An answer with an error."""

    def __init__(self, code: int, specific: str) -> None:
        self.code = code
        self.specific = specific
        super().__init__(specific)


class FakeTrex:
    """The server. Use it as a context manager: it listens on ``port`` (0: any) while inside."""

    def __init__(
        self,
        *,
        device: Device | None = None,
        faults: Faults | None = None,
        clock: FakeClock | WallClock | None = None,
        ports: int = 2,
        speed_gbps: float = 10.0,
        capabilities: tuple[str, ...] = ("flow_stats", "latency", "rx_bytes"),
        hdrh: str = "",
        port: int = 0,
    ) -> None:
        self.device = device or Device()
        self.faults = faults or Faults()
        self.clock = clock or WallClock()
        self.ports = [Port(index) for index in range(ports)]
        self.hdrh = hdrh
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        """Every call that was carried out or refused."""
        self.starts: list[Mapping[int, Mapping[int, Mapping[str, Any]]]] = []
        """The streams of all ports at each start of traffic."""
        self._speed_gbps = speed_gbps
        self._capabilities = capabilities
        self._api_handle = "fakeapih"
        self._segments: list[Segment] = []
        self._handlers = 0
        self._started_s: float | None = None
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 0)
        if port:
            self._socket.bind(f"tcp://127.0.0.1:{port}")
            self.rpc_port = port
        else:
            self.rpc_port = self._socket.bind_to_random_port("tcp://127.0.0.1")
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        if self.faults.owner:
            for each in self.ports:
                each.owner, each.handler, each.session_id = self.faults.owner, "theirs", 7

    def __enter__(self) -> FakeTrex:
        self._thread.start()
        return self

    def __exit__(self, *about: object) -> None:
        self._stops.set()
        self._thread.join(10.0)
        self._context.destroy(linger=0)

    # The socket and its messages

    def _serve(self) -> None:
        while not self._stops.is_set():
            if not self._socket.poll(20):
                continue
            request = self._socket.recv()
            self.clock.answering()
            if self.faults.answer_after_s:
                self._stops.wait(self.faults.answer_after_s)
            reply = self._answer(request)
            if reply is None:
                self._renew_socket()
            else:
                with contextlib.suppress(zmq.ZMQError):
                    self._socket.send(reply)

    def _renew_socket(self) -> None:
        """A REP socket must answer before it receives again: one that shall not answer is replaced."""
        self._socket.close(linger=0)
        self._socket = self._context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 0)
        for _ in range(100):
            try:
                self._socket.bind(f"tcp://127.0.0.1:{self.rpc_port}")
                return
            except zmq.ZMQError:
                time.sleep(0.01)

    def _answer(self, request: bytes) -> bytes | None:
        is_compressed = len(request) >= 8 and struct.unpack(">I", request[:4])[0] == MAGIC
        text = zlib.decompress(request[8:]) if is_compressed else request
        try:
            message = json.loads(text)
        except ValueError:
            return json.dumps([_error(None, PARSE, "Bad JSON Format")]).encode()
        calls = message if isinstance(message, list) else [message]
        methods = [call.get("method") for call in calls]
        if self._is_silent(methods):
            return None
        if self.faults.garbage_to and self.faults.garbage_to in methods:
            return self.faults.garbage
        replies = [self._execute(call) for call in calls]
        if self.faults.wrong_id:
            replies = [{**reply, "id": "other"} for reply in replies]
        as_list = isinstance(message, list) or self.faults.replies_as_list
        reply = json.dumps(replies if as_list else replies[0]).encode()
        if not is_compressed:
            return reply
        return struct.pack(">II", MAGIC, len(reply)) + zlib.compress(reply)

    def _is_silent(self, methods: list[Any]) -> bool:
        dies_s = self.faults.dies_after_start_s
        if dies_s and self._started_s is not None and self.clock.now() > self._started_s + dies_s:
            return True
        if self.faults.silent_to in methods and self.faults.silent_times > 0:
            self.faults.silent_times -= 1
            return True
        return False

    def _execute(self, call: Mapping[str, Any]) -> dict[str, Any]:
        identifier = call.get("id")
        if identifier is None:
            return _error(None, INVALID, "Missing 'id' field")
        if call.get("jsonrpc") != "2.0":
            return _error(identifier, INVALID, "Invalid JSONRPC Version")
        method = str(call.get("method") or "")
        command: Callable[[Mapping[str, Any]], Any] | None = getattr(self, f"rpc_{method}", None)
        if command is None or (method == "api_sync_v2" and not self.faults.knows_api_sync_v2):
            return _error(identifier, UNKNOWN, f"Method {method} not registered")
        params = call.get("params") or {}
        self.calls.append((method, params))
        try:
            if method not in ("api_sync_v2", "get_version", "ping"):
                self._check_api(params)
            if method in OWNED:
                self._check_owner(params)
            result = command(params)
        except RefusalError as refusal:
            words = {EXECUTE: "Failed To Execute Method", BAD_PARAMS: "Bad paramters for method"}
            return _error(identifier, refusal.code, words.get(refusal.code, "Try again"), refusal.specific)
        return {"jsonrpc": "2.0", "id": identifier, "result": result}

    def _check_api(self, params: Mapping[str, Any]) -> None:
        if _field(params, "api_h", str) != self._api_handle:
            raise RefusalError(EXECUTE, "API verification failed - API handler provided mismatch")

    def _check_owner(self, params: Mapping[str, Any]) -> None:
        handler = _field(params, "handler", str)
        port = self._port(params)
        if not port.owner:
            raise RefusalError(EXECUTE, "please acquire the port before modifying port state")
        if port.handler != handler:
            raise RefusalError(EXECUTE, "port is not owned by you or your current executing session")

    def _port(self, params: Mapping[str, Any]) -> Port:
        number = _field(params, "port_id", int)
        if not 0 <= number < len(self.ports):
            raise RefusalError(EXECUTE, f"invalid port id - should be between 0 and {len(self.ports) - 1}")
        port = self.ports[number]
        if port.state in ACTIVE and self.clock.now() >= port.ends_s:
            port.state = "STREAMS"
        return port

    # The calls

    def rpc_ping(self, params: Mapping[str, Any]) -> Any:
        return {"ts": self.clock.now()}

    def rpc_api_sync_v2(self, params: Mapping[str, Any]) -> Any:
        name = _field(params, "name", str)
        major, minor = _field(params, "major", int), _field(params, "minor", int)
        ours = self.faults.api_version
        if name != self.faults.mode:
            raise RefusalError(
                EXECUTE,
                f"RPC configuration mismatch - server RPC configuration: '{self.faults.mode}', client RPC "
                f"configuration: '{name}'",
            )
        versions = f"\n(API type '{name}': - server: '{ours[0]}.{ours[1]}', client: '{major}.{minor}')"
        if major < ours[0]:
            raise RefusalError(EXECUTE, f"RPC version mismatch: a newer client version is required{versions}")
        if major > ours[0] or minor > ours[1]:
            raise RefusalError(
                EXECUTE,
                f"Version mismatch: your client version is too new to be supported by the server{versions}",
            )
        return {"api_h": self._api_handle}

    def rpc_get_version(self, params: Mapping[str, Any]) -> Any:
        return {"version": "v3.04", "build_date": "", "build_time": "", "built_by": "FAKE", "mode": "STL"}

    def rpc_get_system_info(self, params: Mapping[str, Any]) -> Any:
        ports = [
            {
                "index": port.index,
                "driver": "net_fake",
                "description": "no network card",
                "rx": {"caps": list(self._capabilities), "counters": 127},
                "is_prom_supported": True,
                "is_link_supported": False,
                "is_virtual": True,
            }
            for port in self.ports
        ]
        return {"hostname": "fake", "dp_core_count": 1, "port_count": len(ports), "ports": ports}

    def rpc_acquire(self, params: Mapping[str, Any]) -> Any:
        port = self._port(params)
        user, force = _field(params, "user", str), _field(params, "force", bool)
        session_id = _field(params, "session_id", int)
        if not port.owner or force:
            self._handlers += 1
            port.owner, port.session_id, port.handler = user, session_id, f"handler{self._handlers}"
        elif port.owner != user:
            raise RefusalError(EXECUTE, f"port is already taken by '{port.owner}'")
        elif port.session_id != session_id:
            raise RefusalError(EXECUTE, f"port is already owned by another session of '{user}'")
        return port.handler

    def rpc_release(self, params: Mapping[str, Any]) -> Any:
        port = self._port(params)
        port.owner = port.handler = ""
        return {}

    def rpc_get_port_status(self, params: Mapping[str, Any]) -> Any:
        port = self._port(params)
        if self.faults.try_again > 0:
            self.faults.try_again -= 1
            raise RefusalError(TRY_AGAIN, "")
        return {
            "owner": port.owner,
            "state": port.state,
            "service": self.faults.service,
            "max_stream_id": max(port.streams, default=0),
            "attr": {
                "link": {"up": self.faults.link_up},
                "speed": self._speed_gbps,
                "promiscuous": {"enabled": port.promiscuous},
                "layer_cfg": {"ether": {"state": "configured" if self.faults.resolved else "unconfigured"}},
            },
        }

    def rpc_set_port_attr(self, params: Mapping[str, Any]) -> Any:
        port = self._port(params)
        for name, value in _field(params, "attr", dict).items():
            if name != "promiscuous":
                raise RefusalError(EXECUTE, f"unknown attribute type: '{name}'")
            port.promiscuous = _field(value, "enabled", bool)
        return {}

    def rpc_remove_all_streams(self, params: Mapping[str, Any]) -> Any:
        port = self._port(params)
        self._verify_state(port, ("IDLE", "STREAMS"), "remove_all_streams")
        port.streams.clear()
        port.state = "IDLE"
        return {}

    def rpc_add_stream(self, params: Mapping[str, Any]) -> Any:
        port = self._port(params)
        number, stream = _field(params, "stream_id", int), _field(params, "stream", dict)
        mode = _field(stream, "mode", dict)
        kind = _field(mode, "type", str)
        if kind not in ("continuous", "single_burst"):
            raise RefusalError(BAD_PARAMS, f"bad stream type provided: '{kind}'")
        if kind == "single_burst" and not _field(mode, "total_pkts", int) > 0:
            raise RefusalError(BAD_PARAMS, "single_burst: 'total_pkts' cannot be zero.")
        rate = _field(mode, "rate", dict)
        if _field(rate, "type", str) not in ("pps", "bps_L1", "bps_L2", "percentage"):
            raise RefusalError(
                BAD_PARAMS, "field 'type' can only be one of ['pps' ,'bps_L1' ,'bps_L2' ,'percentage']"
            )
        if _field(rate, "value", float) < 0:
            raise RefusalError(BAD_PARAMS, "'value' is negative")
        for name, kind_of in STREAM_FIELDS.items():
            _field(stream, name, kind_of)
        packet = base64.b64decode(_field(stream["packet"], "binary", str))
        if not 1 <= len(packet) <= 9216:
            raise RefusalError(
                EXECUTE, f"Bad packet size provided: {len(packet)}. Should be between 1 and 9216"
            )
        _field(stream["packet"], "meta", str)
        self._check_vm(_field(stream["vm"], "instructions", list))
        if _field(stream["flow_stats"], "enabled", bool):
            _field(stream["flow_stats"], "stream_id", int)
            _field(stream["flow_stats"], "rule_type", str)
            if not self._capabilities:
                raise RefusalError(BAD_PARAMS, "RX stats is not supported on this interface")
        self._verify_state(port, ("IDLE", "STREAMS"), "add_stream")
        if number in port.streams:
            raise RefusalError(EXECUTE, f"stream {number} already exists")
        port.streams[number] = stream
        port.state = "STREAMS"
        return {}

    def rpc_start_traffic(self, params: Mapping[str, Any]) -> Any:
        port = self._port(params)
        duration_s, force = _field(params, "duration", float), _field(params, "force", bool)
        mul = _field(params, "mul", dict)
        if _field(mul, "type", str) not in ("raw", "bps", "bpsl1", "pps", "percentage"):
            raise RefusalError(
                BAD_PARAMS, "field 'type' can only be one of ['raw' ,'bps' ,'bpsl1' ,'pps' ,'percentage']"
            )
        if _field(mul, "op", str) != "abs":
            raise RefusalError(BAD_PARAMS, "start message can only specify absolute speed rate")
        if _field(mul, "value", float) == 0:
            raise RefusalError(BAD_PARAMS, "multiplier can't be zero")
        if not params.get("core_mask", 1):
            raise RefusalError(BAD_PARAMS, "core_mask: '0x0' for 1 cores generates an empty set")
        self._verify_state(port, ("STREAMS",), "start")
        if not force and not self.faults.link_up:
            raise RefusalError(EXECUTE, "Link state is DOWN.")
        if not force and not self.faults.resolved:
            raise RefusalError(
                EXECUTE,
                f"Port {port.index} dest MAC is invalid and there are streams without explicit dest MAC.",
            )
        l1_bps = sum(
            8.0 * stream["mode"]["rate"]["value"] * (_length(stream) + WIRE_OVERHEAD_BYTES)
            for stream in port.streams.values()
            if stream["mode"]["type"] == "continuous"
        )
        if not force and l1_bps / (self._speed_gbps * 1e9) > 1.0001:
            raise RefusalError(
                EXECUTE,
                f"Expected L1 B/W: '{l1_bps / 1e9:g} Gbps' exceeds port line rate: "
                f"'{self._speed_gbps:g} Gbps'",
            )
        now = self.clock.now()
        port.state = "TX"
        port.ends_s = 1e18 if duration_s <= 0 else now + duration_s + self.faults.ends_late_s
        planned = list(self._planned(port, now, float(mul["value"])))
        port.ends_s = min(port.ends_s, max(each.end_s for each in planned))
        self._segments += [replace(each, end_s=min(each.end_s, port.ends_s)) for each in planned]
        self._started_s = now
        self.starts.append({each.index: dict(each.streams) for each in self.ports})
        self.ports[port.index ^ 1].extra += self.faults.extra_frames
        if self.faults.counters_go_back:
            port.base_sent += 1_000_000
        return {"multiplier": mul["value"], "ts": now}

    def rpc_stop_traffic(self, params: Mapping[str, Any]) -> Any:
        port = self._port(params)
        if port.state in ACTIVE:
            now = self.clock.now()
            for each in self._segments:
                if each.port == port.index:
                    each.end_s = min(each.end_s, max(now, each.begin_s))
            port.state = "STREAMS"
        return {}

    def rpc_get_port_stats(self, params: Mapping[str, Any]) -> Any:
        port = self._port(params)
        received = self._received(port.index, self._seen_s(self.faults.received_late_s))
        errors = int(self.faults.receive_error_ratio * received)
        return {
            "opackets": self._sent(port.index, self._seen_s()) - port.base_sent,
            "ipackets": received - errors,
            "oerrors": 0,
            "ierrors": errors,
            "obytes": 0,
            "ibytes": 0,
            "m_total_tx_pps": 0.0,
            "m_total_rx_pps": 0.0,
            "m_cpu_util": 1.0,
        }

    def rpc_get_global_stats(self, params: Mapping[str, Any]) -> Any:
        return {"m_cpu_util": 1.0, "m_total_queue_full": 0}

    def rpc_get_pgid_stats(self, params: Mapping[str, Any]) -> Any:
        flow_stats: dict[str, Any] = {}
        latency: dict[str, Any] = {}
        for group in _field(params, "pgids", list):
            streams = [
                stream
                for port in self.ports
                for stream in port.streams.values()
                if stream["flow_stats"].get("stream_id") == group
            ]
            if not streams:
                continue
            flow_stats[str(group)] = {
                "tp": {str(p.index): self._sent(p.index, self._seen_s(), group) for p in self.ports},
                "rp": {
                    str(p.index): self._received(p.index, self._seen_s(self.faults.received_late_s), group)
                    for p in self.ports
                },
            }
            if streams[0]["flow_stats"]["rule_type"] == "latency":
                latency[str(group)] = {
                    "lat": {"total_max": 100, "jit": 1, **({"hdrh": self.hdrh} if self.hdrh else {})}
                }
        return {"flow_stats": flow_stats, "latency": latency, "ver_id": {}}

    # What the ports send and the device forwards

    def _planned(self, port: Port, now: float, multiplier: float) -> Iterator[Segment]:
        """The segments of the streams of a port: each chain from the stream that starts by itself."""
        for number, stream in port.streams.items():
            begin_s = now + stream["isg"] * 1e-6
            current = number if stream["self_start"] else -1
            while current != -1:
                stream = port.streams[current]
                mode, statistics = stream["mode"], stream["flow_stats"]
                asked_fps = mode["rate"]["value"] * multiplier
                rate_fps = min(asked_fps * (1.0 - self.faults.unsent_ratio), self.faults.most_fps)
                endless = mode["type"] == "continuous"
                end_s = 1e18 if endless else begin_s + mode["total_pkts"] / asked_fps
                group = statistics.get("stream_id")
                is_latency = statistics.get("rule_type") == "latency"
                yield Segment(port.index, begin_s, end_s, rate_fps, group, is_latency)
                begin_s = end_s
                current = stream["next_stream_id"]

    def _seen_s(self, more_s: float = 0.0) -> float:
        """The moment whose counters are shown now."""
        at_s = self.clock.now() - self.faults.counters_late_s - more_s
        every_s = self.faults.counters_every_s
        return at_s - at_s % every_s if every_s else at_s

    def _sent(self, port: int, at_s: float, group: int | None = None) -> int:
        return sum(each.sent(at_s) for each in self._of(port, group))

    def _received(self, port: int, at_s: float, group: int | None = None) -> int:
        arrived = sum(
            int(each.sent(at_s - self.device.delay_s) * self._share(each))
            for each in self._of(port ^ 1, group)
        )
        if group is not None:
            return arrived
        return arrived + self.ports[port].extra + int(self.faults.background_fps * max(0.0, at_s))

    def _of(self, port: int, group: int | None) -> Iterator[Segment]:
        for each in self._segments:
            if each.port == port and (group is None or each.group == group):
                yield each

    def _share(self, segment: Segment) -> float:
        """What the device forwards of a segment: its part of the capacity among all that overlap it for
        long."""
        if segment.share is not None:
            return segment.share
        now = self.clock.now()
        length_s = min(segment.end_s, now) - segment.begin_s
        total_fps = sum(
            each.rate_fps
            for each in self._segments
            if min(each.end_s, segment.end_s, now) - max(each.begin_s, segment.begin_s) > 0.5 * length_s
        )
        share = min(1.0, self.device.capacity_fps / total_fps if total_fps else 1.0)
        share *= 1.0 - self.device.loss_ratio
        if now > segment.end_s + 1.0:
            segment.share = share
        return share

    @staticmethod
    def _verify_state(port: Port, states: tuple[str, ...], command: str) -> None:
        if port.state not in states:
            raise RefusalError(
                EXECUTE, f"command '{command}' cannot be executed on current state: '{port.state}'"
            )

    @staticmethod
    def _check_vm(instructions: list[Any]) -> None:
        known = ("fix_checksum_ipv4", "flow_var", "write_flow_var")
        for instruction in instructions:
            if _field(instruction, "type", str) not in known:
                raise RefusalError(BAD_PARAMS, f"field 'type' can only be one of {list(known)}")
            if instruction["type"] == "flow_var":
                low, high, first = (
                    _field(instruction, name, int) for name in ("min_value", "max_value", "init_value")
                )
                if high < low or not low <= first <= high or _field(instruction, "step", int) == 0:
                    raise RefusalError(BAD_PARAMS, "VM: requested flow var values are out of order")


OWNED = ("release", "add_stream", "remove_all_streams", "start_traffic", "stop_traffic")
STREAM_FIELDS: Mapping[str, type] = {
    "enabled": bool,
    "self_start": bool,
    "flags": int,
    "action_count": int,
    "isg": float,
    "next_stream_id": int,
    "packet": dict,
    "vm": dict,
    "flow_stats": dict,
}


def _length(stream: Mapping[str, Any]) -> int:
    return max(60, len(base64.b64decode(stream["packet"]["binary"])))


def _field(params: Mapping[str, Any], name: str, kind: type) -> Any:
    """A field of a request, of the type that the real server insists on."""
    value = params.get(name)
    if value is None:
        raise RefusalError(BAD_PARAMS, f"field '{name}' is missing")
    is_right = isinstance(value, (int, float)) if kind is float else isinstance(value, kind)
    if not is_right or (isinstance(value, bool) and kind is not bool):
        raise RefusalError(
            BAD_PARAMS,
            f"error at offset: 0 - '{name}' is '{type(value).__name__}', expecting '{kind.__name__}'",
        )
    return value


def _error(identifier: Any, code: int, message: str, specific: str = "") -> dict[str, Any]:
    error = {"code": code, "message": message, **({"specific_err": specific} if specific else {})}
    return {"jsonrpc": "2.0", "id": identifier, "error": error}


def main() -> None:
    parser = argparse.ArgumentParser(description="A TRex server without network cards, to try things on.")
    parser.add_argument("--port", type=int, default=4501)
    parser.add_argument("--capacity", type=float, default=5e6, help="frames/s that the device forwards")
    parser.add_argument("--loss", type=float, default=0.0, help="loss ratio below the capacity")
    names = ", ".join(each.name for each in fields(Faults))
    parser.add_argument("--fault", action="append", default=[], metavar="NAME=VALUE", help=names)
    given = parser.parse_args()
    faults = Faults()
    for text in given.fault:
        name, _, value = text.partition("=")
        setattr(faults, name, type(getattr(faults, name))(float(value)) if value[:1].isdigit() else value)
    device = Device(capacity_fps=given.capacity, loss_ratio=given.loss)
    with (
        FakeTrex(device=device, faults=faults, port=given.port) as server,
        contextlib.suppress(KeyboardInterrupt),
    ):
        print(f"listening on tcp://127.0.0.1:{server.rpc_port}", flush=True)  # noqa: T201
        threading.Event().wait()


if __name__ == "__main__":
    main()
