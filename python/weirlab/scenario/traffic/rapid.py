"""Rapid: probe streams, estimators of the available bandwidth, and how the rate follows them."""

from __future__ import annotations

from typing import Annotated, Literal

from weirlab.fields import values
from weirlab.fields.base import BY_KIND, Model
from weirlab.units import Rate, Span


class GapEstimator(Model):
    """The rate before the first run of gaps that grow on the way. As version 0.9.2 had it."""

    kind: Literal["gap"]
    epsilon: Span
    """Growth of a gap that counts as congestion."""
    excursion: values.Count = 4
    """Gaps in a row that must grow."""
    sum: values.Count = 1
    """Gaps that are added up before they are compared."""
    scheduled: values.Flag = False
    """Whether the rate is the requested one, and not the one at which packets left."""


class SmoothEstimator(Model):
    """The rate before the run of smoothed gaps that grow up to the end of the stream."""

    kind: Literal["smooth"]
    weight: values.Fraction = 0.875
    """Of what came before, in the exponential mean."""
    epsilon: Span = Span(10**6)
    """Growth of a gap that counts as congestion."""
    excursion: values.Count = 4
    """Gaps in a row that must grow."""


class ChirpEstimator(Model):
    """Excursions of the queueing delay, weighted by their time (pathChirp)."""

    kind: Literal["chirp"]
    factor: values.Number = 1.5
    """An excursion ends when the delay has fallen to this part of its maximum."""
    excursion: values.Count = 5
    """Packets of an excursion that counts."""


class TrendEstimator(Model):
    """The rate from which on the queueing delay only grows."""

    kind: Literal["trend"]
    tolerance: Span = Span(15 * 10**6)
    """Delays that differ by less are the same."""
    tolerance_gaps: values.Number = 1.5
    """The same as a multiple of the shortest gap; the larger one counts."""


class FluidEstimator(Model):
    """The available bandwidth with which a queue of the bottleneck's rate would have delayed the packets as
    they were: least squares over all of them."""

    kind: Literal["fluid"]
    bottleneck: values.PositiveRate | None = None
    """Rate of the narrowest link of the path. Absent: that of the sender's own link."""


AnyEstimator = Annotated[
    GapEstimator | SmoothEstimator | ChirpEstimator | TrendEstimator | FluidEstimator, BY_KIND
]


class NoDenoising(Model):
    """Arrivals are taken as they are."""

    kind: Literal["none"]


class Spikes(Model):
    """Gaps are averaged from one spike to the next (BASS)."""

    kind: Literal["spikes"]
    rise: Span = Span(30 * 10**6)
    """By how much a spike exceeds the gap before."""
    fall: Span = Span(20 * 10**6)
    """By how much it exceeds the gap behind."""


class Batches(Model):
    """Of packets that arrive almost at once only the last one is kept: it was held the least."""

    kind: Literal["batches"]
    within: values.PositiveSpan
    """What is almost at once: less than the time of a packet on the narrowest link of the way."""


AnyDenoising = Annotated[NoDenoising | Spikes | Batches, BY_KIND]


class Backlog(Model):
    """A queue that the sender keeps at the bottleneck, so that this never runs dry."""

    target: values.PositiveSpan
    """Queueing delay that is aimed at."""
    within: values.PositiveSpan
    """What differs from it is to be made up for in this time."""
    elasticity: values.Number = 0.0
    """The target grows by (greatest rate / own rate) to this power, so that senders that share a queue come
    to the same rate. 0: it is the same for all."""


class Rapid(Model):
    """Rapid: all packets leave in probe streams, whose rates grow exponentially about the mean rate (Konda
    and Kaur, INFOCOM 2009)."""

    kind: Literal["rapid"]
    n: values.Count
    """Packets of a stream."""
    rho: values.Number
    """The highest rate of a stream, as a multiple of its lowest one."""
    rates: values.Count | None = None
    """Number of rates, each for as many packets. Absent: each packet has its own."""
    clip: values.Flag = True
    """Whether no rate exceeds the line rate; the others are lowered so that the mean stays."""
    schedule: Literal["absolute", "resync"] = "absolute"
    """The next packet is due a gap after the last one was due (`absolute`), or was sent (`resync`)."""
    estimator: AnyEstimator
    """How the available bandwidth is estimated from the gaps."""
    denoising: AnyDenoising = NoDenoising(kind="none")
    """What is done about arrivals that the receiver has gathered."""
    tau: values.PositiveSpan = Span(200 * 10**9)
    """Time constant of growth."""
    eta: values.Number = 3.0
    """A shortfall is taken by 1 / eta with each stream."""
    beta: values.PositiveFraction = 0.5
    """What is left of the rate after a loss."""
    initial_rate: values.PositiveRate = Rate(8_000_000)
    """Mean rate at the start, preamble and gap of the frames included, as all rates here."""
    least_rate: values.PositiveRate = Rate(1_000_000)
    """Bound of the mean rate."""
    most_rate: values.PositiveRate | None = None
    """Bound of the mean rate and of the estimates. Absent: the line rate."""
    start: values.Count | None = None
    """Packets of the streams of a start in which the rate doubles. Absent: it grows like later."""
    backlog: Backlog | None = None
    """The queue to keep. Absent: none is looked at."""
    repair_rate: values.PositiveRate | None = None
    """Rate of frames while losses are repaired. Absent: as the window lets them."""
    stamps: values.PositiveSpan = Span(1_000)
    """Unit in which the receiver reports arrival times."""
