"""`weir bulk` as a user meets it, in simulated time."""

import html
import json

import pytest

from weirlab.campaigns import Campaign
from weirlab.results import Manifest

FILE = """weirlab: 1
name: small
testbed: {kind: sim, path: emulator}
network: {kind: path, ends: [a, b], link: {rate: 20 Mbit/s, delay: 10 ms, framing: none}}
queues: {bottleneck: {at: a->b, kind: drop-tail, limit: 60 kB}}
traffic:
  bulk:
    from: a
    to: b
    streams: 2
    source: {kind: bulk}
    transport: {kind: tcp, congestion_control: {kind: reno}, window: 64 KiB}
  ping: {from: a, to: b, source: {kind: ping, every: 0.5 s}}
campaign:
  cycles: 3
  cycle: [{name: loaded, run: [bulk, ping], for: 6 s}, {name: unloaded, run: ping, for: 2 s}]
study: {factors: {traffic.bulk.streams: [1, 2]}}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(FILE)
    return path


def test_a_campaign_prints_its_points_keeps_them_and_goes_on_without_measuring_again(weir, file, tmp_path):
    out = tmp_path / "kept"
    first = weir("bulk", str(file), "--out", str(out), "--json")
    assert first.code == 0, first.err
    document = json.loads(first.out)
    assert [point["transfers"] for point in document["points"]] == [3, 3]
    log = (out / "measurements.jsonl").read_bytes()
    again = weir("bulk", str(file), "--out", str(out), "--advise", "--most-delay", "100 ms")
    assert again.code == 0, again.err
    assert f"continued {out}" in again.err
    assert "Limited by" in again.out
    assert (out / "measurements.jsonl").read_bytes() == log
    assert Manifest.read(out).status == "complete"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--most-delay", "10 ms"], "--most-delay: is for --advise; give that, too"),
        (["--advise", "--most-delay", "10"], "--most-delay: write a duration with its unit"),
        (["--set", "traffic.bulk.transport.congestion_control.kind=vegas"], "unknown kind 'vegas'"),
        (["--set", "campaign="], "campaign: is missing"),
        (
            ["--advise", "--set", "campaign.cycles=2"],
            "advice needs 3 cycles or more (got 2): write '--cycles 3'",
        ),
        (
            ["--advise", "--set", "campaign.cycle=[{name: loaded, run: [bulk, ping], for: 6 s}]"],
            "advice needs pings during the transfers and alone",
        ),
        (["--set", "testbed.path="], "a campaign needs a path: write 'path: emulator'"),
    ],
)
def test_what_cannot_be_is_told_before_a_directory_is_made(weir, file, tmp_path, words, said):
    outcome = weir("bulk", str(file), "--out", str(tmp_path / "kept"), *words)
    assert outcome.code == 2
    assert said in outcome.err
    assert not (tmp_path / "kept").exists()


def test_the_advice_is_on_the_terminal_in_the_document_and_on_the_page(weir, file, tmp_path):
    out = tmp_path / "kept"
    outcome = weir("bulk", str(file), "--out", str(out), "--advise", "--report")
    assert outcome.code == 0, outcome.err
    document = json.loads((out / "result.json").read_text())
    assert document["advice"]["choice"]["streams"] in (1, 2)
    assert document["advice_text"].startswith("Advice: ")
    page = html.unescape((out / "report.html").read_text())
    for line in document["advice_text"].splitlines():
        assert line in outcome.out
        assert line in page
    # A page that is written anew has it, too; without the advice there is none.
    assert weir("report", str(out)).code == 0
    assert document["advice_text"].splitlines()[0] in html.unescape((out / "report.html").read_text())
    assert weir("bulk", str(file), "--out", str(out), "--report").code == 0
    assert "Advice" not in (out / "report.html").read_text()


def test_that_no_choice_delays_others_so_little_is_told_beside_all_that_was_measured(weir, file, tmp_path):
    out = tmp_path / "kept"
    outcome = weir("bulk", str(file), "--out", str(out), "--advise", "--most-delay", "1 ns", "--report")
    assert outcome.code == 0, outcome.err
    assert "Mbit/s" in outcome.out
    said = "No advice: no choice adds so little delay as 1e-06 ms: the least median dRTT is"
    document = json.loads((out / "result.json").read_text())
    assert document["advice"] is None
    assert document["advice_text"].startswith(said)
    assert said in outcome.out
    assert said in (out / "report.html").read_text()
    assert [point["transfers"] for point in document["points"]] == [3, 3]
    assert (out / "tables" / "measurements.parquet").exists()


def test_an_advice_that_is_no_text_is_told_with_its_place(weir, file, tmp_path):
    out = tmp_path / "kept"
    assert weir("bulk", str(file), "--out", str(out)).code == 0
    (out / "result.json").write_text('{"advice_text": 3}')
    outcome = weir("report", str(out))
    assert outcome.code == 2
    assert "result.json: advice_text: a text was expected" in outcome.err


def test_the_examples_of_the_help_stand_in_lines_of_their_own(weir):
    for command, count in (("bulk", 5), ("emulate", 4)):
        lines = [line.strip() for line in weir(command, "--help").out.splitlines()]
        assert len([line for line in lines if line.startswith(f"weir {command} ")]) == count


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["path", "127.0.0.1", "--gap", "10"], "--gap: write a duration with its unit"),
        (["path", "127.0.0.1", "--timeout", "soon"], "--timeout: write a duration as a number and a unit"),
        (["path", "127.0.0.1", "--time", "5"], "--time: write a duration with its unit"),
        (["emulate", "bulk-cern", "--timeout", "soon"], "--timeout: write a duration as a number and a unit"),
        (["emulate", "bulk-cern", "--timeout", "60"], "(got '60'); seconds are '60 s'"),
        (["emulate", "bulk-cern", "--timeout", "50 ms"], "--timeout: from 100 ms to a week (got 50 ms)"),
        (["emulate", "bulk-cern", "--timeout", "nan"], "--timeout: write a duration as a number and a unit"),
        (["emulate", "bulk-cern", "--far", "ping 'x"], """--far: no closing quotation (got "ping 'x")"""),
        (["emulate", "bulk-cern", "--far", " "], "--far: write a command, such as 'iperf3 -s'"),
        (["path", ""], "HOST: write a name or an address alone"),
        (["path", "https://example.net"], "HOST: write a name or an address alone"),
        (["path", "example..net"], "example..net: no address"),
        (["path", f"{'a' * 64}.example"], ".example: no address"),
        (["path", "fe80::1%lo"], "at the other end of a single link"),
        (["path", "169.254.1.1"], "at the other end of a single link"),
        (["path", "224.0.0.1"], "is no single host"),
        (["path", "255.255.255.255"], "is no single host"),
    ],
)
def test_what_an_option_cannot_mean_is_told_with_its_name(weir, words, said):
    outcome = weir(*words)
    assert outcome.code == 2
    assert said in outcome.err


def test_another_campaign_is_not_continued(weir, file, tmp_path):
    out = str(tmp_path / "kept")
    assert weir("bulk", str(file), "--out", out).code == 0
    outcome = weir("bulk", str(file), "--out", out, "--set", "run.seed=4")
    assert outcome.code == 2
    assert "scenario.run.seed was 1 there and is 4 here" in outcome.err
    grown = weir("bulk", str(file), "--out", out, "--cycles", "4", "--json")
    assert grown.code == 0
    assert Campaign.load(out).plan.cycles == 4


def test_a_simulation_that_takes_minutes_says_so_before_it_starts(weir, tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(
        "weirlab.api.measured.run_campaign", lambda *given, **_: started.append(given) or 1 / 0
    )
    words = ["--delay", "10ms", "--streams", "16", "--window", "4MiB", "--for", "120 s"]
    outcome = weir("bulk", *words, "--set", "testbed.kind=sim", "--out", str(tmp_path / "kept"))
    # 16 windows of 4 MiB in 20 ms for 120 s, of 1448 B: 278 million.
    assert "up to 278 million segments are simulated, which takes about 2 min" in outcome.err
    assert started
    short = ["--rate", "5mbit", "--delay", "10ms", "--set", "testbed.kind=sim"]
    quick = weir("bulk", *short, "--out", str(tmp_path / "short"))
    assert "million" not in quick.err
