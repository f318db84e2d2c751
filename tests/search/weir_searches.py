"""Searches of the controller `weir`, for tests."""

from __future__ import annotations

from weirlab.searches import ControlledSearch, LoadRange, SearchGoal
from weirlab.searches.goals import preset
from weirlab.searches.weir import Weir
from weirlab.testbed.devices import (
    Device,
)
from weirlab.testbed.sim import DeviceTestbed

LOADS = LoadRange(2e4, 29.76e6)
NDR = SearchGoal.ndr(duration_s=10.0)
PDR = SearchGoal.pdr(duration_s=10.0)
CSIT = [preset("csit-ndr"), preset("csit-pdr")]


def searched(device: Device, goals=(NDR, PDR), *, seed: int = 1, **options) -> ControlledSearch:
    search = ControlledSearch(Weir(goals, LOADS, **options), frame_size_bytes=64)
    bed = DeviceTestbed(device, seed=seed, overhead_s=0.43)
    while (spec := search.ask()) is not None:
        assert len(search.trials) < 3000
        search.tell(bed.trial(spec))
    return search
