"""Damaged result directories: every report is right, or the fault is told with its file."""

import shutil
from pathlib import Path

import polars as pl
import pytest

import weirlab
from weirlab.cli.app import execute
from weirlab.errors import InputError
from weirlab.report import write_report
from weirlab.scenario import loads
from weirlab.studies import run_study

RUN = """
weirlab: 1
name: small
network: {kind: star, hosts: 3, link: {rate: 1 Gbit/s, delay: 1 us}}
traffic:
  a: {from: "host-[0-1]", to: host-2, source: {kind: poisson, load: 40 %, frame_size: 1000 B}}
run: {duration: 100 us}
record: {out: {queue: switch-0->host-2, every: 20 us}}
measure: {loss: {kind: loss-ratio, of: a}}
"""
STUDY = RUN + "study: {replicates: 2, factors: {traffic.a.source.load: [30 %, 60 %]}}\n"
SEARCH = """
weirlab: 1
name: knee
testbed: {kind: sim, device: {kind: knee, capacity: 1 Mframe/s}}
traffic: {offered: {from: sender, to: receiver, source: {kind: constant, frame_size: 64 B}}}
search:
  vary: traffic.offered.source.rate
  between: 10 kframe/s .. 3 Mframe/s
  goals: {NDR: {loss: 0 %, width: 10 %}}
  trial: {duration: 1 s}
  algorithm: {kind: binary}
"""
SEARCHES = SEARCH + "study: {factors: {traffic.offered.source.frame_size: [64 B, 128 B]}}\n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A whole result of each kind."""
    root = tmp_path_factory.mktemp("whole")
    weirlab.run(loads(RUN), replicates=2).run.save(root / "run")
    run_study(loads(STUDY), directory=root / "study")
    for name, text in (("commanded-run", RUN), ("search", SEARCH), ("search-study", SEARCHES)):
        (root / f"{name}.yaml").write_text(text)
        words = [
            "run" if name == "commanded-run" else "search",
            str(root / f"{name}.yaml"),
            "--out",
            str(root / name),
        ]
        assert execute(words) == 0
    return root


@pytest.fixture
def damaged(whole, tmp_path):
    """Makes a copy of the whole result of a kind."""
    count = iter(range(10_000))

    def copied(kind: str) -> Path:
        return Path(shutil.copytree(whole / kind, tmp_path / f"{kind}-{next(count)}"))

    return copied


KINDS = ("run", "commanded-run", "study", "search", "search-study")


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_missing_or_half_written_is_never_a_bug_of_the_program(kind, whole, damaged):
    files = [path.relative_to(whole / kind) for path in (whole / kind).rglob("*") if path.is_file()]
    assert len(files) > 3
    for file in files:
        directory = damaged(kind)
        content = (directory / file).read_bytes()
        (directory / file).unlink()
        report_or_fault(directory)
        for part in (b"", content[: len(content) // 2], b"\xff\xfe\x00" + content):
            (directory / file).write_bytes(part)
            report_or_fault(directory)


def report_or_fault(directory: Path) -> None:
    """Write the report, or meet a fault that names a place in the directory."""
    try:
        write_report(directory, pictures=False)
    except InputError as error:
        assert str(directory) in str(error)  # noqa: PT017 (a report is right, too)


def remove(name):
    return lambda directory: (directory / name).unlink()


def rewrite(name, old, new):
    def change(directory: Path) -> None:
        content = (directory / name).read_text()
        assert old in content
        (directory / name).write_text(content.replace(old, new, 1))

    return change


def without_last_lines(name):
    def change(directory: Path) -> None:
        lines = (directory / name).read_text().splitlines(keepends=True)
        (directory / name).write_text("".join(lines[:-2]))

    return change


def with_fewer_replicates(directory: Path) -> None:
    runs = pl.read_parquet(directory / "tables" / "runs.parquet")
    runs.head(1).write_parquet(directory / "tables" / "runs.parquet")


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("run", remove("tables/flows.parquet"), r"flows\.parquet: this table is missing"),
        ("run", remove("tables/port_names.parquet"), r"port_names\.parquet: this table is missing"),
        ("run", with_fewer_replicates, r"runs\.parquet: 1 replicates .* manifest\.json has 2"),
        (
            "run",
            rewrite("manifest.json", '"kind": "run"', '"kind": "search"'),
            r"trials\.jsonl: missing, but manifest",
        ),
        ("run", rewrite("manifest.json", '"seed": ', '"seed": 1'), r"runs\.parquet: .* but manifest\.json"),
        ("run", rewrite("manifest.json", '"started": "2', '"started": "x2'), r"manifest\.json: .*started"),
        (
            "commanded-run",
            lambda place: (place / "result.json").write_text('{"kind": "ru'),
            "result.json: not JSON",
        ),
        (
            "commanded-run",
            rewrite("result.json", '"kind": "run"', '"kind": "study"'),
            "of a study, but manifest",
        ),
        (
            "study",
            rewrite("manifest.json", '"kind": "study"', '"kind": "run"'),
            "no tables|is missing|lacks|but manifest",
        ),
        ("study", rewrite("manifest.json", '"replicates": 2', '"replicates": 0'), "replicates: at least 1"),
        ("search", remove("trials.jsonl"), r"trials\.jsonl: missing, but manifest\.json says"),
        ("search", without_last_lines("trials.jsonl"), r"trials\.jsonl: ends after \d+ trials, but"),
        (
            "search",
            rewrite("result.json", '"finished"', '"won"'),
            r"result\.json: not the result of a search",
        ),
        (
            "search",
            rewrite("manifest.json", '"kind": "search"', '"kind": "run"'),
            "of a search, but manifest",
        ),
        ("search-study", remove("point-01/manifest.json"), "holds 1 of 2 searches, but manifest"),
    ],
)
def test_what_is_damaged_is_said_and_the_command_ends_with_code_2(damaged, capsys, kind, change, message):
    directory = damaged(kind)
    change(directory)
    with pytest.raises(InputError, match=message):
        write_report(directory, pictures=False)
    assert execute(["report", str(directory)]) == InputError.exit_code
    assert "bug" not in capsys.readouterr().err


def test_a_search_with_fewer_trials_than_its_result_reports_is_refused(damaged):
    directory = damaged("search")
    rewrite("manifest.json", '"complete"', '"interrupted"')(directory)
    without_last_lines("trials.jsonl")(directory)
    with pytest.raises(InputError, match=r"trials\.jsonl: \d+ trials, but result\.json reports"):
        write_report(directory, pictures=False)


def test_ctrl_c_while_a_study_that_has_ended_is_written_says_what_is_kept(tmp_path, monkeypatch):
    from weirlab.errors import Interrupted
    from weirlab.results import Manifest

    text = """
weirlab: 1
name: one
network: {kind: star, hosts: 2, link: {rate: 1 Gbit/s}}
traffic: {a: {from: host-0, to: host-1, source: {kind: poisson, load: 10 %, frame_size: 700 B}}}
run: {duration: 1 ms}
measure: {rate: {kind: delivered-rate, of: a}}
study: {factors: {traffic.a.source.load: [10 %, 20 %]}}
"""
    write = Manifest.write

    def interrupted(manifest, directory):
        if manifest.status == "complete":
            raise KeyboardInterrupt
        write(manifest, directory)

    monkeypatch.setattr(Manifest, "write", interrupted)
    with pytest.raises(Interrupted, match="interrupted after 2 of 2 points; runs that have ended are kept"):
        run_study(loads(text), directory=tmp_path / "s")
    assert Manifest.read(tmp_path / "s").status == "interrupted"
