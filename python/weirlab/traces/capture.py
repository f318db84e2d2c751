"""Findings about the capture itself: what makes it doubtful, or what it shows in another way than the wire.

docs/traces.md has a section for each.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from weirlab.traces.directions import ms_text
from weirlab.traces.model import EVIDENCE, KNOWN_LINKS, Finding, Trace

LONGEST_PS = (2**64 - 1) // 4
"""Time that is distinguished from the first frame on."""
_BACKWARD = 0.001
"""Share of frames whose stamps may go back."""
_NEAR_BACK_PS = 1e7
"""Stamps that go back by less are those of two processors: 10 us are shorter than most frames are long."""
_FAR_BACK_PS = 1e12
"""Stamps that go back by so much are those of another file, or of another clock."""
_MANY, _SHARE, _APART_PS = 10, 0.5, 2e8
"""Copies of a direction, their share of its packets, and the time to them by which it was captured twice, at
different points: a mirror port or a switch makes copies within microseconds."""
_SENT_AGAIN = 0.4
"""Share of a direction sent again that shows, with such copies, of those that are not known as copies."""
_LOOP = 3
"""So many numbers of hops left show a loop; two captures that were merged into one interface have two."""
_ETHERTYPES = {
    0x8847: "MPLS without IP in it",
    0x8864: "PPPoE without IP in it",
    0x88E5: "MACsec",
    0x8914: "FCoE initialization",
    0x8906: "FCoE",
    0x893A: "IEEE 1905",
    0x894F: "network service header",
    0x8926: "VN-Tag",
    0x8903: "FabricPath",
    0x22F3: "TRILL",
}
_TUNNELS = {
    4: "IP in IP",
    41: "IPv6 in IP",
    47: "GRE",
    50: "ESP (encrypted)",
    51: "AH",
    94: "IP in IP",
    97: "Ethernet in IP",
    108: "compressed payload",
    115: "L2TP",
}
"""IP protocols that carry packets, as far as these were not looked into."""
_TUNNEL_PORTS = {
    "1194": "OpenVPN (UDP 1194)",
    "1701": "L2TP (UDP 1701)",
    "2152": "GTP-U (UDP 2152)",
    "3544": "Teredo (UDP 3544)",
    "4500": "ESP in UDP 4500 (encrypted)",
    "4789": "VXLAN without IP in it (UDP 4789)",
    "4790": "VXLAN-GPE (UDP 4790)",
    "6081": "Geneve without IP in it (UDP 6081)",
    "51820": "WireGuard (UDP 51820)",
}
_ONE_WAY = 10
"""Packets of one direction without any of the other that show that it was not captured: a SYN without an
answer shows nothing."""


def capture_findings(trace: Trace) -> Iterator[Finding]:
    """What makes the trace itself doubtful."""
    facts = trace.facts
    if facts["ending"] != "whole":
        yield Finding(
            "capture-not-whole",
            "notice",
            "The file ends early",
            f"{facts['ending']}; {facts['frames']:,} frames before it were read.",
        )
    yield from _not_understood(trace)
    if facts["unstamped_frames"]:
        yield Finding(
            "capture-without-stamps",
            "problem",
            "Frames have no stamps",
            f"{facts['unstamped_frames']:,} of {facts['frames']:,} frames stand in simple packet blocks, "
            "which have no room for a time: rates, round trips and gaps are worth nothing, counts hold.",
            values={"unstamped_frames": float(facts["unstamped_frames"])},
        )
    if facts["end_ps"] >= LONGEST_PS:
        yield Finding(
            "capture-too-long",
            "problem",
            "Stamps jump ahead",
            f"They reach {LONGEST_PS / 86_400e12:.0f} days and more beyond the first, and later ones are "
            "taken for that: times, rates and round trips there are worth nothing, counts hold. A clock that "
            "was set within the capture does this; 'editcap' of Wireshark cuts off the frames before.",
            values={"end_ps": float(facts["end_ps"])},
        )
    yield from _copies(trace)
    yield from _one_way(trace)
    lost = trace["interfaces"].get_column("lost_frames").sum()
    unseen = trace["flows"].filter(pl.col("packets") > 0).get_column("unseen_bytes").sum()
    if lost or unseen:
        yield Finding(
            "capture-lost-frames",
            "problem",
            "The capture itself lost frames",
            f"The capturing program counted {lost:,} lost frames; {unseen:,} bytes were acknowledged that "
            "the trace does not show. Counts of losses and gaps are too low or too high by as much.",
            values={"lost_frames": float(lost), "unseen_bytes": float(unseen)},
        )
    often = facts["backward_stamps"] > _BACKWARD * facts["frames"]
    if (often and facts["backward_most_ps"] >= _NEAR_BACK_PS) or facts["backward_most_ps"] >= _FAR_BACK_PS:
        yield Finding(
            "capture-out-of-order",
            "notice",
            "Stamps go back",
            f"{facts['backward_stamps']:,} frames have an earlier stamp than the one before, by up to "
            f"{ms_text(facts['backward_most_ps'])}: several interfaces or queues were merged, or files were "
            "put one behind the other. 'reordercap' of Wireshark sorts such a file; packets that both parts "
            "hold are known as the same only then.",
            values={
                "backward_stamps": float(facts["backward_stamps"]),
                "backward_most_ms": facts["backward_most_ps"] / 1e9,
            },
        )
    if facts["untracked_packets"]:
        yield Finding(
            "capture-of-too-many-connections",
            "notice",
            "Not all connections are analysed",
            f"{facts['untracked_packets']:,} packets belong to connections beyond the first "
            f"{trace['flows'].height // 2:,}: they are counted, but their flows are not analysed. "
            "'--connections N' raises the limit.",
            values={"untracked_packets": float(facts["untracked_packets"])},
        )


def _not_understood(trace: Trace) -> Iterator[Finding]:
    """Frames that are not looked into, and headers that were cut off."""
    facts = trace.facts
    parts = []
    if facts["unknown_link_frames"]:
        links = (
            trace["interfaces"]
            .filter(~pl.col("link").is_in(KNOWN_LINKS))
            .get_column("link")
            .unique(maintain_order=True)
        )
        parts.append(f"{facts['unknown_link_frames']:,} of {', '.join(links)}")
    for kind, frames in trace["unknown"].sort("frames", descending=True).head(EVIDENCE).iter_rows():
        name = _ETHERTYPES.get(kind, "unknown")
        parts.append(f"{frames:,} of the Ethernet type {kind:#06x} ({name})")
    for flows, words in opaque(trace):
        packets = trace["flows"].filter(pl.col("flow").is_in(flows)).get_column("packets").sum()
        parts.append(f"{packets:,} of {words}")
    if parts:
        yield Finding(
            "capture-not-understood",
            "notice",
            "Some frames were not looked into",
            f"Of {facts['frames']:,} frames: {'; '.join(parts)}. What they carry is not judged.",
            values={"unknown_link_frames": float(facts["unknown_link_frames"])},
        )
    if words := cut_text(trace):
        yield Finding(
            "capture-cut-short",
            "notice",
            "Headers were cut off",
            f"The capture kept too little: {words}. 'tcpdump -s 128' keeps all headers, tunnels included.",
            values={"headless_packets": float(facts["headless_packets"])},
        )


def cut_text(trace: Trace) -> str:
    """What the length to which frames were cut has cost; empty where it cost nothing."""
    facts = trace.facts
    options = int(trace["flows"].get_column("cut_packets").sum()) - facts["headless_packets"]
    words = []
    if facts["short_frames"]:
        words.append(f"{facts['short_frames']:,} frames without addresses")
    if facts["headless_packets"]:
        words.append(f"{facts['headless_packets']:,} packets without the ports or flags of their transport")
    if options > 0:
        words.append(f"{options:,} segments without all of their options")
    return ", ".join(words)


def opaque(trace: Trace) -> list[tuple[list[int], str]]:
    """Flows that carry what is not looked into, by what they are."""
    flows = trace["flows"].filter(pl.col("packets") > 0)
    found: dict[str, list[int]] = {}
    for row in flows.filter(pl.col("protocol").is_in(list(_TUNNELS))).iter_rows(named=True):
        found.setdefault(_TUNNELS[row["protocol"]], []).append(row["flow"])
    udp = flows.filter(pl.col("protocol") == 17)
    for row in udp.iter_rows(named=True):
        for end in ("from", "to"):
            words = _TUNNEL_PORTS.get(row[end].rsplit(":", 1)[-1])
            if words:
                found.setdefault(words, []).append(row["flow"])
                break
    return [(numbers, words) for words, numbers in found.items()]


def _one_way(trace: Trace) -> Iterator[Finding]:
    """Connections of which one direction is missing."""
    ways = (
        trace["flows"]
        .filter(pl.col("protocol") == 6)
        .group_by("connection")
        .agg(most=pl.col("packets").max(), least=pl.col("packets").min())
    )
    missing = ways.filter((pl.col("least") == 0) & (pl.col("most") >= _ONE_WAY)).height
    if missing:
        yield Finding(
            "capture-of-one-direction",
            "notice",
            "Only one direction was captured",
            f"Of {missing:,} of {ways.height:,} TCP connections packets of one direction alone are here: the "
            "other went another way, or a filter left it out. Without it round trips, windows, flights, "
            "stalls and the ends of recoveries are unknown.",
            values={"connections": float(missing)},
        )


def _loop_text(points: pl.DataFrame) -> str:
    """What it may mean that packets of one direction were seen at one interface at several distances."""
    interfaces = points.with_columns(pl.col("point").str.replace(r", \d+ hops left$", ""))
    most = max(interfaces.group_by("flow", "point").len().get_column("len").to_list())
    if most < _LOOP:
        return ""
    return (
        f" Packets of one direction have {most} different numbers of hops left at one interface: unless as "
        "many captures were merged, a loop between routers brought the same packets past again and again."
    )


def merged_connections(trace: Trace) -> pl.Series:
    """Numbers of connections that one interface shows as they passed several points: none can be judged."""
    flows = trace["flows"]
    late = (pl.col("copies") >= _MANY) & (pl.col("copies_ps") >= _APART_PS * pl.col("copies"))
    merged = flows.filter(late & (pl.col("copies") >= _SHARE * pl.col("packets")))
    if not merged.is_empty():
        again = (pl.col("segments") >= _MANY) & (
            pl.col("retransmitted_segments") >= _SENT_AGAIN * pl.col("segments")
        )
        merged = pl.concat([merged, flows.filter(again)])
    return merged.get_column("connection").unique().sort()


def _copies(trace: Trace) -> Iterator[Finding]:
    """Packets that the trace holds more than once, and segments that it holds as one."""
    flows = trace["flows"]
    points = trace["points"]
    elsewhere = int(flows.get_column("elsewhere_packets").sum())
    if elsewhere:
        judged = points.filter(pl.col("judged") == 1)
        names = ", ".join(judged.get_column("point").unique(maintain_order=True).to_list())
        most = max(points.group_by("flow").len().get_column("len").to_list())
        connections = (points.get_column("flow") // 2).n_unique()
        yield Finding(
            "capture-of-several-points",
            "notice",
            f"Connections were captured at {most} points",
            f"{connections:,} of them, judged near the sender of most data (at {names}); {elsewhere:,} "
            f"packets that were taken at the other points are left out.{_loop_text(points)}",
            values={"elsewhere_packets": float(elsewhere), "connections": float(connections)},
            evidence=points.head(EVIDENCE).to_dicts(),
        )
    copies = int(flows.get_column("copies").sum())
    merged = merged_connections(trace).len()
    if copies:
        advice = (
            " Here they come so late, and are so many, that captures of several points were merged into one "
            "interface: packets that a host joined count as sent again then, and round trips are those of no "
            f"place. Nothing else is said of {merged:,} of the connections; 'mergecap -I none' keeps the "
            "points apart."
        )
        yield Finding(
            "capture-with-copies",
            "problem" if merged else "notice",
            "Packets are in the capture more than once",
            f"{copies:,} packets came again with the same identification and numbers at one interface, or so "
            "soon that nobody can have asked for them: copies of a mirror port, of a file that was merged, "
            f"or of a network that doubles packets. The first counts.{advice if merged else ''}",
            values={"copies": float(copies)},
        )
    joined = flows.filter(pl.col("segments") > pl.col("data_packets"))
    if not joined.is_empty():
        captured, wire = (int(joined.get_column(name).sum()) for name in ("data_packets", "segments"))
        yield Finding(
            "capture-of-joined-segments",
            "notice",
            "The host joined segments",
            f"{captured:,} captured packets with data are about {wire:,} on the wire, which a card "
            "cuts or joins (TSO, GRO). Shares of losses count those on the wire.",
            values={"data_packets": float(captured), "segments": float(wire)},
        )
