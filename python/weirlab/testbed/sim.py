"""The simulated testbed: device models, and whole scenarios as the system under test."""

from __future__ import annotations

import math

from weirlab.testbed.base import Trial, TrialSpec
from weirlab.testbed.devices import Device, Offer

__all__ = ["DeviceTestbed"]


class DeviceTestbed:
    """A tester in front of a device model. A trial takes no real time."""

    def __init__(
        self, device: Device, *, seed: int = 1, overhead_s: float = 0.0, tester_limit_fps: float = math.inf
    ) -> None:
        """Args:
        overhead_s: What a trial takes beyond its duration: waiting for late frames, reading counters. A
        warm-up
            has none, as nothing is read after it.
        tester_limit_fps: Most that the tester can send [frames/s, summed over all directions].
        """
        self._device = device
        self._seed = seed
        self._overhead_s = overhead_s
        self._tester_limit_fps = tester_limit_fps

    def trial(self, spec: TrialSpec) -> Trial:
        """The trial that ``spec`` asks for; the same one for the same ``spec``."""
        intended = spec.intended_frames
        sent = int(min(intended, self._tester_limit_fps * spec.duration_s))
        received = self._device.received_frames(
            Offer(
                frames=sent,
                duration_s=spec.duration_s,
                frame_size_bytes=spec.frame_size_bytes,
                index=spec.index,
                elapsed_s=spec.elapsed_s,
                seed=self._seed,
            )
        )
        overhead_s = 0.0 if spec.purpose == "warm-up" else self._overhead_s
        return Trial(
            spec=spec,
            intended_frames=intended,
            sent_frames=sent,
            received_frames=received,
            effective_duration_s=spec.duration_s + overhead_s,
            offered_load_fps=sent / spec.duration_s,
        )
