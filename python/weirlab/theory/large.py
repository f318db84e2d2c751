"""Large signals of BCN in a shared-memory switch: where the linear loop is stable, and yet all goes wrong.

Two limits bound the region in which BCN works. Below the first, feedback is too weak: the frames for the hot
output have filled the memory, PAUSE holds everybody to the rate of that output, and the limiters take too
long to come down. Above the second, feedback is too strong: one message takes a flow to the floor, and the
hot output waits, unused, for the messages that would raise the flows again.

Slots for seconds, frames per slot for rates (or any other pair).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from weirlab.theory.bcn import BcnPoint


@dataclass(frozen=True)
class SharedMemory:
    """What the memory of the switch lets a hotspot do."""

    high_frames: float
    """Level at which PAUSE stops all inputs."""
    arrivals_fps: float
    """Lambda: rate at which frames for the hot output come while nothing stops them."""


def high_watermark(memory_frames: int, ports: int, round_trip_slots: int, *, longest_frames: int = 1) -> int:
    """Th = M - N (RTT B + Lmax): what is on the way when PAUSE is sent still fits.

    B is the line rate, one frame a slot: read as the mean burst, Th would turn negative.
    Source: ZRL benchmark, 'Switch'.
    """
    return memory_frames - ports * (round_trip_slots + longest_frames)


def escape_time(point: BcnPoint, memory: SharedMemory) -> float:
    """How long PAUSE rules from the start of a hotspot on; 0 where it never does.

    While the queue is above its set point each message is worth Qeq (its offset is clamped there, and the
    changes of the queue between samples cancel over a cycle of PAUSE), so a flow passes from the line rate
    to its fair rate in k = ln(line / fair) / -ln(1 - Gd Qeq) messages, or in 1 where Gd Qeq >= 1 - fair /
    line. All N flows need N k messages, that is A = N k / p frames for the hot output. Of these the memory
    takes Th beyond what is served: Th + mu t by the time t. Hence t = (A - Th) / mu; and if the A frames
    arrive before the memory is full, PAUSE is not needed. The spread of messages over flows is neglected.
    """
    needed = _needed_frames(point)
    if needed * (1 - point.service_fps / memory.arrivals_fps) <= memory.high_frames:
        return 0.0
    return (needed - memory.high_frames) / point.service_fps


def escape_ratio(point: BcnPoint, memory: SharedMemory, until_s: float) -> float:
    """Frames for the hot output that are needed before PAUSE ends, over those that there are room and time
    for until `until_s` after the start of a hotspot; below 1 no PAUSE rules then. See `escape_time`."""
    needed = _needed_frames(point)
    growing = 1 - point.service_fps / memory.arrivals_fps
    served = memory.high_frames + point.service_fps * until_s
    return min(needed * growing / memory.high_frames, needed / served)


def _needed_frames(point: BcnPoint) -> float:
    """A: frames that are sampled often enough to bring all flows down to their fair rates."""
    cuts = _cuts(point.gd * point.q_eq_frames, point.fair_fps / point.line_fps)
    return point.flows * cuts / point.sampling


def _cuts(cut: float, ratio: float) -> float:
    """Messages that take a rate to `ratio` of what it was, when each takes off the part `cut`."""
    if cut >= 1 - ratio:
        return 1.0
    return math.log(ratio) / math.log1p(-cut) if cut > 0 else math.inf


def starvation_gain(point: BcnPoint, memory: SharedMemory) -> float:
    """The decrease gain at which a single message takes a flow from its fair rate to the floor, Ru.

    Between two samples 1/p frames arrive, of which mu/Lambda leave: a sample sees the queue grown by
    (1 - mu/Lambda) / p and answers with w times it, or with the largest feedback if that is less.
    """
    growth = (1 - point.service_fps / memory.arrivals_fps) / point.sampling
    feedback = min(point.w * growth, point.feedback_limit)
    return (1 - point.ru_fps / point.fair_fps) / feedback if feedback > 0 else math.inf


def starvation_sampling(point: BcnPoint) -> float:
    """The sampling probability below which the hot queue, all flows being at the floor, runs empty before the
    next message: p N Ru messages a second against Qeq / (mu - N Ru) seconds of supply. 0 where N Ru >= mu."""
    floor = point.flows * point.ru_fps
    return max(point.service_fps - floor, 0.0) / (floor * point.q_eq_frames)
