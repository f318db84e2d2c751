"""Where a scenario runs or a trial is measured.

`open_testbed` gives the testbed that a scenario names. A new kind of testbed is a module here, a model in
`weirlab.scenario.testbeds`, and a case below.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from weirlab.errors import Problem, UnsupportedError
from weirlab.testbed.base import Testbed, Trial, TrialSpec

if TYPE_CHECKING:
    from weirlab.scenario import Scenario
    from weirlab.scenario.testbeds import AnyDevice
    from weirlab.testbed.devices import Device

__all__ = ["Testbed", "Trial", "TrialSpec", "device_of", "open_testbed", "unhonoured", "warning"]


def open_testbed(scenario: Scenario) -> Testbed:
    """The testbed that ``scenario`` names, ready to run it or to measure its trials. Close it after use.

    Raises:
        UnsupportedError: It cannot honour a part of the scenario; every such part with its place.
        MissingCapability: This machine lacks what it needs.
        InputError: It is set up wrongly: a program that does not exist, say.
    """
    if problems := unhonoured(scenario):
        raise UnsupportedError(problems)
    return _opened(scenario)


def unhonoured(scenario: Scenario) -> list[Problem]:
    """Every part of ``scenario`` that its testbed cannot honour; empty when it can honour all. Nothing is
    opened, and no privilege needed. Of this machine only the program of a `command` is looked for."""
    from weirlab.scenario.testbeds import Command, Iperf3, Netns, Sim, Ssh, Trex
    from weirlab.testbed.refusals import DEVICE, only_the_load

    match scenario.testbed:
        case Sim(device=device) if device is not None:
            return only_the_load(scenario, DEVICE)
        case Sim(on_path=True):
            return [scenario.problem("testbed", "a path is loaded by a campaign, with 'weir bulk'")]
        case Sim():
            from weirlab.scenario.resolve import unsupported

            return list(unsupported(scenario))
        case Netns():
            from weirlab.testbed.netns import refusals as of_a_router

            return of_a_router(scenario)
        case Command():
            from weirlab.testbed.command import refusals as of_a_program

            return of_a_program(scenario)
        case Ssh() | Iperf3():
            return [scenario.problem("testbed", "real hosts are for campaigns, with 'weir bulk'")]
        case Trex():
            from weirlab.testbed.trex import refusals as of_a_server

            return of_a_server(scenario)


def warning(scenario: Scenario) -> str:
    """What speaks against measuring now, as a sentence; empty when nothing does. Takes a quarter of a second
    where the testbed is this machine."""
    from weirlab.scenario.testbeds import Netns
    from weirlab.testbed.account import busy_now

    return busy_now() if isinstance(scenario.testbed, Netns) else ""


def _opened(scenario: Scenario) -> Testbed:
    from weirlab.scenario.testbeds import Command, Iperf3, Netns, Sim, Ssh, Trex
    from weirlab.testbed.mixes import mix_of

    settle_s = 0.0 if scenario.search is None else scenario.search.trial.settle.s
    match scenario.testbed:
        case Sim(device=device) if device is not None:
            from weirlab.testbed.sim import DeviceTestbed

            return DeviceTestbed(
                device_of(device),
                seed=scenario.run.seed,
                overhead_s=device.overhead.s,
                tester_limit_fps=math.inf if device.tester_limit is None else device.tester_limit.fps,
            )
        case Sim():
            from weirlab.testbed.sim import ScenarioTestbed

            return ScenarioTestbed(scenario)
        case Netns(router=router):
            from weirlab.testbed.netns import NetnsTestbed

            return NetnsTestbed(router=router or "linux", settle_s=settle_s, mix=mix_of(scenario))
        case Command(run=run, timeout=timeout):
            from weirlab.testbed.command import CommandTestbed, directory_of

            return CommandTestbed(
                run,
                directory=directory_of(scenario),
                settle_s=settle_s,
                grace_s=timeout.s,
                mix=mix_of(scenario),
            )
        case Ssh() | Iperf3():
            raise AssertionError("refused before it is opened")
        case Trex() as trex:
            from weirlab.testbed.trex import TrexTestbed, settings_of

            return TrexTestbed(settings_of(trex, scenario, settle_s=settle_s))


def device_of(model: AnyDevice) -> Device:
    """The device that a scenario describes."""
    from weirlab.scenario import testbeds as models
    from weirlab.testbed import devices

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
