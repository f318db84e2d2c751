"""`weir search` as a user meets it: what it prints, where, with which exit code, and how it goes on."""

import re
from pathlib import Path

import pytest

from weirlab.files import locked, locked_directory
from weirlab.results import Manifest


def results(place: Path) -> list[Path]:
    return sorted((place / "results").iterdir())


def test_search_finds_the_knee_and_says_it_is_regular(weir, place):
    outcome = weir("search", "search.yaml")
    assert outcome.code == 0
    assert re.search(r"^NDR .*regular", outcome.out, re.MULTILINE)
    assert re.search(r"^NDR † .*deviates: one trial decides a load, ", outcome.out, re.MULTILINE)
    assert re.search(r"^trial 0 \(initial phase\): 3 Mframe/s for 1 s: lost", outcome.err, re.MULTILINE)
    (directory,) = results(place)
    assert Manifest.read(directory).status == "complete"


def test_search_with_json_prints_one_document(weir):
    document = weir("search", "search.yaml", "--json").json
    for goal in document["goals"]:
        assert goal["regular"]
        knee_fps = 1e6 / (1 - goal["loss_ratio"])
        assert goal["lower"]["load_fps"] <= knee_fps < goal["upper"]["load_fps"]
        assert goal["width"] <= 0.005


def test_search_tells_exceed_ratio_duration_sum_and_conditional_throughput(weir, place):
    file = place / "search.yaml"
    goals = "goals: {PDR: {loss: 2 %, exceed: 50 %, duration_sum: 30 s}}"
    text = re.sub("goals: .*", goals, file.read_text())
    file.write_text(re.sub("algorithm: .*", "algorithm: {kind: mlr}", text))
    text = weir("search", "search.yaml").out
    assert "conditional" in text
    assert re.search(
        r"^PDR † +2 % +10 +50 % +30 +0\.5 % +deviates: unsent frames are not lost", text, re.MULTILINE
    )
    (goal,) = weir("search", "search.yaml", "--json").json["goals"]
    assert (goal["exceed_ratio"], goal["duration_sum_s"]) == (0.5, 30.0)
    assert goal["rfc9971_deviations"] == ["unsent frames are not lost"]
    assert goal["conditional_throughput_fps"] == pytest.approx(1e6, rel=1e-3)
    assert goal["lower"]["load_fps"] > 1.01e6


def test_a_device_without_a_knee_in_reach_is_irregular_and_fails(weir):
    outcome = weir("search", "search.yaml", "--set", "testbed.device.capacity=9 Mframe/s", "--json")
    assert outcome.code == 1
    assert not outcome.json["regular"]
    assert outcome.json["goals"][0]["irregularities"] == ["no upper bound seen"]
    outcome = weir("search", "search.yaml", "--set", "testbed.device.capacity=9 Mframe/s")
    assert "NDR is irregular: no upper bound seen" in outcome.out


def test_a_search_begins_at_the_rates_of_an_earlier_one(weir, place):
    cold = weir("search", "search.yaml", "--out", "cold", "--json").json
    algorithm = ("--set", "search.algorithm={kind: weir}")
    warm = weir("search", "search.yaml", *algorithm, "--from", "cold", "--out", "warm", "--json")
    assert warm.code == 0
    assert warm.json["goals"][0]["lower"]["load_fps"] == pytest.approx(
        cold["goals"][0]["lower"]["load_fps"], rel=0.01
    )
    assert "hint:" in (place / "warm" / "scenario.yaml").read_text()
    assert weir("search", "--resume", "warm", "--json").json["trials"] == warm.json["trials"]
    assert "see 'weir scenarios'" in weir("search").err
    assert "leave --set, --out and --from out" in weir("search", "--resume", "warm", "--from", "cold").err
    idle = weir("search", "search.yaml", "--set", "search.algorithm.kind=mdr", "--from", "cold")
    assert idle.code == 2
    assert "--from has no effect on the algorithm mdr" in idle.err


def test_a_search_that_ran_out_of_time_is_resumed_to_the_same_result(weir, place):
    whole = weir("search", "search.yaml", "--json").json
    outcome = weir("search", "search.yaml", "--out", "s", "--timeout", "15 s", "--json")
    assert outcome.code == 1
    assert outcome.json["ending"] == "timed out"
    assert outcome.json["trials"] < whole["trials"]
    again = weir("search", "search.yaml", "--out", "s")
    assert again.code == 2
    assert "continue with:  weir search --resume s" in again.err
    assert "weir search --resume s" in outcome.err
    resumed = weir("search", "--resume", "s", "--json")
    assert resumed.code == 0
    assert "were measured before" in resumed.err
    assert resumed.json["goals"] == whole["goals"]
    assert resumed.json["trials"] == whole["trials"]
    assert Manifest.read(place / "s").status == "complete"


def test_a_resumed_search_keeps_the_provenance_of_its_beginning(weir, place):
    weir("search", "search.yaml", "--out", "s", "--timeout", "15 s", "--set", "run.seed=3")
    first = Manifest.read(place / "s")
    assert weir("search", "--resume", "s").code == 0
    whole = Manifest.read(place / "s")
    assert whole.overrides == {"run.seed": "3"}
    assert whole.provenance == first.provenance
    assert len(whole.sittings) == 1


def test_a_resume_that_is_refused_touches_nothing(weir, place):
    assert weir("search", "search.yaml", "--out", "s").code == 0
    log = place / "s" / "trials.jsonl"
    before = {path: path.read_bytes() for path in (place / "s").iterdir()}
    with log.open("ab") as held:
        locked(held.fileno(), "held already")
        outcome = weir("search", "--resume", "s")
    assert outcome.code == 2
    assert "another search is writing this log" in outcome.err
    assert {path: path.read_bytes() for path in (place / "s").iterdir()} == before
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([lines[0], *lines[2:]]))
    assert "9 trials, but result.json reports 10" in weir("search", "--resume", "s").err
    (place / "s" / "result.json").unlink()
    assert "the log was edited" in weir("search", "--resume", "s").err
    assert Manifest.read(place / "s").status == "complete"


def test_when_the_time_of_the_scenario_is_up_the_hint_names_the_option_that_helps(weir):
    outcome = weir("search", "search.yaml", "--out", "s", "--set", "search.timeout=15 s")
    assert "continue with:  weir search --resume s --timeout TIME, longer than before" in outcome.err
    assert weir("search", "--resume", "s", "--timeout", "1 h").code == 0


def test_a_study_of_searches_that_goes_on_keeps_the_provenance_of_its_beginning(weir, place):
    text = (place / "search.yaml").read_text() + (
        "study: {replicates: 1, factors: {testbed.device.capacity: [1 Mframe/s, 2 Mframe/s]}}\n"
    )
    (place / "searches.yaml").write_text(text)
    outcome = weir("search", "searches.yaml", "--out", "s", "--timeout", "15 s")
    assert "weir search --resume s --timeout TIME" in outcome.err
    first = Manifest.read(place / "s")
    assert weir("search", "--resume", "s", "--timeout", "1 h").code == 0
    whole = Manifest.read(place / "s")
    assert (whole.provenance, len(whole.sittings)) == (first.provenance, 1)
    before = (place / "s" / "manifest.json").read_bytes()
    with locked_directory(place / "s"):
        assert "another process is working" in weir("search", "--resume", "s").err
    assert (place / "s" / "manifest.json").read_bytes() == before


def test_a_search_whose_disk_is_full_says_which_file_and_how_to_go_on(weir, place, small_files):
    whole = weir("search", "search.yaml", "--out", "whole", "--json").json
    most_bytes = (place / "whole" / "trials.jsonl").stat().st_size - 1000
    with small_files(most_bytes):
        outcome = weir("search", "search.yaml", "--out", "s", "--json")
    assert outcome.code == 1
    assert "s/trials.jsonl: cannot be written: File too large" in outcome.err
    assert "continue with:  weir search --resume s" in outcome.err
    assert "weir search --resume s" in outcome.json["error"]["message"]
    assert Manifest.read(place / "s").status == "failed"
    assert weir("search", "--resume", "s", "--json").json["goals"] == whole["goals"]


def test_resuming_takes_the_scenario_from_the_directory_alone(weir):
    weir("search", "search.yaml", "--out", "s")
    assert "not both" in weir("search", "search.yaml", "--resume", "s").err
    assert "see 'weir scenarios'" in weir("search").err
    assert "leave --set, --out and --from out" in weir("search", "--resume", "s", "--set", "run.seed=2").err


def test_a_run_is_not_resumed_as_a_search(weir):
    weir("run", "run.yaml", "--out", "r")
    assert "holds a run, not a search" in weir("search", "--resume", "r").err


def test_a_tester_that_dies_ends_in_a_message_and_keeps_its_trials(weir, place):
    script = "import sys; sys.exit('no carrier')"
    text = (
        (place / "search.yaml")
        .read_text()
        .replace(
            "{kind: sim, device: {kind: knee, capacity: 1 Mframe/s}}",
            f'{{kind: command, run: [python3, -c, "{script}"]}}',
        )
    )
    (place / "dying.yaml").write_text(text)
    outcome = weir("search", "dying.yaml", "--out", "s")
    assert outcome.code == 1
    assert "no carrier" in outcome.err
    assert Manifest.read(place / "s").status == "failed"
    assert "no carrier" in Manifest.read(place / "s").remark
