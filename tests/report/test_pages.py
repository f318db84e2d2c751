"""Reports: whole, self-contained, and loud where something is wrong."""

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from xml.etree import ElementTree

import polars as pl
import pytest

import weirlab
from made_studies import keep_only
from weirlab.errors import InputError
from weirlab.plots.style import scaled
from weirlab.report import write_report
from weirlab.report.page import (
    Callout,
    Card,
    Column,
    Numbers,
    Page,
    Section,
    Table,
    mean_text,
    number,
    percent,
)
from weirlab.report.search import result_json
from weirlab.report.search_tables import evidence_table, goal_table
from weirlab.report.search_terms import deviations, meaning, terms_table
from weirlab.report.study import effect_table
from weirlab.reproductions import Claim, Findings, KnownMisfit, Row
from weirlab.results import Manifest, Provenance, write_json
from weirlab.runs import save_scenario
from weirlab.scenario import load, loads
from weirlab.searches import ControlledSearch, Ending, LoadRange, SearchGoal, run_search
from weirlab.searches.build import build
from weirlab.searches.weir import Weir
from weirlab.studies import run_study
from weirlab.testbed import open_testbed

RUN = """
weirlab: 1
name: small
description: Two hosts send to one <script>alert(1)</script>.
network: {kind: star, hosts: 3, link: {rate: 1 Gbit/s, delay: 1 us}}
queues: {out: {at: "switch-0->*", kind: drop-tail, limit: 20 kB}}
traffic:
  a: {from: "host-[0-1]", to: host-2, source: {kind: poisson, load: 60 %, frame_size: 1000 B}}
run: {duration: 5 ms}
record:
  out: {queue: switch-0->host-2, every: 100 us}
  in: {flow: a, every: 100 us}
  delays: {delays: a}
measure: {loss: {kind: loss-ratio, of: a}, queue: {kind: mean-queue, of: switch-0->host-2}}
"""
STUDY = (
    RUN
    + """
study:
  replicates: 3
  factors: {traffic.a.source.load: [30 %, 45 %, 60 %], seed: {one: {run.seed: 1}, two: {run.seed: 2}}}
"""
)
SEARCH = """
weirlab: 1
name: knee
testbed: {kind: sim, device: {kind: knee, capacity: 1 Mframe/s}}
traffic:
  offered:
    pattern: {kind: list, flows: [sender->receiver, receiver->sender]}
    source: {kind: constant, frame_size: 64 B}
search:
  vary: traffic.offered.source.rate
  between: 10 kframe/s .. 3 Mframe/s
  goals: {NDR: {loss: 0 %}, PDR: {loss: 0.5 %}}
  trial: {duration: 10 s}
  algorithm: {kind: mdr}
"""


class Text(HTMLParser):
    """What a page says, and what it would load."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.tags: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.loads += [
            value for name, value in attrs if name in {"src", "href", "xlink:href"} and value[:1] != "#"
        ]

    def handle_data(self, data):
        self.text.append(data)


def read(page) -> tuple[str, Text]:
    content = page.read_text(encoding="utf-8")
    parsed = Text()
    parsed.feed(content)
    return content, parsed


def said(parsed: Text) -> str:
    return re.sub(r"\s+", " ", " ".join(parsed.text))


@pytest.fixture
def run_directory(tmp_path):
    weirlab.run(loads(RUN), replicates=3).save(tmp_path / "run")
    return tmp_path / "run"


def search(directory, text=SEARCH, timeout_s=None, testbed=None):
    """A search and its directory, as the command makes it."""
    scenario = loads(text)
    save_scenario(scenario, directory)
    manifest = Manifest(kind="search", name=scenario.name, provenance=Provenance.now())
    log = directory / "trials.jsonl"
    result = run_search(build(scenario), testbed or open_testbed(scenario), log=log, timeout_s=timeout_s)
    manifest.ended("complete" if result.ending is Ending.FINISHED else "interrupted").write(directory)
    return result


def test_the_page_of_a_run_answers_first_and_shows_everything(run_directory):
    report = write_report(run_directory)
    content, parsed = read(report.page)
    text = said(parsed)
    for words in ("small", "Loss ratio", "Measures over replicates", "Waiting bytes at switch-0->host-2",
                  "One-way delay", "queue-full", "Provenance", "packet-hops"):  # fmt: skip
        assert words in text, words
    assert text.index("Loss ratio") < text.index("Provenance")
    assert content.count("<svg ") == 6  # five plots and the network
    assert {path.suffix for path in report.plots} == {".png", ".svg"}
    assert len(report.plots) == 10


def test_a_page_loads_nothing_and_runs_only_its_own_scripts(run_directory):
    content, parsed = read(write_report(run_directory, pictures=False).page)
    assert parsed.loads == []
    assert not {"link", "img", "iframe", "object"}.intersection(parsed.tags)
    policy = re.search(r"script-src ([^;]*); style", unescape(content))[1].split()
    run = re.findall(r"<script>(.*?)</script>", content, re.DOTALL)
    assert [f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in run] == policy


def test_what_users_write_is_text_and_not_markup(run_directory):
    content, parsed = read(write_report(run_directory, pictures=False).page)
    assert "<script>alert" not in content
    assert "<script>alert(1)</script>" in said(parsed)


def test_every_table_has_a_caption_and_every_drawing_a_description(run_directory):
    content, parsed = read(write_report(run_directory, pictures=False).page)
    assert parsed.tags.count("table") == parsed.tags.count("caption") > 3
    for svg in re.findall(r"<svg .*?</svg>", content, re.DOTALL):
        assert ElementTree.fromstring(svg).get("aria-label")


def test_links_of_a_page_lead_to_its_sections(run_directory):
    content, _ = read(write_report(run_directory, pictures=False).page)
    targets = re.findall(r'href="#([^"]+)"', content)
    assert len(targets) > 3
    for target in targets:
        assert f'id="{target}"' in content


def test_a_single_run_shows_values_without_intervals(tmp_path):
    weirlab.run(loads(RUN)).save(tmp_path / "run")
    _, parsed = read(write_report(tmp_path / "run", pictures=False).page)
    assert "95 % interval" not in said(parsed)


def test_the_page_of_three_hundred_replicates_stays_small(tmp_path):
    scenario = loads(RUN).assign({"run.duration": "1 ms", "record.out.every": "10 us"})
    weirlab.run(scenario, replicates=300).save(tmp_path / "run")
    report = write_report(tmp_path / "run", pictures=False)
    _, parsed = read(report.page)
    scripts = sum(
        len(text) for text in re.findall(r"<script>.*?</script>", report.page.read_text(), re.DOTALL)
    )
    assert report.page.stat().st_size - scripts < 500_000
    assert scripts < 650_000
    assert "The first 20 of 300 rows. All are in tables/runs.parquet." in said(parsed)


def test_a_run_that_sent_nothing_says_so(tmp_path):
    weirlab.run(loads(RUN).assign({"traffic.a.source.load": "0 %"})).save(tmp_path / "run")
    _, parsed = read(write_report(tmp_path / "run", pictures=False).page)
    assert "Nothing was sent" in said(parsed)


def test_a_run_without_totals_of_flows_says_so_instead_of_zeros(tmp_path):
    changes = {
        "run": {"duration": "512 us", "engine": "slotted", "flows": False},
        "hotspots": {},
        "measure": {},
    }
    weirlab.run(load("zrl-og-8").assign(changes)).save(tmp_path / "run")
    _, parsed = read(write_report(tmp_path / "run", pictures=False).page)
    text = said(parsed)
    assert "No totals of flows" in text
    assert "Nothing was sent" not in text
    assert "Loss ratio" not in text


def test_the_page_of_a_run_with_a_hotspot_tells_what_became_of_it_and_draws_the_hot_port(tmp_path):
    short = {
        "run": {"duration": "512 us", "engine": "slotted"},
        "hotspots.hot.window": "204.8 us .. 512 us",
        "measure": {},
    }
    weirlab.run(load("zrl-og").assign(short)).save(tmp_path / "run")
    report = write_report(tmp_path / "run", pictures=False)
    source, parsed = read(report.page)
    text = said(parsed)
    assert "hot: measured" in text
    for quantity in (
        "aggregate throughput",
        "innocent ports",
        "RJFI",
        "PAUSE frames that stop",
        "recovery of throughput",
        "recovery: the later of both",
        "of the throughput: kept",
        "hot queue at its set point: ",
    ):
        assert quantity in text
    assert "Queue of the congested output switch-0->host-0" in text
    assert "Shown: that at the hotspot, and the 5 busiest of 32 that carried frames." in text
    assert re.search(
        r'aria-label="Waiting bytes at ports: Bytes that waited at switch-0-&gt;host-0, ', source
    )
    assert "Ports, those at hotspots first, then those with most drops first" in text


def test_the_page_of_a_study_lists_what_cannot_be_with_the_reason(tmp_path):
    fewer = {
        "study.design.points": 1,
        'study.factors."hotspots.hot.severity"': ["4.25"],
        'study.factors."hotspots.hot.degree"': ["8 %", "40 %"],
        'study.factors."traffic.background.source.mean_burst"': ["24"],
        "study.factors.topology": {"32-in-2": {}},
    }
    run_study(load("zrl-full", fewer), directory=tmp_path / "s", threads=1)
    text = said(read(write_report(tmp_path / "s", pictures=False).page)[1])
    assert "Not run, as they cannot be: 1" in text
    assert "would have to send" in text
    assert "lossless in all 3 runs" in text


def test_the_page_of_a_study_shows_measures_by_factor(tmp_path):
    run_study(loads(STUDY), directory=tmp_path / "s")
    report = write_report(tmp_path / "s")
    _, parsed = read(report.page)
    text = said(parsed)
    assert "Measures by point: mean ± half of the 95 % interval" in text
    assert "loss against load, by seed" in text
    assert {path.stem for path in report.plots} == {"measure-loss", "measure-queue"}


def test_a_mean_of_fewer_replicates_than_there_are_says_of_how_many(tmp_path):
    study = run_study(loads(STUDY), directory=tmp_path / "s")
    unknown = (pl.col("point") == 0) & (pl.col("measure") == "loss") & (pl.col("replicate") > 0)
    value = pl.when(unknown).then(None).otherwise(pl.col("value")).alias("value")
    cells = effect_table(replace(study, measures=study.measures.with_columns(value))).rows
    assert cells[0][2].endswith(" (1 of 3)")
    assert " ± " not in cells[0][2]
    assert " of 3)" not in cells[1][2]


def test_the_page_of_an_unfinished_study_says_so(tmp_path):
    run_study(loads(STUDY), directory=tmp_path / "s")
    keep_only(tmp_path / "s", 2)
    _, parsed = read(write_report(tmp_path / "s", pictures=False).page)
    assert "2 of 6" in said(parsed)
    assert "This result is not complete" in said(parsed)


def test_the_page_of_a_search_shows_rates_bounds_and_the_trials_behind_them(tmp_path):
    result = search(tmp_path / "s")
    assert result.regular
    report = write_report(tmp_path / "s")
    content, parsed = read(report.page)
    text = said(parsed)
    lower = result.goals[0].lower.load_fps
    assert (
        f"{number(lower / 1e6, 4)} Mframe/s {number(lower / 2e6, 4)} Mframe/s in each of 2 directions" in text
    )
    assert "irregular" not in text
    assert "NDR: all trials at its bounds" in text
    assert {path.stem for path in report.plots} == {"search", "search-zoom", "loss"}
    # Every trial can be asked for its numbers without a script.
    assert content.count("<title>trial ") >= len(result.trials)


def test_the_page_of_a_search_says_which_trials_at_a_bound_count_and_why(tmp_path):
    class Disturbed:
        """Loses some frames in each first attempt at a load, which something else explains."""

        def __init__(self):
            self.bed, self.seen = open_testbed(loads(SEARCH)), set()

        def trial(self, spec):
            trial = self.bed.trial(spec)
            if spec.intended_load_fps in self.seen or trial.received_frames < trial.sent_frames:
                return trial
            self.seen.add(spec.intended_load_fps)
            some = max(1, trial.sent_frames // 50)
            return replace(
                trial,
                received_frames=trial.received_frames - some,
                disturbed_frames=some,
                disturbance="the neighbours had the CPU",
            )

        def close(self):
            self.bed.close()

    search(tmp_path / "s", SEARCH, testbed=Disturbed())
    _, parsed = read(write_report(tmp_path / "s", pictures=False).page)
    text = said(parsed)
    assert re.search(r"no: made again as trial \d+: the neighbours had the CPU", text)
    assert "counts" in text


def test_the_page_of_a_search_tells_the_terms_of_each_goal_and_what_a_rate_is(tmp_path):
    relaxed = (
        SEARCH.replace("kind: mdr", "kind: weir")
        .replace("NDR: {loss: 0 %}", "NDR: {loss: 0 %, exceed: 50 %, duration_sum: 50 s}")
        .replace("PDR: {loss: 0.5 %}", "PDR: {loss: 0.5 %}, third: {loss: 1 %, duration_sum: 20 s}")
    )
    result = search(tmp_path / "s", relaxed)
    _, parsed = read(write_report(tmp_path / "s", pictures=False).page)
    text = said(parsed)
    for label in (
        "NDR, deviates from RFC 9971 (loss ≤ 0 %, exceeded in ≤ 50 % of 50 s)",
        "PDR, deviates from RFC 9971 (loss ≤ 0.5 %)",
        "third, deviates from RFC 9971 (loss ≤ 1 %, exceeded in ≤ 0 % of 20 s)",
        "NDR † 0 % 10 50 % 50 0.5 % deviates: unsent frames are not lost, early stop, guard",
        "PDR † 0.5 % 10 0 % 10 0.5 % deviates: unsent frames are not lost, early stop, checks, guard",
        "The rate of PDR is the highest load at which a trial of 10 s met the goal.",
        "The rate of NDR is the highest load at which trials of 10 s that lose more than the goal allows "
        "take at most 50 % of 50 s, whatever those not made would bring.",
        "The rate of third is the highest load at which trials of 10 s met the goal for 20 s, and none "
        "failed it.",
    ):
        assert label in text
    for goal in result.goals:
        factor, unit = scaled(goal.lower.load_fps, "frame_rate")
        told = number(goal.conditional_throughput_fps * factor, 4)
        assert f"conditional throughput {told} {unit}" in text


def test_the_conditional_throughput_stands_beside_the_lower_bound():
    goals = [SearchGoal.ndr(duration_s=1.0), SearchGoal.pdr(0.02, duration_s=1.0, width=0.001)]
    scenario = loads(SEARCH.replace("kind: mdr", "kind: weir"))
    search = ControlledSearch(Weir(goals, LoadRange(1e4, 3e6)), frame_size_bytes=64)
    result = run_search(search, open_testbed(scenario))
    table = goal_table(result, scenario)
    names = [column.name for column in table.columns]
    at = names.index("conditional\nthroughput")
    assert names[at - 2 : at] == ["rate\n(offered)", "intended\nload"]
    for row, goal in zip(table.rows, result.goals, strict=True):
        assert row[at] == number(goal.conditional_throughput_fps / 1e6, 5)
    _, pdr = table.rows
    assert pdr[at] == "1.0000" < pdr[at - 2], "the knee forwards 1 Mframe/s of more"
    binary = loads(SEARCH.replace("kind: mdr", "kind: binary"))
    result = run_search(build(binary), open_testbed(binary))
    assert "conditional\nthroughput" not in [column.name for column in goal_table(result, binary).columns]


@pytest.mark.parametrize(
    ("algorithm", "unsent", "lacking"),
    [
        ("{kind: mlr}", "lost", []),
        ("{kind: mlr}", "excluded", ["unsent frames are not lost"]),
        ("{kind: binary}", "lost", ["one trial decides a load"]),
        ("{kind: weir, early_stop: false, guard: false, checks: 0}", "lost", []),
        ("{kind: weir}", "lost", ["early stop", "checks", "guard"]),
        (
            "{kind: weir, guard: false, sweep: 5, steady: 1 s, checks: 0}",
            "lost",
            ["early stop", "sweep", "steady trials count for no goal"],
        ),
    ],
)
def test_a_search_says_in_what_it_deviates_from_rfc_9971(algorithm, unsent, lacking):
    text = SEARCH.replace("{kind: mdr}", algorithm).replace("10 s}", f"10 s, unsent: {unsent}}}")
    scenario = loads(text)
    result = run_search(build(scenario), open_testbed(scenario))
    for goal in result_json(result, scenario)["goals"]:
        assert goal["rfc9971_deviations"] == lacking
    for row in terms_table(result, scenario).rows:
        assert row[0].endswith(" †") is bool(lacking)
        assert row[-1] == ("deviates: " + ", ".join(lacking) if lacking else "conformant")
    spoiled = replace(result.trials[0], spec=replace(result.trials[0].spec, purpose="repeat"))
    again = replace(result, trials=[*result.trials, spoiled])
    assert deviations(result.goals[0].goal, again, scenario)[-1] == (
        "trials that the tester spoiled are left out"
    )
    lost = "intended: those not sent are lost" if unsent == "lost" else "that were sent."
    assert lost in meaning(result, scenario)


def test_a_device_that_never_loses_is_marked_irregular(tmp_path):
    result = search(tmp_path / "s", SEARCH.replace("capacity: 1 Mframe/s", "capacity: 9 Mframe/s"))
    assert not result.regular
    _, parsed = read(write_report(tmp_path / "s", pictures=False).page)
    text = said(parsed)
    assert "NDR is irregular: do not use it as a rate of the device" in text
    assert "no upper bound seen" in text


def test_a_search_that_was_ended_early_says_why(tmp_path):
    result = search(tmp_path / "s", timeout_s=15.0)
    write_json(tmp_path / "s" / "result.json", result_json(result, loads(SEARCH)))
    _, parsed = read(write_report(tmp_path / "s", pictures=False).page)
    assert "timed out" in said(parsed)


def test_a_search_without_a_trial_still_has_a_page(tmp_path):
    search(tmp_path / "s", timeout_s=0.1)
    _, parsed = read(write_report(tmp_path / "s", pictures=False).page)
    assert "No trial was made" in said(parsed)


def test_a_log_that_was_edited_is_refused(tmp_path):
    search(tmp_path / "s")
    log = tmp_path / "s" / "trials.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([lines[0], lines[2], *lines[1:2], *lines[3:]]))
    with pytest.raises(InputError, match="is not what this search asks for"):
        write_report(tmp_path / "s")


def test_the_page_of_a_reproduction_shows_verdicts_and_reasons(tmp_path):
    findings = Findings(
        name="made-up",
        title="A made-up study",
        source="nobody, nowhere",
        quick=True,
        rows=[
            Row(name="mean", published=10.0, ours=10.1, tolerance=0.5, unit="s"),
            Row(
                name="tail",
                published=10.0,
                ours=13.0,
                tolerance=0.5,
                known=KnownMisfit("a coarse timer", 12, 14),
            ),
            Row(name="none", published=10.0, ours=None, tolerance=0.5),
        ],
        claims=[Claim(statement="longer is longer", holds=True, evidence="2 s > 1 s")],
        remarks=["Made up."],
    )
    findings.save(tmp_path, Provenance.now().ended())
    _, parsed = read(write_report(tmp_path).page)
    text = said(parsed)
    for words in (
        "Not as it was known",
        "known misfit",
        "a coarse timer",
        "missing",
        "longer is longer",
        "quick run",
    ):
        assert words in text, words


def test_long_tables_are_cut_and_say_so():
    table = Table("T", [Column("x")], [[str(i)] for i in range(1000)], most=10, where="x.parquet")
    page = Page("t", "k", "", [Callout("c", "line one\nline two", "bad")], [Section("S", [table])]).html()
    assert page.count("<tr>") == 11
    assert "The first 10 of 1,000 rows. All are in x.parquet." in page
    assert "<p>line two</p>" in page


def test_tones_are_told_in_words_too():
    page = Page(
        "t",
        "k",
        "",
        [Callout("c", "x", "bad"), Numbers([Card("NDR", "1", badge="irregular", tone="bad")])],
        [],
    )
    assert 'aria-label="problem"' in page.html()
    assert "irregular" in page.html()


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (float("nan"), "–"), (0, "0"), (1234567, "1\u202f234\u202f567"), (0.00012345, "0.0001234"),
     (9.9999e-9, "1.000e-08"), (99.99, "99.99"), (123456.7, "123\u202f457"), (2.5, "2.500"),
     (9.99996, "10.00"), (-0.999999, "-1.000")],
)  # fmt: skip
def test_numbers_are_readable(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("mean", "half_width", "text"),
    [
        (94.92, 12, "95"),
        (0.9999, 4.3e-5, "0.999900"),
        (0.03, 0, "0.03000"),
        (1_234_567.0, 890, "1\u202f234\u202f570"),
        (12.345, 0.0999, "12.35"),
        (-3.14159, 0.01, "-3.142"),
        (5e-9, 1e-10, "5.000e-09"),
    ],
)
def test_a_mean_has_the_digits_that_its_interval_warrants(mean, half_width, text):
    assert mean_text(mean, half_width) == text


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.005, "0.5 %"), (0.0, "0 %"), (1e-9, "1e-07 %"), (1.0, "100 %"), (None, "–")]
)
def test_shares_are_readable(ratio, text):
    assert percent(ratio) == text


def test_what_the_trials_at_a_bound_allow_to_be_said_is_shown():
    goals = [SearchGoal.ndr(duration_s=1.0), SearchGoal.pdr(duration_s=1.0)]
    search = ControlledSearch(Weir(goals, LoadRange(1e4, 3e6)), frame_size_bytes=64)
    result = run_search(search, open_testbed(loads(SEARCH)))
    rows = evidence_table(result).rows
    assert [row[0] for row in rows] == ["NDR", "PDR"]
    for row, goal in zip(rows, result_json(result, loads(SEARCH))["goals"], strict=True):
        evidence = goal["evidence"]
        bounds = f"{len(evidence['lower_trials'])} + {len(evidence['upper_trials'])}"
        assert row[1:4] == [bounds, str(evidence["full_trials"]), "0"]
        # Text and JSON agree that one trial says nothing about the next one.
        assert evidence["full_trials"] == 1
        assert row[4:6] == ["–", "–"]
        assert evidence["exceed_estimate"] is evidence["exceed_interval"] is None
