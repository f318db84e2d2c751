"""Hotspots: outputs that are asked for more than they serve, in the words of the ZRL congestion benchmark."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weirlab.fields.base import BY_KIND, Model, Name, Selector
from weirlab.fields.values import Flag, Number, PositiveFraction, PositiveSize, Window

SeverityClass = Literal["mild", "moderate", "severe"]


class Hotspot(Model):
    """What both types share."""

    at: Name = Field(examples=["host-0"])
    """The host whose port of its switch is hot."""
    severity: Number | None = None
    """HSV: the load offered to the hot output, divided by what it serves. Either this or the fields that
    determine it."""
    degree: PositiveFraction | None = None
    """HSD: the share of hosts that create the hotspot; the first ones, in the order of the network. Either
    this or a list."""
    window: Window | None = None
    """From when until when. Absent: the whole run."""
    called: SeverityClass | None = None
    """What the source of the scenario calls it; a note appears if that contradicts its own classes."""


class OutputGenerated(Hotspot):
    """An output that serves less than the line rate."""

    kind: Literal["output-generated"]
    service: PositiveFraction | None = None
    """What it serves, as a share of the line rate. Absent: follows from `severity`."""
    sources: Selector | None = None
    """Hosts that send to it; the others spread their uniform traffic over the rest, all through the
    run. Absent: those of `degree`, or all."""


class HotFlow(Model):
    """A part of the hot flow matrix."""

    from_: Selector = Field(alias="from")
    """Hosts that send to the hotspot."""
    load: PositiveFraction = 1.0
    """How much, as a share of their line rate."""


class InputGenerated(Hotspot):
    """Hosts that all send to one output."""

    kind: Literal["input-generated"]
    flows: tuple[HotFlow, ...] | None = None
    """The hot flow matrix. Absent: the hosts of `degree`, with the load that gives `severity`, or all that
    they can."""
    own: Flag = False
    """Whether the host at the hotspot may be among the hosts of `degree`."""
    mean_burst: Number | None = None
    """Mean burst of the hot traffic, in frames, geometric. Absent: that of the first other traffic that comes
    in bursts, or 1: single frames."""
    starts: Literal["between", "chance"] | None = None
    """How the hot traffic starts: between two bursts, or as at a random time, in a burst or a gap. Absent: as
    the first other traffic that comes in bursts, or `between`."""
    frame_size: PositiveSize | None = None
    """Of the hot traffic. Absent: that of the first other traffic."""
    background: Literal["stops", "continues"] = "stops"
    """What becomes of the other traffic of the hot hosts meanwhile."""


AnyHotspot = Annotated[OutputGenerated | InputGenerated, BY_KIND]
