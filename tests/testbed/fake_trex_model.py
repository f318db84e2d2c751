"""What `fake_trex` pretends: its time, the device between its ports, its faults, and what its ports send."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class WallClock:
    """The time on the wall."""

    def now(self) -> float:
        return time.monotonic()

    def answering(self) -> None:
        """Answers take what they take."""


class FakeClock:
    """Time that passes only while somebody sleeps, and by ``answer_s`` with each answer of the server: no
    test depends on how busy the machine is. The server and its client must share one."""

    def __init__(self, answer_s: float = 0.001) -> None:
        self._now_s = 0.0
        self._answer_s = answer_s
        self._lock = threading.Lock()

    def now(self) -> float:
        return self._now_s

    def sleep(self, seconds: float) -> None:
        self._pass(max(0.0, seconds))

    def answering(self) -> None:
        """An answer takes its time."""
        self._pass(self._answer_s)

    def _pass(self, seconds: float) -> None:
        with self._lock:
            self._now_s += seconds


@dataclass
class Device:
    """What sits between the ports."""

    capacity_fps: float = 1e18
    """Frames/s that it forwards, over all directions."""
    loss_ratio: float = 0.0
    """What it loses below its capacity."""
    delay_s: float = 0.001


@dataclass
class Faults:
    """What goes wrong. All may be changed while the server runs."""

    counters_late_s: float = 0.0
    """The counters show what they should have shown this long ago."""
    received_late_s: float = 0.0
    """The same for received frames alone."""
    counters_every_s: float = 0.0
    """The counters are renewed only this often."""
    counters_go_back: bool = False
    """They begin at 0 again at each start of traffic, below what was there."""
    extra_frames: int = 0
    """Frames that a port receives in each trial beyond what was sent to it."""
    background_fps: float = 0.0
    """Frames/s that somebody else sends to every port, for ever."""
    unsent_ratio: float = 0.0
    """Share of the frames that are not sent."""
    most_fps: float = 1e18
    """Most that a port can send."""
    receive_error_ratio: float = 0.0
    """Share of the frames that reach a port and that it counts as errors instead."""
    ends_late_s: float = 0.0
    """A port stops by itself this much later than it was told to."""
    silent_to: str = ""
    """This method is not answered ..."""
    silent_times: int = 1 << 30
    """... this many times."""
    dies_after_start_s: float = 0.0
    """Above 0: nothing is answered from this long after traffic was started, for good."""
    answer_after_s: float = 0.0
    """Every answer takes this much longer, on the wall."""
    garbage_to: str = ""
    """This method is answered with ``garbage``."""
    garbage: bytes = b"\x00\xff not json"
    wrong_id: bool = False
    try_again: int = 0
    """How many times the status of a port is 'try again'."""
    api_version: tuple[int, int] = (5, 1)
    mode: str = "STL"
    knows_api_sync_v2: bool = True
    owner: str = ""
    """Who has the ports already."""
    link_up: bool = True
    resolved: bool = True
    """Whether ports know the MAC address that they send to."""
    service: bool = False
    replies_as_list: bool = True
    """A single call is answered by a list of one, as the sources of the real server do; or by an object."""


@dataclass
class Segment:
    """Frames of one stream that leave a port at a constant rate for a time."""

    port: int
    begin_s: float
    end_s: float
    rate_fps: float
    group: int | None
    is_latency: bool
    share: float | None = None
    """How much of it the device forwards; settled when it has ended."""

    def sent(self, at_s: float) -> int:
        seconds = min(at_s, self.end_s) - self.begin_s
        return int(self.rate_fps * seconds + 1e-6) if seconds > 0.0 else 0


@dataclass
class Port:
    """A port with its owner, its state and its streams."""

    index: int
    handler: str = ""
    owner: str = ""
    session_id: int = 0
    state: str = "IDLE"
    ends_s: float = 0.0
    promiscuous: bool = False
    streams: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    extra: int = 0
    base_sent: int = 0
    """Subtracted from what was sent, to let counters go back."""
