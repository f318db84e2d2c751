"""A TRex server that runs stateless ("STL"): its session, its ports and the calls that a trial needs.

Message definitions: doc/trex_rpc_server_spec.asciidoc of trex-core where it has them. What it leaves out was
read in the server (src/stx/common/trex_rpc_cmds_common.cpp, src/stx/stl/trex_stl_rpc_cmds.cpp,
src/stx/common/trex_port.cpp, src/rpc-server/trex_rpc_cmd_api.h, src/main_dpdk.cpp) and in the Python client
(interactive/trex/common and interactive/trex/stl): ``api_sync_v2``, ``session_id``, ``block``, the names of
the port counters, packet groups.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weirlab.errors import InputError, TestbedError, TrialTimeout
from weirlab.testbed.trex.connection import Connection
from weirlab.testbed.trex.session import is_dead, session_name
from weirlab.testbed.trex.wire import Answer, Call, RpcError, understood

_API_VERSIONS = ((5, 0), (4, 3))
"""Versions of the STL API that this testbed speaks, the newest first. The server accepts its own major
version with a minor version that is not above its own."""
_TRY_AGAIN_S = 0.3
_TRY_AGAIN_TIMES = 10


@dataclass(frozen=True)
class PortInfo:
    """A port of the server."""

    index: int
    driver: str
    speed_bps: float
    """Line rate; 0 where the driver does not know it, as virtual ones do."""
    capabilities: frozenset[str]
    """``flow_stats``: it counts the frames of a packet group; ``latency``: it measures delays."""
    has_promiscuous: bool
    has_destination: bool = True
    """Whether it knows the MAC address that its frames go to. Known once it was acquired."""


@dataclass(frozen=True)
class PortCounts:
    """What a port counted since the server started."""

    sent: int
    received: int
    send_errors: int
    receive_errors: int


class Server:
    """One session with one server. Its ports are acquired one by one and released all at once."""

    def __init__(self, connection: Connection, *, user: str = "") -> None:
        self._connection = connection
        self._user = user or session_name()
        self._session_id = secrets.randbelow(1 << 31)
        self._api_handle = ""
        self._handlers: dict[int, str] = {}
        self._was_promiscuous: dict[int, bool] = {}
        self.version = ""
        self.api_version = (0, 0)
        self.ports: dict[int, PortInfo] = {}

    def connect(self) -> None:
        """Agree on the version of the API and learn which ports there are.

        Raises:
            TrialTimeout: Nobody answers.
            TestbedError: It is no stateless TRex, or of a version that this testbed does not know.
        """
        self._api_handle = self._synchronise()
        about, system = self._call("get_version"), self._call("get_system_info")
        with understood("get_version"):
            self.version = str(about.get("version", "unknown"))
        with understood("get_system_info"):
            self.ports = {port["index"]: _port_info(port) for port in system["ports"]}

    def acquire(self, port: int, *, force: bool) -> None:
        """Take a port; ``force`` takes it from whoever has it. A port that this session has stays its own,
        and one of a session of this host that died without releasing it is taken back.

        Raises:
            InputError: There is no such port.
            TestbedError: Somebody else has it, its link is down, or it is in service mode.
        """
        if port not in self.ports:
            raise InputError(f"TRex at {self.endpoint} has the ports {sorted(self.ports)}, not {port}")
        force = force or is_dead(self._owner(port))
        params = {"port_id": port, "user": self._user, "session_id": self._session_id, "force": force}
        try:
            self._handlers[port] = self._call("acquire", **params)
        except RpcError as error:
            raise TestbedError(
                f"port {port} of TRex at {self.endpoint} cannot be had: {error.reason}; have it released "
                f"there, in the TRex console with 'acquire --force' and 'release', or set 'force: true' "
                f"before a search is started to take it away"
            ) from error
        status = self.status(port)
        with understood("get_port_status"):
            attributes = status["attr"]
            is_up = attributes.get("link", {}).get("up", True)
            was = bool(attributes.get("promiscuous", {}).get("enabled", False))
            speed_bps = float(attributes.get("speed", 0)) * 1e9
            # What the server asks of streams without an address of their own: src/stx/stl/trex_stl_port.cpp.
            ether = attributes.get("layer_cfg", {}).get("ether", {})
            has_destination = ether.get("state", "configured") != "unconfigured"
        if not is_up:
            raise TestbedError(f"the link of port {port} of TRex at {self.endpoint} is down")
        if status.get("service"):
            raise TestbedError(f"port {port} of TRex at {self.endpoint} is in service mode")
        self.ports[port] = replace(self.ports[port], speed_bps=speed_bps, has_destination=has_destination)
        if self.ports[port].has_promiscuous:
            self._was_promiscuous.setdefault(port, was)
            self._promiscuous(port, enabled=True)

    def release(self) -> None:
        """Stop, empty and give back every port. Afterwards the session is over."""
        try:
            if self._handlers:
                self.clear(list(self._handlers))
            for port, was in self._was_promiscuous.items():
                self._promiscuous(port, enabled=was)
            self._connection.batch([self._owned("release", port) for port in self._handlers])
        finally:
            self._handlers.clear()
            self._was_promiscuous.clear()
            self._connection.close()

    @property
    def endpoint(self) -> str:
        """Where the server is."""
        return self._connection.endpoint

    def clear(self, ports: Sequence[int]) -> None:
        """Stop the ports and remove their streams, whatever they are doing."""
        self.stop(ports)
        self._connection.batch([self._owned("remove_all_streams", port) for port in ports])

    def add_streams(self, streams: Mapping[int, Sequence[Mapping[str, object]]]) -> None:
        """Add streams to ports: by port, the stream objects of the specification, numbered from 1."""
        calls = [
            self._owned("add_stream", port, stream_id=number, stream=stream)
            for port, of_port in streams.items()
            for number, stream in enumerate(of_port, start=1)
        ]
        self._connection.batch(calls, repeatable=False)

    def start(self, ports: Sequence[int], duration_s: float, core_mask: int | None) -> None:
        """Send the streams of the ports as they are, for a time. One message starts all ports, one after
        another."""
        params: dict[str, object] = {
            "duration": float(duration_s),
            "force": False,
            "mul": {"type": "raw", "op": "abs", "value": 1.0},
        }
        if core_mask is not None:
            params["core_mask"] = core_mask
        self._connection.batch(
            [self._owned("start_traffic", port, **params) for port in ports], repeatable=False
        )

    def stop(self, ports: Sequence[int], *, repeatable: bool = True) -> None:
        """Stop the ports; those that do not send are left as they are."""
        self._connection.batch([self._owned("stop_traffic", port) for port in ports], repeatable=repeatable)

    def is_sending(self, ports: Sequence[int]) -> bool:
        """Whether any of the ports is still sending."""
        return any(self.status(port)["state"] in ("TX", "PAUSE", "PCAP_TX") for port in ports)

    def counts(self, ports: Sequence[int]) -> dict[int, PortCounts]:
        """The counters of the ports, read back to back. The server reads its hardware at each request."""
        answers = self._connection.batch([self._free("get_port_stats", port_id=port) for port in ports])
        return {port: _port_counts(answer) for port, answer in zip(ports, answers, strict=True)}

    def groups(self, groups: Sequence[int], section: str) -> Answer:
        """Statistics of packet groups: the section ``flow_stats`` or ``latency``, by group as text."""
        answer = self._call("get_pgid_stats", pgids=list(groups))
        found = answer.get(section) if isinstance(answer, dict) else None
        if not isinstance(found, dict):
            raise TestbedError(f"TRex answered get_pgid_stats without {section} for the groups {groups}")
        return found

    def queue_full(self) -> int:
        """How often a queue of the server was full since it started, all its ports together."""
        answer = self._call("get_global_stats")
        with understood("get_global_stats"):
            return int(answer.get("m_total_queue_full", 0))

    def status(self, port: int) -> Answer:
        """The state and the attributes of a port. Waits where the server says "try again"."""
        for _ in range(_TRY_AGAIN_TIMES):
            try:
                answer = self._call("get_port_status", port_id=port, block=False)
            except RpcError as error:
                if error.code != RpcError.TRY_AGAIN:
                    raise
                time.sleep(_TRY_AGAIN_S)
            else:
                if not (isinstance(answer, dict) and "state" in answer and "attr" in answer):
                    raise TestbedError(f"TRex answered get_port_status without state or attributes: {answer}")
                return answer
        raise TrialTimeout(f"port {port} of TRex at {self.endpoint} is being configured, and stays so")

    def _owner(self, port: int) -> str:
        """Who has a port; empty where nobody has."""
        return str(self.status(port).get("owner", ""))

    def _synchronise(self) -> str:
        refusals = []
        for major, minor in _API_VERSIONS:
            try:
                answer = self._connection.call(
                    Call("api_sync_v2", {"name": "STL", "major": major, "minor": minor})
                )
            except RpcError as error:
                if error.code == RpcError.METHOD_NOT_FOUND:
                    raise TestbedError(
                        f"TRex at {self.endpoint} is older than v2.31: {error.reason}"
                    ) from error
                refusals.append(" ".join(error.reason.split()))
                if not re.search(r"[Vv]ersion mismatch", error.reason):
                    break
            else:
                self.api_version = (major, minor)
                with understood("api_sync_v2"):
                    return str(answer["api_h"])
        known = " and ".join(f"{major}.x" for major, _ in reversed(_API_VERSIONS))
        raise TestbedError(
            f"TRex at {self.endpoint} does not speak a stateless API of version {known}: {refusals[0]}"
        )

    def _promiscuous(self, port: int, *, enabled: bool) -> None:
        call = self._owned("set_port_attr", port, attr={"promiscuous": {"enabled": enabled}})
        self._connection.batch([call])

    def _call(self, method: str, **params: object) -> Any:
        return self._connection.call(self._free(method, **params))

    def _free(self, method: str, **params: object) -> Call:
        return Call(method, {**params, "api_h": self._api_handle})

    def _owned(self, method: str, port: int, **params: object) -> Call:
        return self._free(method, port_id=port, handler=self._handlers[port], **params)


def _port_info(answer: Answer) -> PortInfo:
    capabilities = answer.get("rx", {}).get("caps", [])
    return PortInfo(
        index=answer["index"],
        driver=str(answer.get("driver", "unknown")),
        speed_bps=0.0,
        capabilities=frozenset(capabilities),
        has_promiscuous=bool(answer.get("is_prom_supported", True)),
    )


def _port_counts(answer: Answer) -> PortCounts:
    try:
        return PortCounts(
            sent=int(answer["opackets"]),
            received=int(answer["ipackets"]),
            send_errors=int(answer["oerrors"]),
            receive_errors=int(answer["ierrors"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise TestbedError(f"TRex answered get_port_stats without its counters: {answer}") from error
