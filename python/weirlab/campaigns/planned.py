"""A campaign in simulated time as a plan: every measurement follows from the scenario and its number, in any
process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

import numpy as np
from pydantic import TypeAdapter

from weirlab.campaigns.measurement import Measurement
from weirlab.campaigns.plan import Measured, Place, Plan, plan_of as campaign_of
from weirlab.campaigns.simulated import measure_simulated, spec_of
from weirlab.errors import InputError, TestbedError
from weirlab.execution import Watch
from weirlab.execution.batches import digest
from weirlab.scenario import Scenario
from weirlab.scenario.loading import loads
from weirlab.scenario.network.path import PathPlan
from weirlab.scenario.testbeds import Sim
from weirlab.store import Row, Store


def plan_of(document: Mapping[str, object]) -> CampaignPlan:
    """The plan that a document describes."""
    return CampaignPlan(loads(str(document["scenario"]), file="the plan"))


class CampaignPlan:
    """The measurements of a campaign on the simulator, in the order of the campaign."""

    replicates = 1

    def __init__(self, scenario: Scenario) -> None:
        if not isinstance(scenario.testbed, Sim):
            raise InputError(
                f"{scenario.name}: a testbed of the kind '{scenario.testbed.kind}' is measured on this "
                "machine; leave out --on"
            )
        self.scenario = scenario
        self._campaign = campaign_of(scenario)
        self._places: Sequence[Place] = self._campaign.places()
        self.order = np.arange(len(self._places))

    def document(self) -> dict[str, object]:
        """See `weirlab.execution.Plan`."""
        return {"kind": "campaign", "name": self.scenario.name, "scenario": self.scenario.as_written()}

    def lists_impossible(self) -> bool:
        """See `weirlab.execution.Plan`."""
        return False

    def point(self, number: int) -> _Point:
        """See `weirlab.execution.Plan`."""
        bed = self.scenario.testbed
        assert isinstance(bed, Sim)
        return _Point(number, self._campaign, self._places[number], bed.window_factor)

    def measure(self, store: Store, name: str) -> Callable[[Measured, PathPlan | None, int], Measurement]:
        """What gives the measurements that a store has under the `name` of this plan, as if they were made
        now. Raises TestbedError for one that failed."""
        rows = store.rows(plan=name, columns=["point", "replicate", "seed", "status", "reason", "document"])
        found = {seed: row for seed, *row in rows.select("seed", "status", "reason", "document").iter_rows()}
        adapter = TypeAdapter(Measurement)

        def measure(_: Measured, __: PathPlan | None, seed: int) -> Measurement:
            status, reason, document = found[seed]
            if status != "ok":
                raise TestbedError(reason)
            return adapter.validate_json(document)

        return measure


class _Point:
    """A measurement that is about to be made."""

    def __init__(self, number: int, campaign: Plan, place: Place, window_factor: float) -> None:
        self._number = number
        self._what = campaign.measured(place)
        self._path = campaign.paths[place.point]
        self._seed = campaign.seed(place)
        self._window_factor = window_factor

    def key(self, replicate: int) -> tuple[str, int]:  # noqa: ARG002 (each is measured once)
        """See `weirlab.execution.Point`."""
        assert self._path is not None, "only real hosts have none"
        return digest("path", spec_of(self._what, self._path, self._window_factor).json()), self._seed

    def run(self, replicates: Sequence[int], watch: Watch) -> list[Row]:
        """See `weirlab.execution.Point`."""
        found = measure_simulated(self._what, self._path, self._seed, window_factor=self._window_factor)
        watch(1, 1)
        document = json.dumps(asdict(found), separators=(",", ":"))
        return [
            Row(point=self._number, replicate=each, seed=self._seed, document=document) for each in replicates
        ]
