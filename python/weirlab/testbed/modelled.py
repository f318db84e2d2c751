"""Devices of the simulator out of their models in scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirlab.scenario import testbeds as models
from weirlab.testbed import devices

if TYPE_CHECKING:
    from weirlab.scenario.testbeds import AnyDevice
    from weirlab.testbed.devices import Device


def device_of(model: AnyDevice) -> Device:
    """The device that a scenario describes."""
    match model:
        case models.Knee():
            return devices.Knee(
                capacity_fps=model.capacity.fps, run_spread=model.run_spread, trial_spread=model.trial_spread
            )
        case models.Ip4Published():
            return devices.Ip4Published(
                capacity_fps=model.capacity.fps,
                run_spread=model.run_spread,
                trial_spread=model.trial_spread,
                burst_every_s=model.burst_every.s,
                burst_fold=model.burst_fold,
                burst_frames=model.burst_frames,
                overload_cost=model.overload_cost,
            )
        case models.VhostPublished():
            return devices.VhostPublished(
                pdr_knee_fps=model.pdr_knee.fps,
                pdr_knee_spread_fps=model.pdr_knee_spread.fps,
                trial_spread=model.trial_spread,
                ndr_knee_fps=model.ndr_knee.fps,
                ndr_knee_spread_fps=model.ndr_knee_spread.fps,
                shared_spread=model.shared_spread,
                burst_every_s=model.burst_every.s,
                burst_fold_fps=model.burst_fold.fps,
                burst_frames=model.burst_frames,
                overload_low=model.overload_low,
                overload_high=model.overload_high,
            )
        case models.RandomDrops():
            return devices.RandomDrops(capacity_fps=model.capacity.fps, drop_every_s=model.drop_every.s)
        case models.Gradual():
            return devices.Gradual(
                capacity_fps=model.capacity.fps,
                onset_fps=model.onset.fps,
                loss_at_capacity=model.loss_at_capacity,
            )
        case models.DeepBuffer():
            return devices.DeepBuffer(capacity_fps=model.capacity.fps, buffer_frames=model.buffer.count)
        case models.Inversion():
            return devices.Inversion(
                capacity_fps=model.capacity.fps,
                run_spread=model.run_spread,
                trial_spread=model.trial_spread,
                band_low=model.band_low,
                band_high=model.band_high,
                band_loss=model.band_loss,
            )
        case models.RegimeSwitch():
            return devices.RegimeSwitch(
                capacity_fps=model.capacity.fps,
                run_spread=model.run_spread,
                deficit=model.deficit,
                high_s=model.high.s,
                low_s=model.low.s,
            )
        case models.WarmUp():
            return devices.WarmUp(
                capacity_fps=model.capacity.fps,
                deficit=model.deficit,
                time_constant_s=model.time_constant.s,
            )
