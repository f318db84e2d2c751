"""`weirlab.reproduce`: published numbers compared with ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from weirlab.api.kept import place_for
from weirlab.api.result import Result, Shelf
from weirlab.files import Scratch
from weirlab.reproductions import Effort, Findings, find
from weirlab.results import Manifest, Provenance, claimed_directory
from weirlab.working import followed

if TYPE_CHECKING:
    import polars as pl

    from weirlab.plots.style import Plot
    from weirlab.report.page import Block, Page


class ReproduceResult(Result):
    """Published numbers and claims compared with ours, with a verdict for each."""

    kind = "reproduce"

    def __init__(self, found: Findings, directory: Path, kept: Scratch | None = None) -> None:
        super().__init__(Manifest.read(directory), directory, kept=kept)
        self.findings = found
        """The findings themselves."""

    @property
    def holds(self) -> bool:
        """Whether nothing failed."""
        return self.findings.holds

    @property
    def document(self) -> dict[str, object]:
        """What `result.json` holds."""
        return self.findings.to_json()

    @cached_property
    def tables(self) -> Shelf[pl.DataFrame]:
        """The data behind the rows, `rows` and `claims`; see `Result.tables`."""
        import polars as pl

        tables = self.findings.tables
        documents = {"rows": self.findings.row_documents(), "claims": self.findings.claim_documents()}
        plain = {
            name: partial(
                pl.DataFrame,
                [{key: value for key, value in row.items() if key != "known"} for row in rows],
                infer_schema_length=None,
                strict=False,
            )
            for name, rows in documents.items()
        }
        return Shelf(plain | {name: partial(tables.__getitem__, name) for name in tables})

    def _sentences(self) -> Sequence[str]:
        return [self.findings.summary, *(f"Note: {remark}" for remark in self.findings.remarks)]

    def blocks(self) -> list[Block]:
        """The numbers, what constants would score, and the claims."""
        from weirlab.report.reproduce import claim_table, constant_table, row_table

        found = self.findings
        return [each for each in (row_table(found), constant_table(found), claim_table(found)) if each.rows]

    def _page(self) -> tuple[Page, list[Plot]]:
        from weirlab.report.reproduce import reproduce_page

        return reproduce_page(self.findings, self._manifest)


def reproduce(
    name: str,
    *,
    quick: bool = False,
    seed: int = 1,
    threads: int | None = None,
    out: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    on: str | None = None,
    store: str | Path | None = None,
) -> ReproduceResult:
    """Reproduce a published study, as `weir reproduce` does: its numbers compared with ours.

    Args:
        name: ai-fabric, bcn, bulk, fabric, mdr, rapid, zrl, or one that another package adds.
        quick: Fewer repetitions, with wider tolerances.
        seed: Where all chance comes from.
        threads: Default: one per CPU.
        out: A new or empty directory, or one in which the same study has begun, which then goes on. Default:
            one that is removed with the result, unless that is saved.
        progress: Called with how much of how much is done.
        on: Who simulates: `"local:4"`, `"tcp://HOST:8786"` or `"ssh:HOST,HOST"`. Default: this process.
        store: A path or URL of results that are shared: what it has is not simulated again. Default: none.

    Raises:
        InputError: There is no such study, or `out` holds something else.
    """
    study = find(name)
    provenance = Provenance.now()
    place, kept = place_for(out)
    begun = bool(study.keeps) and (place / study.keeps).is_dir()
    with (
        nullcontext(place) if begun else claimed_directory(f"reproduce-{name}", place) as directory,
        followed(directory, "reproduce", name, progress) as log,
    ):
        effort = Effort(
            quick=quick,
            seed=seed,
            threads=threads,
            progress=log,
            directory=directory,
            on=on,
            store=None if store is None else str(store),
        )
        findings = study.run(effort)
        findings.save(directory, provenance.ended())
    return ReproduceResult(findings, directory, kept)
