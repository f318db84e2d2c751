"""Every command as a user meets it: what it prints, where, and with which exit code."""

import json
import os
import re
import sys

import pytest

from cli.kept_results import results
from weirlab.api.catalogue import shortened
from weirlab.cli.app import COMMANDS
from weirlab.scenario import load
from weirlab.scenario.file.ready import ready_made

# --- help, versions, usage ---


def test_help_names_every_command_and_the_exit_codes(weir):
    outcome = weir("--help")
    assert outcome.code == 0
    for command, (_, sentence) in COMMANDS.items():
        assert f"\n  {command} " in outcome.out
        assert sentence in " ".join(outcome.out.split())
    assert "130 interrupted" in outcome.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_in_whole_lines(weir, command):
    outcome = weir(command, "--help")
    assert outcome.code == 0
    assert outcome.err == ""
    assert "[bold]" not in outcome.out
    assert f"weir {command}" in outcome.out


def test_no_words_are_answered_with_five_things_to_try(weir):
    outcome = weir()
    assert outcome.code == 0
    assert outcome.err == ""
    tried = [line.split()[1:3] for line in outcome.out.splitlines() if line.startswith("  weir ")]
    assert len(tried) == 5
    for command, *names in tried:
        assert weir(command, "--help").code == 0
        assert all(name in ready_made() for name in names if name.islower() and command != "scenarios")


def test_a_command_that_is_misspelled_is_named(weir):
    outcome = weir("rnu")
    assert outcome.code == 2
    assert "did you mean 'run'?" in outcome.err


def test_the_version_is_that_of_the_core(weir):
    from weirlab._core import version

    assert weir("--version").out == f"weir {version()}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("frob",), "there is no command 'frob'"),
        (("run",), "Missing argument"),
        (("run", "run.yaml", "--bogus"), "No such option"),
        (("run", "run.yaml", "--replicates", "0"), "--replicates"),
        (("run", "run.yaml", "--replicates", "many"), "--replicates"),
        (("run", "nowhere.yaml"), "nowhere.yaml: there is no such file"),
        (("run", "."), "this is a directory"),
        (("run", "incats"), "did you mean 'incast'"),
        (("run", "search.yaml"), "start it with:  weir search search.yaml"),
        (("search", "run.yaml"), "start it with:  weir run run.yaml"),
        (("search",), "name a scenario file, or --resume DIR"),
        (("search", "search.yaml", "--timeout", "soon"), "soon"),
        (("search", "search.yaml", "--timeout", "0 s"), "above 0 s"),
        (("search", "search.yaml", "--timeout", "60"), "(got '60'); seconds are '60 s'"),
        (("search-lab", "--width", "0"), "--width is a ratio from 0.000001 to below 1"),
        (("search-lab", "--width", "1"), "(got 1)"),
        (("search", "--resume", "."), "it has no manifest.json"),
        (("run", "run.yaml", "--set", "run.seed"), "write PATH=VALUE"),
        (("run", "run.yaml", "--set", "run.sede=1"), "did you mean 'seed'"),
        (("run", "run.yaml", "--set", "run.seed=1", "--set", "run.seed=2"), "given twice"),
        (("run", "run.yaml", "--set", "run.duration=5"), "run.duration"),
        (("run", "run.yaml", "--out", "."), "holds other files"),
        (("run", "run.yaml", "--out", "run.yaml"), "this is a file"),
        (("run", "run.yaml", "--seed", "-1"), "from 0 to 2^64 - 1"),
        (("emulate", "wan-path", "--seed", "-1", "--", "true"), "--seed"),
        (("emulate", "wan-path", "--seed", "18446744073709551616", "--", "true"), "--seed"),
        (("path", "127.0.0.1", "--seed", "-1"), "--seed"),
        (("reproduce", "bulk", "--seed", "18446744073709551616"), "--seed"),
        (("emulate", "wan-path", "--report", "no/where.json", "--", "true"), "there is no directory no"),
        (("emulate", "wan-path", "--report", ".", "--", "true"), "this is a directory"),
        (("run", "windows-against-streams"), "start it with:  weir bulk windows-against-streams"),
        (("study", "windows-against-streams"), "start it with:  weir bulk windows-against-streams"),
        (("study", "wan-path"), "start it with:  weir emulate wan-path"),
        (("search", "wan-path"), "start it with:  weir emulate wan-path"),
        (("bulk", "incast"), "start it with:  weir run incast"),
        (("bulk", "wan-path"), "start it with:  weir emulate wan-path"),
        (("emulate", "incast", "--", "true"), "start it with:  weir run incast"),
        (("run", "CSIT-search"), "ready-made are search-binary, "),
        (("emulate", "--rate", "1mbit", "--write", "x.yaml", "--", "true"), "a command: --write keeps the"),
        (
            ("emulate", "--rate", "1mbit", "--write", "x.yaml", "--report", "r.json"),
            "--report: --write keeps",
        ),
        (("emulate", "--rate", "1mbit", "--set", "testbed.kind=sim"), "weir bulk --set testbed.kind=sim"),
        (("emulate", "--up", "trace=/dev/zero", "--", "true"), "--up trace: /dev/zero: not an ordinary"),
        (("report", "nowhere"), "no such directory"),
        (("report", "."), "it has no manifest.json"),
        (("scenarios", "incats"), "did you mean 'incast'"),
        (("scenarios", "--copy", "x.yaml"), "needs the NAME"),
        (("reproduce", "nonsense"), "no study is called 'nonsense'"),
    ],
)
def test_a_mistake_of_the_user_is_a_message_and_exit_code_2(weir, place, words, said):
    before = {path.name for path in place.iterdir()}
    outcome = weir(*words)
    assert outcome.code == 2
    assert said in outcome.err
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    assert {path.name for path in place.iterdir()} - {"results"} == before
    assert not (place / "results").exists() or results(place) == []


def test_the_list_of_scenarios_names_the_command_that_starts_each(weir):
    for listed in weir("scenarios", "--json").json["scenarios"]:
        assert f"weir {load(listed['name']).command}" == listed["command"], listed["name"]


def test_a_word_of_the_text_of_a_scenario_finds_it(weir):
    assert "search-noisy" in weir("scenarios", "--search", "csit").out


def test_help_names_every_controller_of_the_laboratory(weir):
    from weirlab.searches.lab import PEERS
    from weirlab.searches.lab_files import CONTROLLERS

    told = " ".join(weir("search-lab", "--help").out.split())
    for name in (*CONTROLLERS, *PEERS):
        assert re.search(rf"[ ,]{name}[ ,]", told), name


def test_a_page_of_theory_that_is_written_already_is_told(weir, tmp_path):
    page = tmp_path / "margins"
    assert weir("stability", "bcn", "--out", str(page)).code == 0
    outcome = weir("report", str(page))
    assert outcome.code == 2
    said = " ".join(outcome.err.split())
    assert f"'weir stability' has written the page already: {page / 'report.html'}" in said


def test_all_problems_of_a_file_are_told_at_once(weir, place):
    broken = (place / "run.yaml").read_text().replace("load: 60 %", "laod: 60 %").replace("2 ms", "2")
    (place / "broken.yaml").write_text(broken)
    outcome = weir("check", "broken.yaml")
    assert outcome.code == 2
    assert re.search(r"^weir: broken\.yaml:6:\d+: ", outcome.err)
    assert re.search(r"^ +broken\.yaml:7:\d+: ", outcome.err, re.MULTILINE)
    assert "2 problems" in outcome.err
    problems = weir("check", "broken.yaml", "--json").json["error"]["problems"]
    assert len(problems) == 2


@pytest.mark.parametrize(
    "words", [("run", "nowhere.yaml"), ("run", "--bogus"), ("check", "nowhere.yaml"), ("report", ".")]
)
def test_with_json_a_failure_is_one_document_too(weir, words):
    outcome = weir(*words, "--json")
    assert outcome.code == 2
    assert set(outcome.json) == {"error"}
    assert outcome.json["error"]["message"]


def test_opening_a_report_without_a_browser_says_where_it_is(weir, place, monkeypatch):
    import webbrowser

    assert weir("run", "run.yaml", "--out", "r").code == 0
    monkeypatch.setattr(webbrowser, "_tryorder", [])
    monkeypatch.setenv("BROWSER", "")
    outcome = weir("report", "r", "--no-pictures", "--open")
    assert outcome.code == 1
    assert "no web browser was found here; the report is r" in outcome.err
    assert (place / "r" / "report.html").exists()


def test_a_search_whose_log_was_emptied_is_not_started_again_silently(weir, place):
    assert weir("search", "search.yaml", "--out", "s").code == 0
    (place / "s" / "trials.jsonl").write_bytes(b"")
    refused = weir("search", "--resume", "s")
    assert refused.code == 2
    assert "trials.jsonl: empty" in refused.err


def test_a_ready_made_scenario_runs_by_its_name(weir):
    assert (
        weir("run", "incast", "--set", "run.duration=6 ms", "--set", "measure=null", "--json").json["name"]
        == "incast"
    )


def test_a_file_of_the_user_goes_before_a_ready_made_one(weir, place):
    (place / "incast").write_text((place / "run.yaml").read_text())
    assert weir("check", "incast", "--json").json["name"] == "small"


def test_doctor_says_what_each_lack_means(weir):
    document = weir("doctor", "--no-clock", "--json").json
    assert {"platform", "Python"} <= {check["name"] for check in document["checks"]}
    for check in document["checks"]:
        assert check["status"] == "ok" or check["means"], check["name"]
    outcome = weir("doctor", "--no-clock")
    assert outcome.code == 0
    assert "\nprivileges\n" in outcome.out
    amiss = [check["name"] for check in document["checks"] if check["status"] != "ok"]
    count = len(document["checks"])
    told = f"{len(amiss)} of {count} parts are missing or not known: {', '.join(amiss)}."
    assert (told if amiss else f"Everything works: {count} parts.") in outcome.out


# --- what goes wrong outside ---


def test_a_bug_is_called_a_bug(weir, monkeypatch):
    monkeypatch.setattr("weirlab.runs._simulate", lambda *_, **__: 1 / 0)
    outcome = weir("run", "run.yaml")
    assert outcome.code == 1
    assert "this is a bug in weirlab: ZeroDivisionError" in outcome.err
    assert "Traceback" not in outcome.err
    monkeypatch.setenv("WEIRLAB_DEBUG", "1")
    assert "Traceback" in weir("run", "run.yaml").err


def test_a_panic_of_the_extension_is_a_bug_too(weir, monkeypatch):
    panic = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})

    def panics(*_, **__):
        raise panic("attempt to subtract with overflow")

    monkeypatch.setattr("weirlab.runs._simulate", panics)
    outcome = weir("run", "run.yaml")
    assert outcome.code == 1
    assert "this is a bug in weirlab: PanicException: attempt to subtract with overflow" in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_may_not_be_written_is_a_message(weir, place):
    (place / "locked").mkdir(mode=0o500)
    outcome = weir("run", "run.yaml", "--out", "locked/r")
    assert outcome.code == 2
    assert "Permission denied" in outcome.err


def test_a_full_disk_is_a_message(weir, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "results/x.parquet")

    monkeypatch.setattr("weirlab.records.save_table", full)
    outcome = weir("run", "run.yaml")
    assert outcome.code == 1
    assert "results/x.parquet: No space left on device" in outcome.err


@pytest.mark.parametrize("words", [("run", "run.yaml"), ("search", "search.yaml")])
def test_a_report_that_cannot_be_written_is_told_before_the_work(weir, place, monkeypatch, words):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    outcome = weir(*words, "--report", "--json")
    assert outcome.code == 1
    assert "pip install -e '.[report]'" in outcome.err
    assert outcome.json["error"]["kind"] == "MissingCapability"
    assert not (place / "results").exists()


def test_a_sweep_is_told_in_terminal_result_and_report(weir, place):
    algorithm = "search.algorithm={kind: weir, sweep: 30}"
    outcome = weir("search", "search.yaml", "--out", "s", "--set", algorithm, "--report")
    said = "Swept for loss inversion: 30 trials of 1 s"
    assert said in outcome.out
    sweep = json.loads((place / "s/result.json").read_text())["sweep"]
    assert sweep["trials"] == 30
    assert 0.05 < sweep["apart"] < 0.09
    assert said in (place / "s/report.html").read_text()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["list"], "weir scenarios"),
        (["new", "mine.yaml"], "--copy FILE"),
        (["simulate", "incast"], "weir run"),
        (["plot", "results/x"], "weir report"),
        (["iperf3"], "weir bulk"),
        (["NDR"], "weir search"),
        (["a.pcapng"], "weir diagnose a.pcapng"),
        (["mine.yaml"], "weir run mine.yaml"),
        (["search-knee"], "weir search search-knee"),
        (["serach"], "did you mean 'search'"),
        (["xyzzy"], "'weir --help' lists them"),
    ],
)
def test_a_word_that_is_no_command_leads_to_the_one_that_is_meant(weir, words, hint):
    outcome = weir(*words)
    assert outcome.code == 2
    assert f"there is no command '{words[0]}'" in outcome.err
    assert hint in outcome.err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["bulk", "--rate", "20mbit", "--rtt", "80ms"], "--delay 40ms for 80 ms"),
        (["emulate", "--bandwidth=20mbit", "--", "true"], "--rate 20mbit"),
        (["run", "incast", "--output", "x"], "--out DIR"),
    ],
)
def test_an_option_of_other_tools_leads_to_the_one_that_is_meant(weir, words, hint):
    outcome = weir(*words)
    assert outcome.code == 2
    assert "there is no such option" in outcome.err
    assert hint in outcome.err


@pytest.mark.parametrize("words", [["run", "incast"], ["reproduce", "zrl"], ["trace", "capture.pcap"]])
def test_a_file_for_a_report_leads_to_where_the_report_goes(weir, words):
    outcome = weir(*words, "--report", "page.html")
    assert outcome.code == 2
    assert "--report page.html: --report takes no file" in outcome.err
    assert ("--out DIR names" in outcome.err) == ("--out" in weir(words[0], "--help").out)


def test_a_scenario_after_report_is_the_scenario(weir):
    outcome = weir("run", "--report", "no-such-scenario")
    assert "no-such-scenario: there is no such file" in outcome.err


def test_options_of_a_program_that_is_started_are_its_own(weir):
    assert "--rtt" not in weir("emulate", "no-such-scenario", "--", "true", "--rtt", "1").err


def test_help_is_a_word_too(weir):
    assert weir("help").out == weir("--help").out
    assert weir("help", "search").out == weir("search", "--help").out


def test_a_description_in_the_list_is_cut_at_the_end_of_a_clause_or_not_at_all():
    text = "One clause of some length: another one, which is longer. A sentence."
    assert shortened(text, 100) == text
    assert shortened(text, 60) == "One clause of some length: another one, which is longer"
    assert shortened(text, 40) == "One clause of some length"
    assert shortened(text, 20) == text
    assert (
        shortened("A study: what a large buffer does to a call", 40)
        == "A study: what a large buffer does to a call"
    )
