"""`weirlab.bulk` and `weirlab.path`: campaigns of bulk transfers, and paths link by link."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import polars as pl

from weirlab.api.kept import AnyScenario, place_for, scenario_of
from weirlab.api.result import Result, Shelf
from weirlab.campaigns import Campaign, NoAdviceError, PointSummary, advise, run_campaign, summaries
from weirlab.campaigns.campaign import LOG
from weirlab.campaigns.path import (
    Characterization,
    Effort,
    HopEstimate,
    LiveProber,
    Route,
    WayBack,
    characterize,
    find_route,
    hop_documents,
    path_document,
    resolve,
    save_path,
)
from weirlab.campaigns.tables import interval_table, measurement_table
from weirlab.errors import Interrupted
from weirlab.files import Scratch
from weirlab.records import save_tables
from weirlab.results import Manifest, Provenance, claimed_directory, write_json
from weirlab.scenario import Scenario
from weirlab.testbed.account import Reading
from weirlab.units import Span
from weirlab.working import followed

if TYPE_CHECKING:
    from weirlab.plots.style import Plot
    from weirlab.report.page import Block, Page


Watch = Callable[[int, int], None]


class BulkResult(Result):
    """A campaign of bulk transfers, as far as it came."""

    kind = "campaign"

    def __init__(
        self,
        found: Campaign,
        directory: Path,
        *,
        advice: str = "",
        kept: Scratch | None = None,
    ) -> None:
        super().__init__(Manifest.read(directory), directory, kept=kept)
        self.campaign = found
        """The campaign itself."""
        self.advice = advice
        """Which point to take, a sentence a line; empty where nobody asked."""

    @property
    def scenario(self) -> Scenario:
        """What was measured."""
        return self.campaign.plan.scenario

    @cached_property
    def points(self) -> list[PointSummary]:
        """What came out, by point."""
        return summaries(self.campaign)

    @cached_property
    def tables(self) -> Shelf[pl.DataFrame]:
        """`measurements` and `intervals`; see `Result.tables`."""
        return Shelf(
            {
                "measurements": lambda: measurement_table(self.campaign),
                "intervals": lambda: interval_table(self.campaign),
            }
        )

    @property
    def document(self) -> dict[str, object]:
        """What `result.json` holds; what is unknown is null."""
        rows = [
            {
                key: None if isinstance(value, float) and math.isnan(value) else value
                for key, value in asdict(each).items()
            }
            for each in self.points
        ]
        return {
            "kind": "campaign",
            "failures": self.campaign.failures,
            "name": self.name,
            "directory": str(self.directory),
            "joined": self.campaign.joined,
            "points": rows,
        }

    def _sentences(self) -> Sequence[str]:
        from weirlab.report.bulk import campaign_sentences

        return [*self.advice.splitlines(), *campaign_sentences(self.campaign, self.points)]

    def blocks(self) -> list[Block]:
        """What each point delivered and met, and where there are any: loads, delays, responsiveness."""
        from weirlab.report.bulk import delays_table, loads_table, point_tables, responsiveness_table

        found = self.points
        tables = [
            *point_tables(found, self.name, self.campaign.plan.cycles),
            loads_table(found),
            delays_table(found),
            responsiveness_table(found),
        ]
        return [table for table in tables if table is not None]

    def _page(self) -> tuple[Page, list[Plot]]:
        from weirlab.report.bulk import bulk_page

        return bulk_page(self.campaign, self._manifest, self.advice)


def bulk(
    scenario: AnyScenario,
    *,
    assign: Mapping[str, object] | None = None,
    advice: bool = False,
    most_delay_s: float | None = None,
    out: str | Path | None = None,
    overrides: Mapping[str, str] | None = None,
    progress: Watch | None = None,
    on: str | None = None,
    store: str | Path | None = None,
) -> BulkResult:
    """Measure bulk transfers in cycles, on real stacks or in simulated time, as `weir bulk` does.

    Args:
        scenario: A file, the name of a ready-made scenario, a dict of what a file would hold, or a Scenario,
            with a section `campaign`.
        assign: Other values at dotted paths; `{"testbed.kind": "sim"}` needs no privileges.
        advice: Whether to say which of the points suits the path.
        most_delay_s: Most delay that others may meet [s], for the advice.
        out: A new or empty directory, or one of the same campaign, which then goes on. Default: one that is
            removed with the result, unless that is saved.
        overrides: The changes of a command line, to be noted.
        progress: Called with how many measurements of how many are done.
        on: Who measures in simulated time: `"local:4"`, `"tcp://HOST:8786"` or `"ssh:HOST,HOST"`. Default:
            this process.
        store: A path or URL of results that campaigns share. Default: one of its own in `out`.

    Raises:
        ScenarioError, UnsupportedError: It is not legal, or cannot be run. Nothing was measured then.
        MissingCapability: Not Linux, no namespaces for this user, or a program is missing.
        Interrupted: Ctrl-C. What was measured is kept where `out` names a directory.
    """
    from weirlab.campaigns import check_advisable, plan_of
    from weirlab.report.bulk import advice_text

    asked = scenario_of(scenario, assign)
    if advice:
        check_advisable(plan_of(asked))
    directory, kept = place_for(out)
    continued = (directory / LOG).exists()
    with nullcontext(directory) if continued else claimed_directory(asked.name, directory):
        campaign = run_campaign(asked, directory, overrides=overrides, progress=progress, on=on, store=store)
    result = BulkResult(campaign, directory, kept=kept)
    document = result.document
    if advice:
        try:
            given = advise(campaign, most_delay_s=most_delay_s)
            result.advice = advice_text(given)
            document["advice"] = asdict(given)
        except NoAdviceError as error:  # what was measured is reported all the same
            result.advice = f"No advice: {error}."
            document["advice"] = None
        document["advice_text"] = result.advice
    write_json(directory / "result.json", document)
    save_tables(result.tables, directory / "tables")
    return result


class PathResult(Result):
    """The links to a host: capacity, latency, queueing and loss of each."""

    kind = "path"

    def __init__(
        self,
        found: Characterization,
        back: WayBack | None,
        directory: Path,
        kept: Scratch | None = None,
    ) -> None:
        super().__init__(Manifest.read(directory), directory, kept=kept)
        self.found = found
        """What the probes say."""
        self.back = back
        """The way back, where it was asked for."""

    @property
    def document(self) -> dict[str, object]:
        """What `result.json` holds; what is unknown is null."""
        return path_document(self.found, self.back)

    @cached_property
    def tables(self) -> Shelf[pl.DataFrame]:
        """`links`, a row for each hop, and `probes`; see `Result.tables`."""
        return Shelf({"links": self._links, "probes": lambda: self.found.probes})

    def _links(self) -> pl.DataFrame:
        plain = [
            {key: value for key, value in hop.items() if not isinstance(value, Mapping)}
            for hop in hop_documents(self.found)
        ]
        return pl.DataFrame(plain, infer_schema_length=None)

    def _sentences(self) -> Sequence[str]:
        from weirlab.report.path import path_sentences

        return path_sentences(self.found)

    def blocks(self) -> list[Block]:
        """The hops, and the way back."""
        from weirlab.report.page import Text
        from weirlab.report.path import back_table, hop_table

        notes = (*self.found.route.notes, *self.found.notes, *self.found.doubts())
        back = [] if self.back is None else [back_table(self.back)]
        return [hop_table(self.found), *(Text(f"Note: {note}.") for note in notes), *back]

    def _page(self) -> tuple[Page, list[Plot]]:
        from weirlab.report.path import path_page

        assert self.directory is not None
        return path_page(self.directory, self._manifest)


def path(
    host: str,
    *,
    family: Literal[0, 4, 6] = 0,
    precision: float = 0.03,
    gap: str = "10 ms",
    time: str = "5 min",
    probes: int = 50_000,
    rounds: int = 1000,
    sizes: int = 24,
    share: float = 0.05,
    mtu: int = 1500,
    hops: int = 30,
    timeout: str = "1 s",
    port: int = 33434,
    seed: int = 1,
    out: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    on_route: Callable[[Route, Effort], None] | None = None,
    way_back: Callable[[str], WayBack | None] | None = None,
) -> PathResult:
    """Find out what the links to a host are like, one by one, as `weir path` does.

    Args:
        host: A name or an address.
        family: 4 or 6 for IPv4 or IPv6; 0: either.
        precision: Half the interval of a capacity, relative to it, that is good enough.
        gap: Mean time between two probes.
        time: Longest that probes are sent.
        probes: Most probes.
        rounds: Most rounds: probes of each size to each hop.
        sizes: Different sizes of probes.
        share: Of the probes of a size, the share taken to meet no queue; 0: the fastest.
        mtu: Longest probe, in bytes.
        hops: Most hops.
        timeout: Longest wait for an answer.
        port: UDP port at which nobody listens there.
        seed: Of order and times of the probes.
        out: A new or empty directory. Default: one that is removed with the result, unless that is saved.
        progress: Called with how much of how much is done.
        on_route: Given the route before the probes are sent.
        way_back: Given this host's address, finds the way back.

    Raises:
        InputError: A value is not one, or there is no such host.
        MissingCapability: Not Linux.
        Interrupted: Ctrl-C before anything was measured; later, the result says so in its `ending`.
    """
    effort = Effort(
        precision=precision,
        share=share,
        sizes=sizes,
        gap_s=Span.parse(gap).s,
        timeout_s=Span.parse(timeout).s,
        most_rounds=rounds,
        most_probes=probes,
        most_s=Span.parse(time).s,
    )
    effort.check()
    destination = resolve(host, family)
    prober = LiveProber(destination, port=port)
    manifest = Manifest(kind="path", name=host, seed=seed, provenance=Provenance.now())
    place, kept = place_for(out)
    with (
        claimed_directory(f"path-{host}", place) as directory,
        followed(directory, "path", host, progress) as log,
    ):
        try:
            route = find_route(
                prober,
                destination,
                mtu_bytes=mtu,
                most_hops=hops,
                gap_s=effort.gap_s,
                timeout_s=effort.timeout_s,
            )
        except KeyboardInterrupt:
            raise Interrupted("interrupted while the route was looked for; nothing was measured") from None
        manifest.write(directory)
        if on_route is not None:
            on_route(route, effort)

        def log_links(hops: Sequence[HopEstimate]) -> None:
            for each in hops:
                if each.link is not None and each.link.capacity_bps is not None:
                    link = f"link {each.hop.hops}"
                    log.measured("Capacity, as far as known", "Mbit/s", link, each.link.capacity_bps / 1e6)

        before = Reading.now()
        found = characterize(prober, route, effort, seed=seed, progress=log, on_links=log_links)
        account = (Reading.now() - before).with_waits({"the prober": prober.waited_s})
        found = replace(found, disturbance=account.disturbance, account=account.facts())
        interrupted = found.ending == "interrupted"
        save_path(found, None, directory)  # before anything else can fail
        back = None if way_back is None or interrupted else way_back(route.source)
        if back is not None:
            save_path(found, back, directory)
        manifest.ended("interrupted" if interrupted else "complete").write(directory)
    return PathResult(found, back, directory, kept)
