"""Journals: one writer, whole lines, and no file touched that is not one."""

import pytest

from weirlab.errors import InputError, WeirlabError
from weirlab.journal import Journal, JournalKind, read_journal

KIND = JournalKind("weirlab_sums", 1, "log of sums", "sum")
ABOUT = {"of": {"terms": (1, 2)}}


def total(entry):
    return entry["a"] + entry["b"]


def opened(path):
    return Journal(path, KIND, ABOUT, total)


@pytest.fixture
def path(tmp_path):
    with opened(tmp_path / "sums.jsonl") as journal:
        journal.append({"a": 1, "b": 2})
        journal.append({"a": 3, "b": 4})
    return tmp_path / "sums.jsonl"


def test_what_was_appended_is_read_back(path):
    assert read_journal(path, KIND, total) == [3, 7]
    assert read_journal(path, KIND, total, ABOUT) == [3, 7]
    with opened(path) as journal:
        assert journal.entries == [3, 7]


@pytest.mark.parametrize(
    "content",
    [
        b"years of work, and no line feed",
        b"years of work\n",
        b'{"weirlab_sums": 1, "years": "of wo',
        b'{"weirlab_sums":1,"weirlab":"0.0.0","of":{"terms":[9',
        b"\xff\xfe\x00",
        b"\n",
        b" ",
        b'{"weirlab_trials":1}\n',
        b"[" * 100_000 + b"\n",
    ],
)
def test_a_file_that_is_no_such_journal_is_refused_and_stays_as_it_is(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"notes\.txt: not a log of sums"):
        opened(path)
    with pytest.raises(InputError, match=r"notes\.txt: not a log of sums"):
        read_journal(path, KIND, total)
    assert path.read_bytes() == content


@pytest.mark.parametrize(("left", "word"), [(0, "empty"), (9, "cut short")])
def test_a_journal_that_lost_its_first_line_after_the_work_was_started_is_refused(path, left, word):
    with opened(path) as log:
        log.append({"term": 1})
    path.write_bytes(path.read_bytes()[:left])
    with opened(path) as log:  # a crash before the work was started: nothing is lost
        assert log.entries == []
    path.write_bytes(path.read_bytes()[:left])
    (path.parent / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match=rf"{word}, but manifest\.json says that this sum was started"):
        opened(path)
    assert path.stat().st_size == left


def test_a_journal_of_other_work_is_refused_before_its_entries_are_read(path):
    with pytest.raises(InputError, match=r"another sum: of\.terms\[1\] was 2 there and is 3 here"):
        Journal(path, KIND, {"of": {"terms": [1, 3]}}, lambda entry: entry["not there"])
    with pytest.raises(InputError, match=r"of\.terms\[1\] was 2 at its start, and is 3 there"):
        read_journal(path, KIND, total, {"of": {"terms": [1, 3]}})


@pytest.mark.parametrize("line", [b'{"a":1}', b'{"a":1,"b":"x"}', b'{"a":1,"b":NaN}', b'{"a"\r:1,"b', b""])
def test_a_damaged_line_is_named_and_nothing_is_cut_off(path, line):
    lines = path.read_bytes().split(b"\n")
    lines[1] = line
    path.write_bytes(b"\n".join(lines) + b'{"a"')
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"sums\.jsonl:2: damaged log of sums"):
        opened(path)
    assert path.read_bytes() == before


def test_only_one_process_writes(path):
    pytest.importorskip("fcntl", reason="files are locked on POSIX systems only")
    with opened(path) as journal:
        with pytest.raises(InputError, match="another sum is writing this log"):
            opened(path)
        journal.append({"a": 5, "b": 6})
    assert read_journal(path, KIND, total) == [3, 7, 11]


def test_an_entry_that_does_not_fit_on_the_disk_leaves_the_journal_as_it_was(path, small_files):
    before = path.read_bytes()
    with opened(path) as journal:
        with (
            small_files(len(before) + 4),
            pytest.raises(WeirlabError, match=r"sums\.jsonl: .*File too large"),
        ):
            journal.append({"a": 5, "b": 6})
        assert path.read_bytes() == before
        journal.append({"a": 5, "b": 6})
    assert read_journal(path, KIND, total) == [3, 7, 11]
