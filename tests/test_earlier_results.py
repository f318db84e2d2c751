"""Results of earlier versions are read, or refused with the version that wrote them.

`data/results-VERSION.tar.xz` holds one small result of each kind as that version wrote it, without facts of
the machine; `data/trace-LACK.tar.xz` holds one of a state between versions. A change that makes one
unreadable says in `REFUSED` what a user is told instead.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

import weirlab
from weirlab.errors import InputError
from weirlab.report import write_report

ARCHIVES = sorted((Path(__file__).parent / "data").glob("results-*.tar.xz"))
KINDS = ("run", "study", "search", "campaign", "trace", "rapid")
REFUSED = {
    (
        "results-0.1.0",
        "trace",
    ): "saved by an earlier version, which did not keep .* of flows; read the capture"
}
"""What cannot be read any more, and what is said instead: what to do."""


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def earlier(request, tmp_path):
    place = tmp_path / request.param.name.removesuffix(".tar.xz")
    with tarfile.open(request.param) as archive:
        archive.extractall(place, filter="data")
    return place


def test_there_are_results_of_earlier_versions() -> None:
    assert ARCHIVES


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_of_an_earlier_version_is_read_and_reported(earlier: Path, kind: str) -> None:
    directory = earlier / kind
    if words := REFUSED.get((earlier.name, kind)):
        with pytest.raises(InputError, match=words):
            weirlab.read(directory).summary()
        return
    result = weirlab.read(directory)
    assert result.kind == kind
    assert result.summary()[0]
    assert all(len(table.columns) > 0 for table in result.tables.values())
    assert write_report(directory, pictures=False).page.stat().st_size > 10_000


def test_losses_without_their_places_are_reported(tmp_path: Path) -> None:
    with tarfile.open(ARCHIVES[0].parent / "trace-without-places.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    result = weirlab.read(tmp_path / "trace")
    assert "start" not in result.tables["losses"].columns
    assert {"losses", "queue-overflow", "lossy-path"} & {finding.kind for finding in result.findings}
    assert write_report(tmp_path / "trace", pictures=False).page.stat().st_size > 10_000


def test_a_result_of_a_later_format_is_refused_with_the_version_that_wrote_it(earlier: Path) -> None:
    manifest = earlier / "run" / "manifest.json"
    content = json.loads(manifest.read_text(encoding="utf-8"))
    content["format"], content["provenance"]["weirlab"] = 99, "9.9.0"
    manifest.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match=r"format 99 of weirlab 9\.9\.0; this weirlab reads formats up to"):
        weirlab.read(earlier / "run")
