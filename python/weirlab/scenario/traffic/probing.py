"""Estimators that send trains of packets of their own: pathload and PBProbe."""

from __future__ import annotations

from typing import Literal

from weirlab.fields.base import Model
from weirlab.fields.values import Count, PositiveFraction, PositiveRate, PositiveSize, PositiveSpan
from weirlab.units import Size, Span


class Probing(Model):
    """What the estimators share."""

    payload: PositiveSize = Size(1472)
    """Of the longest packets; the frame is 46 B longer."""
    measurements: Count | None = None
    """How many measurements are made. Absent: as many as time allows."""


class Pathload(Probing):
    """The range of the available bandwidth, by streams of constant rates: those above it see their delays
    grow (Jain and Dovrolis; as pathload 1.3.2)."""

    kind: Literal["pathload"]
    packets: Count = 100
    """Of a stream."""
    streams: Count = 12
    """Of a fleet, all at one rate."""
    gap: PositiveSpan = Span(80 * 10**6)
    """Between packets of slow streams, which are shorter. Faster ones have long packets and shorter gaps."""
    share: PositiveFraction = 0.1
    """Of the time that streams fill on average."""
    resolution: PositiveRate | None = None
    """Width of the range at which a search ends. Absent: 2 % of the rate at which a train back to back
    arrives."""
    most_rate: PositiveRate | None = None
    """The greatest rate tried. Absent: the line rate."""
    batch: Span = Span(7 * 10**6)
    """Packets that arrive closer together were held by the receiver: only the last one counts."""
    stamps: Span = Span(10**6)
    """Unit of the stamps: delays that differ by less are the same."""


class PbProbe(Probing):
    """The capacity of the slowest link, by bulks of packets back to back, taken from the one that waited
    least (Chen et al.; as PBProbe 3.0)."""

    kind: Literal["pbprobe"]
    bulks: Count = 200
    """Of a measurement, at most."""
    stable: Count = 40
    """A measurement ends when the minimum delay has not changed for this many bulks."""
    dispersion: PositiveSpan = Span(10**9)
    """Bulks grow until they last so long."""
    share: PositiveFraction = 0.05
    """Of the capacity that bulks may take."""
