"""The plan of a study of searches: every search follows from the scenario and its number, in any process."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from weirlab.documents import section
from weirlab.errors import RunFailed
from weirlab.execution import Watch
from weirlab.execution.batches import digest
from weirlab.scenario import Scenario
from weirlab.scenario.loading import loads
from weirlab.searches.base import Ending
from weirlab.searches.build import build
from weirlab.searches.log import TrialLog, trial_from_json, trial_to_json
from weirlab.searches.points import PointSearch, point_searches
from weirlab.searches.runner import Progress, run_search
from weirlab.store import Row, Store
from weirlab.testbed import open_testbed


def plan_of(document: Mapping[str, object]) -> SearchesPlan:
    """The plan that a document describes."""
    return SearchesPlan(loads(str(document["scenario"]), file="the plan"))


class SearchesPlan:
    """The searches of a study, each with all its trials, on the simulator."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.searches = point_searches(scenario)
        assert scenario.study is not None, "point_searches refuses it"
        self.replicates = scenario.study.replicates
        self.order = np.arange(len(self.searches) // self.replicates)

    def document(self) -> dict[str, object]:
        """See `weirlab.execution.Plan`."""
        scenario = self.scenario.as_written(movable=True)
        return {"kind": "searches", "name": self.scenario.name, "scenario": scenario}

    def lists_impossible(self) -> bool:
        """See `weirlab.execution.Plan`."""
        return False

    def point(self, number: int) -> _Point:
        """See `weirlab.execution.Plan`."""
        first = number * self.replicates
        return _Point(number, self.searches[first : first + self.replicates])

    def write_logs(self, store: Store, name: str, directory: Path) -> None:
        """Write the trials that a store has under the `name` of this plan as the logs of its searches, from
        which each goes on, in directories of their own under `directory`. Logs that are there stay."""
        rows = store.rows(plan=name, columns=["point", "replicate", "status", "document"])
        for point, replicate, status, document in rows.iter_rows():
            search = self.searches[point * self.replicates + replicate]
            path = directory / search.name / "trials.jsonl"
            if status != "ok" or path.exists():
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            about = {"scenario": search.scenario.dump()}
            with TrialLog(path, build(search.scenario).settings(), about) as log:
                for trial in json.loads(document)["trials"]:
                    log.append(trial_from_json(trial))


class _Point:
    """The searches of a point that are about to be made."""

    def __init__(self, number: int, searches: Sequence[PointSearch]) -> None:
        self._number = number
        self._searches = searches

    @functools.cached_property
    def _key(self) -> str:
        dump = self._searches[0].scenario.dump()
        asked = {name: part for name, part in dump.items() if name not in ("name", "description")}
        asked["run"] = {name: part for name, part in section(asked, "run").items() if name != "seed"}
        return digest("search", json.dumps(asked, sort_keys=True))

    def key(self, replicate: int) -> tuple[str, int]:
        """See `weirlab.execution.Point`."""
        return self._key, self._searches[replicate].scenario.run.seed

    def run(self, replicates: Sequence[int], watch: Watch) -> list[Row]:
        """See `weirlab.execution.Point`."""
        return [self._row(replicate, watch) for replicate in replicates]

    def _row(self, replicate: int, watch: Watch) -> Row:
        scenario = self._searches[replicate].scenario
        limit = None if scenario.search is None else scenario.search.timeout

        def on_progress(progress: Progress) -> None:
            left = progress.time_left_s
            share = 0.0 if not left else progress.time_used_s / (progress.time_used_s + left)
            watch(round(1000 * share), 1000)

        testbed = open_testbed(scenario)
        try:
            found = run_search(
                build(scenario),
                testbed,
                on_progress=on_progress,
                timeout_s=None if limit is None else limit.s,
            )
        finally:
            testbed.close()
        if found.ending is Ending.INTERRUPTED:
            raise KeyboardInterrupt
        if found.ending is Ending.TESTBED_FAILED:
            raise RunFailed(found.message)
        document = {"trials": [trial_to_json(trial) for trial in found.trials]}
        key, seed = self.key(replicate)
        return Row(
            point=self._number,
            replicate=replicate,
            seed=seed,
            key=key,
            document=json.dumps(document, sort_keys=True, separators=(",", ":")),
        )
