"""Result directories: never overwritten, never half a result that looks whole."""

import json
import math
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from weirlab import results
from weirlab.errors import InputError, WeirlabError
from weirlab.files import locked_directory
from weirlab.results import (
    Manifest,
    Provenance,
    claimed_directory,
    finite,
    json_text,
    new_directory,
    write_json,
    write_text,
)


@pytest.fixture
def manifest():
    return Manifest(
        kind="run", name="x", provenance=Provenance.now(["weir", "run", "x.yaml"]), seed=1, replicates=2
    )


def test_two_results_of_one_second_lie_in_two_directories(tmp_path):
    made = {new_directory("x", root=tmp_path) for _ in range(5)}
    assert len(made) == 5
    assert all(path.is_dir() for path in made)


def test_the_name_of_a_directory_holds_no_separators(tmp_path):
    assert new_directory("a/b c", root=tmp_path).name.startswith("a-b-c-")
    assert new_directory("../..", root=tmp_path).parent == tmp_path


def test_a_chosen_directory_may_exist_if_it_is_empty(tmp_path):
    assert new_directory("x", tmp_path / "new" / "deep").is_dir()
    (tmp_path / "empty").mkdir()
    assert new_directory("x", tmp_path / "empty") == tmp_path / "empty"


def test_a_directory_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="holds other files"):
        new_directory("x", tmp_path)


def test_an_earlier_result_is_refused(tmp_path, manifest):
    manifest.write(tmp_path)
    with pytest.raises(InputError, match="holds a result already"):
        new_directory("x", tmp_path)


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "f").write_text("")
    with pytest.raises(InputError, match="this is a file"):
        new_directory("x", tmp_path / "f")


def test_a_directory_in_which_nothing_was_kept_disappears(tmp_path):
    with pytest.raises(RuntimeError), claimed_directory("x", tmp_path / "r"):
        raise RuntimeError
    assert not (tmp_path / "r").exists()


def test_a_directory_in_which_something_was_kept_stays(tmp_path):
    def work() -> None:
        with claimed_directory("x", tmp_path / "r") as directory:
            write_text(directory / "kept", "x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        work()
    assert (tmp_path / "r" / "kept").exists()


def test_a_manifest_survives_the_way_to_the_disk_and_back(tmp_path, manifest):
    ended = replace(manifest, overrides={"run.seed": "2"}).ended("complete")
    ended.write(tmp_path)
    read = Manifest.read(tmp_path)
    assert read.overrides == {"run.seed": "2"}
    assert list(read.provenance.command) == ["weir", "run", "x.yaml"]
    assert read.provenance.duration_s == ended.provenance.duration_s
    assert 0 <= read.provenance.duration_s < 60


def test_provenance_says_where_and_with_what():
    provenance = Provenance.now()
    assert provenance.cpus_usable >= 1
    assert provenance.weirlab
    assert "polars" in provenance.packages
    assert provenance.finished is None
    assert provenance.duration_s is None
    assert provenance.started.endswith("+00:00")


@pytest.mark.skipif(not (Path(__file__).parents[1] / ".git").exists(), reason="not a checkout")
def test_a_checkout_is_named_by_its_commit():
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    ).stdout.strip()
    revision = Provenance.now().revision
    assert revision is not None
    assert head.startswith(revision.removesuffix("-dirty"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "a JSON object was expected"),
        ("{}", "not a manifest of weir"),
        ('{"format": 99, "provenance": {"weirlab": "9.9"}}', "format 99 of weirlab 9.9"),
        ('{"format": 1, "kind": "poem", "status": "complete", "provenance": {}}', "unknown kind or status"),
    ],
)
def test_a_broken_manifest_is_told_apart(tmp_path, content, message):
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(InputError, match=message):
        Manifest.read(tmp_path)


def test_a_directory_without_manifest_is_no_result(tmp_path):
    with pytest.raises(InputError, match=r"it has no manifest\.json"):
        Manifest.read(tmp_path)
    with pytest.raises(InputError, match="no such directory"):
        Manifest.read(tmp_path / "nowhere")


def test_a_directory_of_results_names_those_below_it(tmp_path):
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match=r"results below it, such as .*first"):
        Manifest.read(tmp_path)


def test_a_file_that_cannot_be_written_whole_is_not_there(tmp_path):
    with pytest.raises(TypeError, match="JSON"):
        write_json(tmp_path / "result.json", {"x": {1, 2}})
    assert not (tmp_path / "result.json").exists()


def test_numbers_that_are_not_known_are_null_in_files():
    unknown = [float("nan"), float("inf"), 1.5]
    assert json.loads(json.dumps(finite({"x": unknown, "y": {"z": unknown[0]}}))) == {
        "x": [None, None, 1.5],
        "y": {"z": None},
    }


def test_a_row_of_a_document_is_a_line():
    document = {
        "kind": "study",
        "points": [{"point": 0, "levels": {"a": "1"}}, {"point": 1, "mean": math.nan}],
        "none": [],
    }
    text = json_text(document)
    assert json.loads(text) == finite(document)
    assert text.splitlines() == [
        "{",
        '  "kind": "study",',
        '  "points": [',
        '    {"point": 0, "levels": {"a": "1"}},',
        '    {"point": 1, "mean": null}',
        "  ],",
        '  "none": []',
        "}",
    ]


def test_json_is_written_for_people(tmp_path):
    write_json(tmp_path / "a.json", {"unit": "µs"})
    assert "µs" in (tmp_path / "a.json").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"unit": "µs"}


def test_work_that_goes_on_keeps_the_provenance_of_its_beginning(tmp_path, manifest):
    replace(manifest, overrides={"run.seed": "1"}).ended("interrupted", "Ctrl-C").write(tmp_path)
    first = Manifest.read(tmp_path)
    again = Manifest(kind="run", name="x", provenance=Provenance.now(["weir", "--resume", "x"]))
    again.begun_in(tmp_path).write(tmp_path)
    running = Manifest.read(tmp_path)
    assert (running.status, running.remark) == ("running", "")
    assert (running.provenance, running.overrides) == (first.provenance, {"run.seed": "1"})
    running.ended("complete").write(tmp_path)
    whole = Manifest.read(tmp_path)
    assert whole.provenance == first.provenance
    (sitting,) = whole.sittings
    assert sitting.command == ["weir", "--resume", "x"]
    assert sitting.finished is not None


def test_work_that_begins_has_no_sittings_before(tmp_path, manifest):
    assert manifest.begun_in(tmp_path) is manifest


def test_a_file_for_which_there_is_no_room_is_named_and_leaves_nothing(tmp_path, small_files):
    with small_files(100), pytest.raises(WeirlabError, match=r"big\.json: cannot be written: File too large"):
        write_json(tmp_path / "big.json", "x" * 200)
    assert list(tmp_path.iterdir()) == []


def test_one_process_at_a_time_works_in_a_directory(tmp_path):
    with (
        locked_directory(tmp_path),
        pytest.raises(InputError, match="another process is working"),
        locked_directory(tmp_path),
    ):
        pass
    with locked_directory(tmp_path):
        pass


def test_a_signal_right_after_a_directory_was_made_removes_it(tmp_path, monkeypatch) -> None:
    """It would otherwise come between making the directory and knowing of it."""
    made = tmp_path / "made"

    def make_and_interrupt(name: str, out: Path | None) -> Path:
        made.mkdir()
        signal.raise_signal(signal.SIGINT)
        return made

    monkeypatch.setattr(results, "new_directory", make_and_interrupt)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), claimed_directory("x"):
        pytest.fail("the block is entered")
    assert not made.exists()
    assert signal.getsignal(signal.SIGINT) is before
