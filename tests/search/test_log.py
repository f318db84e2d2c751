"""The trial log: exact, flushed line by line, tolerant of a cut last line, and loyal to one search."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from weirlab.errors import InputError, WeirlabError
from weirlab.scenario import loads
from weirlab.searches.log import TrialLog, read_trials, trial_from_json, trial_to_json
from weirlab.testbed.base import Trial, TrialSpec

SEARCH = {"algorithm": {"kind": "binary"}, "goals": [{"name": "NDR", "width": 0.005}], "unsent": "excluded"}
ABOUT = {"scenario": {"testbed": {"kind": "sim"}, "run": {"seed": 1}}}


def trial(index: int = 0, load_fps: float = 1e6 / 3) -> Trial:
    spec = TrialSpec(
        index=index, elapsed_s=0.1 * index, intended_load_fps=load_fps, duration_s=0.1, frame_size_bytes=64
    )
    return Trial(
        spec=spec,
        intended_frames=33333,
        sent_frames=33333,
        received_frames=33332,
        effective_duration_s=0.1 + 0.2,
        offered_load_fps=load_fps,
        latency_s={"p50": 1e-5},
        facts={"port": "ä", "late": None},
    )


def written(path: Path, count: int) -> list[Trial]:
    trials = [trial(index) for index in range(count)]
    with TrialLog(path, SEARCH, ABOUT) as log:
        for each in trials:
            log.append(each)
    return trials


def test_trials_come_back_as_they_were_written(tmp_path):
    trials = written(tmp_path / "trials.jsonl", 3)
    assert read_trials(tmp_path / "trials.jsonl") == trials
    with TrialLog(tmp_path / "trials.jsonl", SEARCH, ABOUT) as log:
        assert log.trials == trials


@given(
    load_fps=st.floats(1e-3, 1e12),
    duration_s=st.floats(1e-3, 1e6),
    elapsed_s=st.floats(0.0, 1e9),
    effective_s=st.floats(1e-3, 1e6),
    counts=st.tuples(st.integers(1, 2**62), st.floats(0.0, 1.0)),
)
def test_no_figure_is_rounded(load_fps, duration_s, elapsed_s, effective_s, counts):
    sent, share = counts
    spec = TrialSpec(
        index=1,
        elapsed_s=elapsed_s,
        intended_load_fps=load_fps,
        duration_s=duration_s,
        frame_size_bytes=64,
        loss_budget=share,
    )
    given_trial = Trial(
        spec=spec,
        intended_frames=sent,
        sent_frames=sent,
        received_frames=int(sent * share) if share < 1.0 else sent,
        effective_duration_s=effective_s,
        offered_load_fps=load_fps,
    )
    assert trial_from_json(json.loads(json.dumps(trial_to_json(given_trial)))) == given_trial


def test_each_trial_is_one_line_and_on_disk_when_append_returns(tmp_path):
    path = tmp_path / "trials.jsonl"
    with TrialLog(path, SEARCH, ABOUT) as log:
        assert len(path.read_text().splitlines()) == 1
        log.append(trial(0))
        lines = path.read_text().splitlines()
        assert len(lines) == 2
        assert json.loads(lines[1])["trial"]["received_frames"] == 33332
    header = json.loads(lines[0])
    assert header["weirlab_trials"] == 1
    assert header["search"] == SEARCH
    assert header["about"] == ABOUT


def test_appending_keeps_what_is_there(tmp_path):
    path = tmp_path / "trials.jsonl"
    first = written(path, 2)
    before = path.read_bytes()
    with TrialLog(path, SEARCH, ABOUT) as log:
        log.append(trial(2))
    assert path.read_bytes().startswith(before)
    assert read_trials(path) == [*first, trial(2)]


def test_a_last_line_that_was_cut_short_anywhere_is_dropped_and_overwritten(tmp_path):
    path = tmp_path / "trials.jsonl"
    trials = written(path, 3)
    whole = path.read_bytes()
    begin = whole[:-1].rindex(b"\n") + 1
    for length in range(begin, len(whole)):
        path.write_bytes(whole[:length])
        assert read_trials(path) == trials[:2]
        with TrialLog(path, SEARCH, ABOUT) as log:
            assert log.trials == trials[:2]
            log.append(trials[2])
        assert path.read_bytes() == whole


def test_a_log_that_was_cut_short_in_its_header_is_begun_anew(tmp_path):
    path = tmp_path / "trials.jsonl"
    written(path, 0)
    whole = path.read_bytes()
    for length in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with TrialLog(path, SEARCH, ABOUT) as log:
            assert log.trials == []
        assert path.read_bytes() == whole


def test_failures_are_noted_and_are_no_trials(tmp_path):
    path = tmp_path / "trials.jsonl"
    with TrialLog(path, SEARCH, ABOUT) as log:
        log.append(trial(0))
        log.note_failure(trial(1).spec, TimeoutError("no answer"))
        log.append(trial(1))
    noted = json.loads(path.read_text().splitlines()[2])
    assert noted == {"failure": {"index": 1, "kind": "TimeoutError", "error": "no answer"}}
    assert read_trials(path) == [trial(0), trial(1)]


@pytest.mark.parametrize(
    ("search", "about", "message"),
    [
        ({**SEARCH, "unsent": "lost"}, ABOUT, 'search.unsent was "excluded" there and is "lost" here'),
        (
            {**SEARCH, "goals": [{"name": "NDR", "width": 0.01}]},
            ABOUT,
            "search.goals[0].width was 0.005 there and is 0.01 here",
        ),
        (
            {**SEARCH, "goals": [*SEARCH["goals"], {"name": "PDR"}]},
            ABOUT,
            'search.goals was [{"name": "NDR", "width": 0.005}] there and is',
        ),
        ({**SEARCH, "extra": None}, ABOUT, "search.extra was nothing there and is null here"),
        (SEARCH, {"scenario": {"testbed": {"kind": "netns"}}}, 'about.scenario.testbed.kind was "sim" there'),
        (SEARCH, {}, "about.scenario was"),
    ],
)
def test_a_log_of_another_search_is_refused_with_the_difference(tmp_path, search, about, message):
    path = tmp_path / "trials.jsonl"
    written(path, 2)
    before = path.read_bytes()
    with pytest.raises(InputError, match="the log of another search") as caught:
        TrialLog(path, search, about)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("weirlab: 1\n", "not a trial log of weirlab"),
        ('{"name": "other"}\n', "not a trial log of weirlab"),
        ("[1]\n", "not a trial log of weirlab"),
        ('{"weirlab_trials": 2, "weirlab": "9.9"}\n', "written in format 2 by weirlab 9.9"),
    ],
)
def test_a_file_that_is_no_log_of_this_format_is_refused(tmp_path, content, message):
    path = tmp_path / "trials.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        TrialLog(path, SEARCH, ABOUT)
    with pytest.raises(InputError, match=message):
        read_trials(path)
    assert path.read_text() == content


@pytest.mark.parametrize(
    "line",
    ["garbage", "[]", "{}", '{"trial": {}}', '{"trial": {"spec": 3}}', '{"trial": 7}', "\udcff", "null", ""],
)
def test_a_line_damaged_before_the_end_is_refused_with_its_place(tmp_path, line):
    path = tmp_path / "trials.jsonl"
    written(path, 2)
    lines = path.read_bytes().splitlines()
    lines[1] = line.encode(errors="surrogateescape")
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(InputError, match=r"trials\.jsonl:2: damaged trial log"):
        TrialLog(path, SEARCH, ABOUT)


def test_a_logged_trial_with_impossible_counts_is_damage(tmp_path):
    path = tmp_path / "trials.jsonl"
    written(path, 1)
    path.write_text(path.read_text().replace('"received_frames":33332', '"received_frames":99999'))
    with pytest.raises(InputError, match=r"damaged trial log .*received 99999 frames of 33333 sent"):
        read_trials(path)


def test_a_logged_trial_that_was_neither_stopped_nor_not_is_damage(tmp_path):
    path = tmp_path / "trials.jsonl"
    written(path, 1)
    path.write_text(path.read_text().replace('"stopped_early":false', '"stopped_early":-1'))
    with pytest.raises(InputError, match=r"damaged trial log .*stopped_early: .*valid boolean \(got -1\)"):
        read_trials(path)


def test_reading_an_empty_or_missing_log_says_so(tmp_path):
    path = tmp_path / "trials.jsonl"
    with pytest.raises(InputError, match="no such file"):
        read_trials(path)
    path.touch()
    with pytest.raises(InputError, match="empty, not a trial log"):
        read_trials(path)


def test_two_searches_cannot_write_the_same_log(tmp_path):
    pytest.importorskip("fcntl", reason="files are locked on POSIX systems only")
    path = tmp_path / "trials.jsonl"
    with TrialLog(path, SEARCH, ABOUT), pytest.raises(InputError, match="another search is writing this log"):
        TrialLog(path, SEARCH, ABOUT)
    with TrialLog(path, SEARCH, ABOUT):
        pass


def test_a_directory_that_does_not_exist_is_made(tmp_path):
    with TrialLog(tmp_path / "a" / "b" / "trials.jsonl", SEARCH, ABOUT):
        pass
    assert (tmp_path / "a" / "b" / "trials.jsonl").exists()


def test_a_log_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "trials.jsonl").mkdir()
    with pytest.raises(InputError, match="cannot be opened"):
        TrialLog(tmp_path / "trials.jsonl", SEARCH, ABOUT)


@pytest.mark.parametrize("content", [b"all my notes", b'{"weirlab_points":1', b"\xff\xfe\n\n"])
def test_a_file_of_somebody_else_is_refused_and_left_as_it_is(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a trial log of weirlab"):
        TrialLog(path, SEARCH, ABOUT)
    assert path.read_bytes() == content


def test_a_trial_for_which_there_is_no_room_is_told_with_the_file_and_the_earlier_ones_are_kept(
    tmp_path, small_files
):
    path = tmp_path / "trials.jsonl"
    trials = written(path, 2)
    with (
        TrialLog(path, SEARCH, ABOUT) as log,
        small_files(path.stat().st_size + 100),
        pytest.raises(WeirlabError, match=r"trials\.jsonl: cannot be written: File too large"),
    ):
        log.append(trial(2))
    with TrialLog(path, SEARCH, ABOUT) as log:
        assert log.trials == trials
        log.append(trial(2))
    assert read_trials(path) == [*trials, trial(2)]


def test_the_log_of_a_version_without_a_field_goes_on_where_the_field_has_its_default(tmp_path):
    scenario = loads("""
weirlab: 1
name: searched
testbed: {kind: sim, device: {kind: knee, capacity: 1 Mframe/s}}
traffic: {offered: {from: sender, to: receiver, source: {kind: constant, frame_size: 64 B}}}
search:
  vary: traffic.offered.source.rate
  between: [10 kframe/s, 2 Mframe/s]
  goals: {NDR: {preset: csit-ndr}}
""")
    before, now = scenario.dump(), scenario.dump()
    del before["traffic"]["offered"]["class"], before["events"]
    path = tmp_path / "trials.jsonl"
    TrialLog(path, {}, {"scenario": before}).__exit__(None, None, None)
    with TrialLog(path, {}, {"scenario": now}) as log:
        assert log.trials == []
    now["traffic"]["offered"]["class"] = 1
    with pytest.raises(InputError, match=r"about\.scenario\.traffic\.offered\.class was 0 there and is 1"):
        TrialLog(path, {}, {"scenario": now})
