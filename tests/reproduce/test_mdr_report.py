"""`weir reproduce mdr` as users see it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from weirlab.cli.app import execute
from weirlab.report import write_report
from weirlab.reproductions import Findings, mdr as study


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick run is a tenth and a third of these."""
    monkeypatch.setattr(study, "SEARCHES", 50)
    monkeypatch.setattr(study, "PHASE_SEARCHES", 6)


def test_the_command_prints_one_document_and_keeps_what_a_report_needs(small, tmp_path, capsys):
    place = tmp_path / "mdr"
    code = execute(["reproduce", "mdr", "--quick", "--json", "--threads", "1", "--out", str(place)])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert code == (0 if document["holds"] else 1)
    assert document["quick"] is True
    assert len(document["rows"]) == 41
    binary = [row["verdict"] for row in document["rows"] if "binary, mean time" in row["name"]]
    assert sorted(binary) == ["holds"] * 17 + ["known misfit"]
    assert all(claim["published"].startswith(("holds: ", "open: ")) for claim in document["claims"])
    assert Findings.load(place).summary == document["summary"]
    _check_report(place)


def _check_report(place: Path) -> None:
    written = write_report(place)
    page = written.page.read_text(encoding="utf-8")
    titles = re.findall(r"<h2[^>]*>([^<]*)<", page)
    assert titles == [
        "Search times",
        "Claims",
        "Intermediate phases",
        "Search-time graphs",
        "Numbers",
        "What a constant would score",
        "Known misfits",
        "Remarks",
        "Provenance",
    ]
    for text in ("50.8 ± 1.2", "474.9 ± 58.2", "1339.2 ± 0.1", "70.9 ± 8.7", "fitted to the very mean times"):
        assert text in page
    pictures = sorted(path.name for path in written.plots if path.suffix == ".png")
    assert len(pictures) == 12
    assert sum(name.startswith("ours-") for name in pictures) == 6
    assert sum(name.startswith("published-") for name in pictures) == 5
    assert page.count("final phase") >= 8


def test_the_study_is_listed(capsys):
    assert execute(["reproduce"]) == 0
    assert "mdr  MDR search and plain binary search (CSIT MDR" in capsys.readouterr().out
