"""`weirlab.run` and `weirlab.study`: scenarios on the packet-level simulator.

One file: a run and a study of runs share how they begin, go on and end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from weirlab import runs
from weirlab.api.kept import AnyScenario, place_for, scenario_of
from weirlab.api.result import MEMBERS, Result, Shelf
from weirlab.evaluation import Evaluation, evaluated, summaries, summary as measures_json
from weirlab.files import Scratch
from weirlab.records import Parts, save_tables
from weirlab.results import Manifest, Provenance, claimed_directory, write_json
from weirlab.working import followed

if TYPE_CHECKING:
    from weirlab import studies
    from weirlab.analysis.outcome import HotspotOutcome
    from weirlab.comparisons import Paired
    from weirlab.errors import WeirlabError
    from weirlab.execution import Executor, Limits
    from weirlab.plots.style import Plot
    from weirlab.records import Records
    from weirlab.report.page import Block, Page
    from weirlab.scenario import Scenario


class RunResult(Result):
    """A scenario that was executed, once per seed."""

    kind = "run"

    def __init__(
        self,
        found: runs.Run,
        *,
        directory: str | Path | None = None,
        seconds: float | None = None,
        overrides: Mapping[str, str] | None = None,
    ) -> None:
        manifest = Manifest(
            kind="run",
            name=found.scenario.name,
            status="interrupted" if found.remark else "complete",
            remark=found.remark,
            seed=found.seeds[0],
            replicates=len(found.seeds),
            overrides=overrides or {},
            provenance=found.provenance,
        )
        super().__init__(manifest, directory)
        self.run = found
        """The run itself."""
        self.seconds = found.provenance.duration_s if seconds is None else seconds
        """How long the simulation took [s]."""

    @property
    def scenario(self) -> Scenario:
        """What was run."""
        return self.run.scenario

    @property
    def seeds(self) -> tuple[int, ...]:
        """One per replicate."""
        return self.run.seeds

    @property
    def records(self) -> Records:
        """What was recorded: tables with ids, as `tables` has them with names."""
        return self.run.records

    @property
    def provenance(self) -> Provenance:
        """Where, when and with what it was run."""
        return self.run.provenance

    @property
    def captures(self) -> Mapping[str, bytes]:
        """Capture files that the scenario asks for, by name."""
        return self.run.captures

    @cached_property
    def _evaluation(self) -> Evaluation:
        return evaluated(self.records, self.scenario)

    @property
    def measures(self) -> pl.DataFrame:
        """The measures that the scenario asks for: columns `measure replicate value unit`. All values of a
        measure that failed are null; see `faults`."""
        return self._evaluation.values

    @property
    def faults(self) -> dict[str, str]:
        """Why measures failed, such as those of other packages, by name; empty where none did."""
        return self._evaluation.faults

    @property
    def errors(self) -> Mapping[str, WeirlabError]:
        """What they raised."""
        return self._evaluation.errors

    @cached_property
    def tables(self) -> Shelf[pl.DataFrame]:
        """The records, with names next to ids, and `measures`; see `Result.tables`."""
        named = {name: partial(self.records.named, name) for name in self.records}
        return Shelf({"measures": lambda: self.measures, **named})

    @cached_property
    def _outcomes(self) -> list[HotspotOutcome]:
        if not self.scenario.hotspots:
            return []
        from weirlab.analysis.outcome import hotspot_outcomes

        return hotspot_outcomes(self.run)

    @property
    def totals(self) -> dict[str, int | None]:
        """Sums over all replicates; None where the run kept no totals of flows."""
        flows, engine = self.records["flows"], self.records["runs"]
        names = ("sent_frames", "delivered_frames", "dropped_frames", "live_frames")
        kept = self.scenario.run.flows
        return {
            **{name: int(flows.get_column(name).sum()) if kept else None for name in names},
            **{name: int(engine.get_column(name).sum()) for name in ("events", "packet_hops")},
        }

    @property
    def document(self) -> dict[str, object]:
        """What `result.json` holds."""
        document: dict[str, object] = {
            "kind": "run",
            "name": self.name,
            "directory": None if self.directory is None else str(self.directory),
            "seeds": list(self.seeds),
            "seconds": None if self.seconds is None else round(self.seconds, 3),
            "totals": self.totals,
            "measures": measures_json(self.measures),
            "faults": self.faults,
        }
        if self._outcomes:
            from weirlab.analysis.outcome import outcome_json
            from weirlab.report.theory import hotspot_json

            document["hotspots"] = hotspot_json([outcome.facts for outcome in self._outcomes])
            document["outcomes"] = outcome_json(self._outcomes)
        return document

    def _sentences(self) -> Sequence[str]:
        from weirlab.report.run import replicates_told, run_sentences

        said = run_sentences(self.records, kept=self.scenario.run.flows)
        said += replicates_told(self.records, self.measures)
        remarks = [remark for remark in (self.run.remark, *self.faults.values()) if remark]
        return [*said[:1], *(f"{remark[0].upper()}{remark[1:]}." for remark in remarks), *said[1:]]

    def blocks(self) -> list[Block]:
        """Frames by traffic, messages by length, the measures, and what hotspots did."""
        from weirlab.report.page import Text
        from weirlab.report.run import measure_table, sparklines, traffic_table

        blocks: list[Block] = [traffic_table(self.records)] if self.scenario.run.flows else []
        if not self.records["messages"].is_empty():
            from weirlab.plots.messages import by_size
            from weirlab.report.messages import size_table

            blocks.append(size_table(by_size(self.records)))
        blocks += [measure_table(self.measures)] if not self.measures.is_empty() else []
        if self._outcomes:
            from weirlab.report.hotspots import outcome_table
            from weirlab.report.theory import hotspot_table

            blocks.append(hotspot_table([outcome.facts for outcome in self._outcomes]))
            blocks += map(outcome_table, self._outcomes)
        lines = sparklines(self.records)
        return [*blocks, *([Text("\n".join(lines))] if lines else [])]

    def _page(self) -> tuple[Page, list[Plot]]:
        from weirlab.report.run import run_page

        return run_page(self.run, self._manifest, self.directory)

    def _undrawn(self) -> str:
        return "record something over time, such as record: {ports: {queue: '@switches->*', every: 1 ms}}"

    def _save(self, place: Path) -> None:
        try:
            self.run.save(place, overrides=self._manifest.overrides)  # whatever becomes of the measures
            write_json(place / "result.json", {**self.document, "directory": str(place)})
        except BaseException as error:
            if (place / "manifest.json").exists():
                error.add_note(f"the records are kept in {place}")
            raise

    def __repr__(self) -> str:
        return f"<{self.run.text}; {MEMBERS}>"


def run(
    scenario: AnyScenario,
    *,
    assign: Mapping[str, object] | None = None,
    seed: int | None = None,
    replicates: int | None = None,
    threads: int | None = None,
    out: str | Path | None = None,
    overrides: Mapping[str, str] | None = None,
    progress: runs.Progress | None = None,
    judge: runs.Judge | None = None,
) -> RunResult:
    """Execute a scenario on the packet-level simulator, as `weir run` does.

    Records depend on scenario and seeds alone, not on the number of threads or the machine.

    Args:
        scenario: A file, the name of a ready-made scenario, a dict of what a file would hold, or a Scenario.
        assign: Other values at dotted paths, such as `{"run.duration": "5 ms"}`.
        seed: Of the first replicate. Default: that of the scenario.
        replicates: How often to run, each with the next seed. Default: 1.
        threads: How many replicates to run at once. Default: one per CPU that this process may use.
        out: A new or empty directory to keep it in. Default: in memory alone, until it is saved.
        overrides: The changes of a command line, to be noted.
        progress: Called about every 50 ms with how much of how much is done.
        judge: Called after the first replicates with what all of them will need; may raise to stop.

    Raises:
        ScenarioError: The scenario is not legal.
        InputError: It is a search, or a study; or the replicates do not fit into memory.
        Interrupted: Ctrl-C. Replicates that had ended are kept in `out`, or are `error.run`.
        UnsupportedError: The simulator cannot honour a part of it.
        RunFailed: Frames were lost or made out of nothing, or a quantity overflowed.
    """
    began = time.monotonic()
    asked = scenario_of(scenario, assign)
    place = None if out is None or asked.search or asked.study else Path(out)
    with (
        nullcontext() if place is None else claimed_directory(asked.name, place),
        nullcontext(progress) if place is None else followed(place, "run", asked.name, progress) as progress,
    ):
        try:
            found = runs.run(
                asked,
                seed=seed,
                replicates=replicates,
                threads=threads,
                progress=progress,
                judge=judge,
                parts=Parts(None if place is None else place / "tables"),
            )
        except runs.RunInterrupted as interruption:
            if out is not None:
                result = RunResult(interruption.run, seconds=time.monotonic() - began, overrides=overrides)
                kept = result._keep(Path(out))
                interruption.args = (f"{interruption}; they are kept in {kept}",)
            raise
        result = RunResult(found, seconds=time.monotonic() - began, overrides=overrides)
        if out is not None:
            result._keep(Path(out))
    return result


class StudyResult(Result):
    """A scenario at every combination of the levels of its factors."""

    kind = "study"

    def __init__(
        self,
        found: studies.Study,
        directory: Path,
        *,
        seconds: float | None = None,
        kept: Scratch | None = None,
    ) -> None:
        super().__init__(Manifest.read(directory), directory, kept=kept)
        self.study = found
        """The study itself."""
        self.seconds = seconds
        """How long this sitting took [s]; None of a study that was read."""

    @property
    def scenario(self) -> Scenario:
        """What was run."""
        return self.study.scenario

    @property
    def seeds(self) -> tuple[int, ...]:
        """One per replicate, the same for all points."""
        return self.study.seeds

    @property
    def manifest_remark(self) -> str:
        """How the study ended, where that was not well."""
        return self._manifest.remark

    @property
    def points(self) -> pl.DataFrame:
        """Columns `point` and one per factor, with the names of the levels."""
        return self.study.points

    @property
    def measures(self) -> pl.DataFrame:
        """Columns `point measure replicate value unit`."""
        return self.study.measures

    @cached_property
    def sensitivity(self) -> pl.DataFrame | None:
        """How much each parameter of a design matters; None where the study has none."""
        from weirlab.report.sensitivity import sensitivity_of

        return sensitivity_of(self.study)

    @cached_property
    def _pairs(self) -> list[Paired]:
        from weirlab.comparisons import pairs

        return pairs(self.study)

    @cached_property
    def differences(self) -> pl.DataFrame | None:
        """With `study.compare`: how each measure differs from that at the baseline, by seeds in common. None
        where the study compares nothing.

        Columns `point baseline measure unit baseline_mean mean difference low high pairs saved ratio
        ratio_low ratio_high`: the difference lies from `low` to `high` with 95 % confidence, and so does the
        ratio to the baseline, a geometric mean; seeds of their own would need `saved` times the runs.
        """
        from weirlab.comparisons import pairs_frame

        section = self.study.scenario.study
        return None if section is None or section.compare is None else pairs_frame(self._pairs)

    @cached_property
    def verdict(self) -> pl.DataFrame | None:
        """With `study.halving`, or a design `optimise`: what seeds that decided nothing say of the finalists.
        None without.

        Columns `point`, one for each level, and `rank chosen_by mean low high behind behind_low behind_high`:
        all means of a contest lie between `low` and `high` together with 95 % confidence, and so do the
        differences `behind` from the best; `chosen_by` is the mean that chose the point.
        """
        return self._contest.get("verdict")

    @cached_property
    def _contest(self) -> dict[str, pl.DataFrame]:
        from weirlab.studies.study import contest_tables

        return contest_tables(self.study)

    @cached_property
    def tables(self) -> Shelf[pl.DataFrame]:
        """`points`, `runs`, `measures`, `measures_by_level` with the levels next to each value, `differences`
        where levels are compared, and `rounds` and `verdict` where the best is sought."""
        found = self.study
        makers = {
            "points": lambda: found.points,
            "runs": lambda: found.runs,
            "measures": lambda: found.measures,
            "measures_by_level": lambda: found.measures.join(
                found.points, on="point", how="left", maintain_order="left"
            ),
        }
        if found.failures.height:
            makers["failures"] = lambda: found.failures
        more = {"differences": self.differences, **self._contest, "sensitivity": self.sensitivity}
        made = {name: partial(_itself, frame) for name, frame in more.items() if frame is not None}
        return Shelf(makers | made)

    @property
    def document(self) -> dict[str, object]:
        """What `result.json` holds: one entry per point."""
        found = self.study
        measures = summaries(found.measures)
        factors = [column for column in found.points.columns if column != "point"]
        document: dict[str, object] = {
            "kind": "study",
            "name": self.name,
            "directory": None if self.directory is None else str(self.directory),
            "seeds": list(found.seeds),
            "seconds": None if self.seconds is None else round(self.seconds, 3),
            "kept_points": found.kept,
            "points": [
                {
                    "point": row["point"],
                    "levels": {factor: row[factor] for factor in factors},
                    "measures": measures.get(row["point"], []),
                }
                for row in found.points.iter_rows(named=True)
            ],
            "failures": found.failures.to_dicts(),
            "impossible": [asdict(each) for each in found.impossible],
        }
        if self.sensitivity is not None:
            document["sensitivity"] = self.sensitivity.to_dicts()
        for name, frame in (("differences", self.differences), ("verdict", self.verdict)):
            if frame is not None:
                document[name] = [_finite(row) for row in frame.to_dicts()]
        if found.reached:
            counts = found.replicates_of
            document["precision"] = [
                {
                    "point": each.point,
                    "replicates": counts.get(each.point, 0),
                    "measure": each.measure,
                    "of": "difference" if each.difference else "mean",
                    "asked": each.asked.text,
                    **_finite({"half_width": each.half_width}),
                    "reached": each.reached,
                }
                for each in found.reached
            ]
        return document

    def _sentences(self) -> Sequence[str]:
        from weirlab.report.study import study_sentences

        return study_sentences(self.study)

    def blocks(self) -> list[Block]:
        """The measures by point, or how much each parameter matters."""
        from weirlab.report.contest import verdict_table
        from weirlab.report.page import Text
        from weirlab.report.pairs import pair_table
        from weirlab.report.sensitivity import sensitivity_table, without_weights
        from weirlab.report.study import effect_table

        if self.study.finalists:
            return [verdict_table(self.study)]
        compared = [pair_table(self.study, self._pairs)] if self._pairs else []
        if self.sensitivity is None:
            return [effect_table(self.study), *compared]
        texts = [Text(sentence) for sentence in without_weights(self.sensitivity)]
        return [sensitivity_table(self.study, self.sensitivity), *texts]

    def _page(self) -> tuple[Page, list[Plot]]:
        from weirlab.report.study import study_page

        return study_page(self.study, self._manifest, self.sensitivity)

    def _undrawn(self) -> str:
        return "add a section 'measure' to the scenario"

    def __repr__(self) -> str:
        found = self.study
        return f"<Study of {self.name}: {found.points.height} points of {len(found.seeds)} replicates>"


def study(
    scenario: AnyScenario,
    *,
    assign: Mapping[str, object] | None = None,
    seed: int | None = None,
    replicates: int | None = None,
    threads: int | None = None,
    on: str | Executor | None = None,
    store: str | Path | None = None,
    limits: Limits | None = None,
    out: str | Path | None = None,
    overrides: Mapping[str, str] | None = None,
    progress: runs.Progress | None = None,
    judge: runs.Judge | None = None,
) -> StudyResult:
    """Run every point of the study in a scenario on the simulator, as `weir study` does.

    Args:
        scenario, assign, seed, threads, overrides, progress, judge: As of `weirlab.run`.
        replicates: Of every point. Default: those of the study.
        on: Who works: `local:4`, `tcp://HOST:8786`, `ssh:HOST,HOST`, or an executor. Default: this process,
            and processes of this machine where that is worth it.
        store: A path or URL of results that studies share. Default: one in `out`.
        limits: The time and memory that one run may need.
        out: An empty directory, or one of the same study, which is then continued. Default: one that is
            removed with the result, unless that is saved.

    Runs that failed are in `result.study.failures`; the others do not stop for them.

    Raises:
        ScenarioError, UnsupportedError: A point is not legal, or cannot be run. Nothing was run then.
        RunFailed: No run gave a result.
        InputError: It has no section `study`, or the directory holds something else.
        Interrupted: Ctrl-C. In a directory, finished points are kept.
    """
    from weirlab import studies

    began = time.monotonic()
    asked = scenario_of(scenario, assign)
    directory, kept = place_for(out)
    found = studies.run_study(
        asked,
        directory=directory,
        seed=seed,
        replicates=replicates,
        threads=threads,
        on=on,
        store=store,
        limits=limits,
        overrides=overrides,
        progress=progress,
        judge=judge,
    )
    result = StudyResult(found, directory, seconds=time.monotonic() - began, kept=kept)
    found_too = {"sensitivity": result.sensitivity, "differences": result.differences}
    more = {name: frame for name, frame in found_too.items() if frame is not None}
    if more:
        save_tables(more, directory / "tables")
    write_json(directory / "result.json", result.document)
    return result


def _itself(frame: pl.DataFrame) -> pl.DataFrame:
    return frame


def _finite(row: Mapping[str, object]) -> dict[str, object]:
    """A row with null for what JSON has no number for."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }
