"""What a run writes down besides its totals."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weirlab.scenario.base import BY_FIELD, Model, PortSelector, Selector, TrafficSelector
from weirlab.scenario.values import PositiveSpan

__all__ = [
    "AnyRecord",
    "DelayRecord",
    "FlowRecord",
    "FrameRecord",
    "LimiterRecord",
    "PStreamRecord",
    "QueueRecord",
]


class QueueRecord(Model):
    """Table `intervals`: queue, throughput and drops of ports."""

    queue: PortSelector
    """The ports."""
    every: PositiveSpan
    """Length of an interval."""


class FlowRecord(Model):
    """Table `deliveries`: what arrived, over time."""

    flow: TrafficSelector
    """Names of traffic, or globs of them."""
    every: PositiveSpan
    """Length of an interval."""
    by: Literal["traffic", "flow"] = "traffic"
    """`traffic`: one series for all its flows together; `flow`: one for each."""


class DelayRecord(Model):
    """Table `delays`: the distribution of the one-way delay of each flow."""

    delays: TrafficSelector
    """Names of traffic, or globs of them."""


class LimiterRecord(Model):
    """Table `limiters`: the rate of rate limiters over time."""

    limiter: Selector
    """The hosts."""
    every: PositiveSpan
    """Length of an interval."""


class PStreamRecord(Model):
    """Table `p_streams`: probing packet groups one by one."""

    p_streams: TrafficSelector
    """Names of traffic, or globs of them."""


class FrameRecord(Model):
    """The frames themselves, as a capture file."""

    frames: PortSelector
    """The ports."""
    as_: Literal["pcapng"] = Field(alias="as")
    """Format of the file."""


AnyRecord = Annotated[
    QueueRecord | FlowRecord | DelayRecord | LimiterRecord | PStreamRecord | FrameRecord, BY_FIELD
]
