"""A campaign in the words of a command line, for those who want one without a file."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from weirlab.cli.link import Link, from_words, rate_text

if TYPE_CHECKING:
    from weirlab.campaigns import Plan
    from weirlab.scenario import Scenario


Ways = Literal["up", "down", "both"]
_SEVERAL = "several, such as {}, are compared"

_NEAR, _FAR = "sender", "receiver"
_LASTS = "10 s"
_PING = {"from": _NEAR, "to": _FAR, "source": {"kind": "ping", "every": "200 ms"}}
_STAMP = {"from": _NEAR, "to": _FAR, "source": {"kind": "stamp", "every": "20 ms"}}
_UDP_PAYLOAD = "1200 B"


@dataclass(frozen=True)
class CampaignWords:
    """The options of `weir bulk` that describe a campaign."""

    streams: Annotated[
        str | None,
        typer.Option(metavar="N,...", help=f"Streams of a transfer; {_SEVERAL.format('1,4,16')}."),
    ] = None
    window: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE,...",
            help=f"Window of each stream; {_SEVERAL.format('64KiB,1MiB')}. Default: the system's.",
        ),
    ] = None
    congestion_control: Annotated[
        str | None,
        typer.Option(
            metavar="KIND,...",
            help=f"Of each stream: reno, cubic or bbr; {_SEVERAL.format('cubic,bbr')}. Default: cubic.",
        ),
    ] = None
    way: Annotated[
        Ways | None, typer.Option(help="Where transfers go: to the far end, from it, or both at once.")
    ] = None
    udp: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="UDP at this rate during the transfers, in the same direction."),
    ] = None
    lasts: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="How long each transfer lasts. Default: 10 s."),
    ] = None
    cycles: Annotated[
        int | None,
        typer.Option(min=1, help="How many cycles; a larger number extends the campaign in --out."),
    ] = None

    @property
    def given(self) -> str:
        """The first option that describes a part of a scenario; empty: none."""
        reported = {
            "--streams": self.streams,
            "--window": self.window,
            "--congestion-control": self.congestion_control,
            "--way": self.way,
            "--udp": self.udp,
            "--for": self.lasts,
        }
        return next((option for option, value in reported.items() if value is not None), "")

    def sections(self, *, one_way: bool = False) -> dict[str, object]:
        """The sections `traffic`, `campaign` and `study` that they describe: pings alone, then with the
        transfers; with `one_way` test packets besides the pings."""
        ways = {"up": (_NEAR, _FAR), "down": (_FAR, _NEAR)}
        running = [name for name in ways if self.way in (name, "both") or (self.way is None and name == "up")]
        control = _several(self.congestion_control or "cubic")
        streams, windows = _several(self.streams or "1"), _several(self.window)
        traffic: dict[str, object] = {}
        for name in running:
            start, end = ways[name]
            transport = {"kind": "tcp", "congestion_control": {"kind": control[0]}}
            traffic[name] = {
                "from": start,
                "to": end,
                "streams": streams[0],
                "source": {"kind": "bulk"},
                "transport": transport | ({"window": windows[0]} if windows else {}),
            }
            if self.udp is not None:
                source = {"kind": "constant", "rate": rate_text(self.udp), "payload": _UDP_PAYLOAD}
                udp = {"from": start, "to": end, "source": source, "transport": {"kind": "udp"}}
                traffic[f"udp-{name}"] = udp
        lasts = self.lasts or _LASTS
        probes = {"ping": _PING} | ({"stamp": _STAMP} if one_way else {})
        cycle = [
            {"name": "unloaded", "run": [*probes], "for": lasts},
            {"name": "loaded", "run": [*traffic, *probes], "for": lasts},
        ]
        factors = {
            factor: {value: {f"traffic.{name}.{path}": value for name in running} for value in values}
            for factor, path, values in (
                ("streams", "streams", streams),
                ("window", "transport.window", windows),
                ("congestion-control", "transport.congestion_control.kind", control),
            )
            if len(values) > 1
        }
        return {
            "traffic": {**traffic, **probes},
            "campaign": {"cycles": self.cycles or 1, "cycle": cycle},
            **({"study": {"factors": factors}} if factors else {}),
        }

    def over(self, link: Link, sets: Mapping[str, object]) -> Scenario:
        """The campaign over an emulated path. Raises ScenarioError, in which the places are options."""
        one_way = sets.get("testbed.kind", "netns") == "netns"
        return link.scenario(sets, {"name": "bulk", **self.sections(one_way=one_way)}, _option)

    def to(self, bed: Mapping[str, object], sets: Mapping[str, object]) -> Scenario:
        """The campaign to a real host. Raises ScenarioError, in which the places are options."""
        return from_words({"name": "bulk", "testbed": bed, **self.sections()}, sets, _option)


def _option(path: str) -> str:
    """The option in which a part of these sections stands; other paths as they are."""
    match path.split("."):
        case ["traffic", "up" | "down", "streams", *_]:
            return "--streams"
        case ["traffic", "up" | "down", "transport", "window", *_]:
            return "--window"
        case ["traffic", "up" | "down", "transport", "congestion_control", *_]:
            return "--congestion-control"
        case ["traffic", "udp-up" | "udp-down", *_]:
            return "--udp"
        case ["campaign", "cycle", *_]:
            return "--for"
        case ["study", "factors", factor, *_]:
            return f"--{factor}"
    return path


def _several(text: str | None) -> list[str]:
    return [] if text is None else [value.strip() for value in text.split(",") if value.strip()] or [text]


def host_of(word: str) -> dict[str, object] | None:
    """The section `testbed` for a word that names a host and no scenario; None for a file or a ready-made
    scenario.

    With a user or as a URL of ssh, OpenSSH starts iperf3 there; else a server of iperf3 has to run there. A
    name of one word is a scenario's, unless it has a port.
    """
    from weirlab.scenario.file.ready import ready_made

    if word.startswith("ssh://"):
        return {"kind": "ssh", "far": word}
    if Path(word).exists() or word in ready_made() or Path(word).suffix in (".yaml", ".yml") or "/" in word:
        return None
    if "@" in word:
        return {"kind": "ssh", "far": word}
    host, port = _parted(word)
    if not port and "." not in host and ":" not in host and host != "localhost":
        return None
    return {"kind": "iperf3", "server": host, **({"port": port} if port else {})}


def _parted(word: str) -> tuple[str, str]:
    """Host and port; addresses of IPv6 with a port are in brackets."""
    try:
        return str(ipaddress.ip_address(word.strip("[]"))), ""
    except ValueError:
        host, _, port = word.rpartition(":")
        return (host.strip("[]"), port) if host else (word, "")


def host_words(plan: Plan) -> str:
    """Where a campaign between real hosts goes, in a line for people."""
    from weirlab.campaigns.real import ports_and_commands
    from weirlab.scenario.testbeds import Iperf3, Ssh

    bed = plan.scenario.testbed
    if isinstance(bed, Ssh):
        return f"to {bed.far}, where ssh starts iperf3"
    assert isinstance(bed, Iperf3)
    ports, commands = ports_and_commands(bed.port, plan.servers)
    return f"to {bed.server}, {ports}, where {commands} {'has' if plan.servers < 2 else 'have'} to run"
