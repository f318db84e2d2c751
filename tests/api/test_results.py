"""`import weirlab` in a notebook: functions that take what is at hand, and results that show themselves."""

import polars as pl
import pytest

import weirlab
from weirlab.errors import InputError, ScenarioError
from weirlab.runs import Run

INCAST = {
    "name": "small-incast",
    "network": {"kind": "star", "hosts": 3, "link": {"rate": "10 Gbit/s", "delay": "1 us"}},
    "traffic": {
        "load": {
            "from": ["host-0", "host-1"],
            "to": "host-2",
            "source": {"kind": "poisson", "frame_size": "1500 B", "load": "80 %"},
        }
    },
    "run": {"duration": "2 ms"},
    "record": {"ports": {"queue": "switch-0->host-2", "every": "100 us"}},
    "measure": {"loss": {"kind": "loss-ratio", "of": "load"}},
}
STUDY = {
    **INCAST,
    "name": "small-study",
    "study": {
        "replicates": 2,
        "factors": {"load": {level: {"traffic.load.source.load": level} for level in ("20 %", "80 %")}},
    },
}


@pytest.fixture(scope="module")
def run():
    return weirlab.run(INCAST, replicates=2)


@pytest.fixture(scope="module")
def search():
    return weirlab.search("search-knee")


def test_a_scenario_is_a_dict_a_file_a_name_or_a_scenario_and_gives_the_same(run, tmp_path):
    scenario = weirlab.Scenario(**INCAST)
    file = scenario.save(tmp_path / "mine.yaml")
    for given in (scenario, file, str(file)):
        again = weirlab.run(given, replicates=2)
        assert again.records["flows"].equals(run.records["flows"])
    assert weirlab.run("incast", assign={"run.seed": 2}).name == "incast"


def test_the_first_sentence_of_a_run_says_what_was_lost_and_delivered(run):
    first, *others = run.summary()
    flows = run.tables.flows
    lost = flows["dropped_frames"].sum() / flows["sent_frames"].sum()
    assert f"{100 * lost:.3g} % of the frames were lost" in first
    assert any("switch-0->host-2" in other for other in others)
    assert str(run.summary()).splitlines() == [first, *others] == repr(run.summary()).splitlines()


def test_tables_complete_on_tab_and_have_names_beside_ids(run):
    assert {"flows", "ports", "measures"} <= set(dir(run.tables))
    assert {"flows", "ports", "measures"} <= set(run.tables._ipython_key_completions_())
    assert "port_name" in run.tables.intervals.columns
    assert run.tables.flows["sent_bytes"].dtype == pl.UInt64
    with pytest.raises(
        AttributeError, match=r"no 'flow'; did you mean 'flows'\? There are measures, runs, flows"
    ):
        run.tables.flow  # noqa: B018 (the access is the test)


def test_a_run_says_what_it_is_without_making_a_table(run):
    fresh = weirlab.run(INCAST)
    text = repr(fresh)
    assert text == "<Run of small-incast: seed 1; .summary() .tables .plot() .report()>"
    assert "deliveries" not in fresh.records._tables


def test_a_notebook_shows_sentences_and_tables_and_hides_markup():
    shown = weirlab.run({**INCAST, "measure": {"loss": {"kind": "loss-ratio", "of": "load"}}})._repr_html_()
    assert "of the frames were lost" in shown
    assert "Frames by traffic" in shown
    assert "switch-0-&gt;host-2" in shown
    assert "->" not in shown


def test_plots_are_altair_charts_that_can_be_changed(run):
    chart = run.plot("port-queue").properties(width=321)
    assert chart.to_dict()["width"] == 321
    assert "port_queue" in dir(run.plots)
    assert run.plots.port_queue.to_dict()["config"]["background"] == "white"
    assert weirlab.plot(run).to_dict() == run.plot().to_dict()
    with pytest.raises(InputError, match="no plot is called 'queue'; there are port-rate, port-queue"):
        run.plot("queue")


def test_nothing_to_draw_says_what_to_record():
    bare = weirlab.run({key: value for key, value in INCAST.items() if key != "record"})
    with pytest.raises(InputError, match=r"nothing to draw; record something over time, such as record"):
        bare.plot()


def test_what_is_saved_is_read_again(run, tmp_path):
    place = run.save(tmp_path / "kept")
    again = weirlab.read(place)
    assert isinstance(again.run, Run)
    assert again.summary() == run.summary()
    assert again.document == run.document | {"seconds": again.document["seconds"]}
    assert again.report() == place / "report.html"
    assert "small-incast" in (place / "report.html").read_text(encoding="utf-8")


def test_a_report_of_what_was_not_saved_goes_where_it_is_told(run, tmp_path):
    page = weirlab.run(INCAST).report(tmp_path / "page.html")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_search_gives_rates_and_trials(search):
    assert search.rates == {"NDR": 10_600_000.0, "PDR": pytest.approx(10_653_185, abs=1)}
    assert search.summary()[0].startswith("NDR 10.60 Mframe/s")
    assert search.tables.trials.height == len(search.trials)
    assert set(search.tables.goals["goal"]) == {"NDR", "PDR"}
    assert "search" in dir(search.plots)


def test_a_search_that_was_not_kept_disappears_with_its_result_unless_it_is_saved(tmp_path):
    found = weirlab.search("search-knee", assign={"search.goals.PDR": None})
    temporary = found.directory
    kept = found.save(tmp_path / "kept")
    assert not temporary.exists()
    assert weirlab.read(kept).rates == found.rates


def test_a_search_in_a_directory_that_holds_it_goes_on(tmp_path, search):
    place = search.save(tmp_path / "kept")
    log = place / "trials.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    log.write_text("".join(lines[:-3]), encoding="utf-8")
    (place / "result.json").unlink()
    again = weirlab.search("search-knee", out=place)
    assert again.rates == search.rates
    assert log.read_text(encoding="utf-8").splitlines(keepends=True)[: len(lines) - 3] == lines[:-3]


def test_a_study_has_its_levels_beside_each_value():
    study = weirlab.study(STUDY)
    table = study.tables.measures_by_level
    assert set(table["load"]) == {"20 %", "80 %"}
    assert table.height == 4
    assert study.summary()[0].startswith("2 points of 2 replicates")
    assert study.plot().to_dict()
    assert repr(study) == "<Study of small-study: 2 points of 2 replicates>"


def test_a_run_of_a_search_or_a_study_names_the_function_for_it():
    with pytest.raises(InputError, match=r"start it with weirlab\.study"):
        weirlab.run(STUDY)
    with pytest.raises(InputError, match=r"start it with weirlab\.search"):
        weirlab.run("search-knee")
    with pytest.raises(InputError, match="no section 'search'"):
        weirlab.search(INCAST)


def test_a_campaign_in_simulated_time_says_which_point_carries_most():
    short = {"testbed.kind": "sim", "campaign.cycles": 1}
    found = weirlab.bulk("windows-against-streams", assign=short)
    assert found.summary()[0].startswith("Greatest goodput: ")
    assert found.tables.measurements.height == len(found.points)
    assert found.plot().to_dict()


def test_a_capture_of_a_run_is_traced_and_diagnosed(tmp_path):
    scenario = {
        **INCAST,
        "record": {"wire": {"frames": "switch-0->host-2", "as": "pcapng"}},
    }
    run = weirlab.run(scenario)
    ((name, content),) = run.captures.items()
    (tmp_path / name).write_bytes(content)
    trace = weirlab.trace(tmp_path / name)
    assert trace.flows.height == 2
    assert weirlab.read(trace.save(tmp_path / "kept")).summary() == trace.summary()
    diagnosis = weirlab.diagnose(trace)
    assert diagnosis.findings == trace.findings
    assert diagnosis.summary()[0] == "Nothing was judged: no TCP direction has 50 segments of data."


def test_the_catalogue_is_grouped_and_searched():
    found = weirlab.scenarios(kind="search")
    assert {each.kind for each in found.values()} == {"search"}
    assert "search-knee" in found
    assert "weirlab.search(NAME)" in repr(found)
    assert "<table>" in found._repr_html_()
    assert list(weirlab.scenarios(search="hotspot"))
    with pytest.raises(InputError, match="no ready-made scenario is like that"):
        weirlab.scenarios(search="quux")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("GPU", "rail-optimised"),
        ("leaf-spine", "fabric-websearch"),
        ("leaf spine", "fabric-websearch"),
        ("allreduce", "all-reduce-tenant"),
        ("storage", "hpcc-incast"),
        ("rdma", "roce"),
        ("voip", "bufferbloat"),
        ("congestion_control dctcp", "dctcp-incast"),
    ],
)
def test_a_scenario_is_found_by_what_people_call_it(words, name):
    assert name in weirlab.scenarios(search=words)


def test_a_search_finds_starts_of_words_and_no_others():
    assert "pfc-storm" not in weirlab.scenarios(search="ndr")  # hundredth
    assert not set(weirlab.scenarios(search="ai")) & {"bcn", "hotspot-tree"}  # again, fair


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_catalogue_is_printed_within_the_width_of_the_terminal(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = repr(weirlab.scenarios()).splitlines()
    assert max(map(len, lines)) <= columns
    assert len(repr(weirlab.scenarios()["incast"])) < 300


def test_values_in_ps_become_seconds_and_others_stay():
    measures = pl.DataFrame({"measure": ["delay", "loss"], "value": [2.5e9, 0.25], "unit": ["ps", "1"]})
    converted = weirlab.seconds(measures)
    assert converted.rows() == [("delay", 0.0025, "s"), ("loss", 0.25, "1")]


def test_columns_become_seconds_and_bits_per_second(run):
    series = weirlab.bit_rates(run.tables.intervals)
    first = series.row(0, named=True)
    assert first["rate_bps"] == pytest.approx(first["bytes"] * 8 / (first["t_ps"] / 1e12))
    second = series.row(1, named=True)
    length_s = (second["t_ps"] - first["t_ps"]) / 1e12
    assert second["rate_bps"] == pytest.approx(second["bytes"] * 8 / length_s)
    assert weirlab.seconds(series)["t_s"][0] == pytest.approx(100e-6)
    assert "queue_byte_ps" in weirlab.seconds(series).columns
    with pytest.raises(InputError, match="without t_ps and bytes has no rates"):
        weirlab.bit_rates(run.tables.port_names)


def test_errors_have_a_place_and_a_remedy(tmp_path):
    file = tmp_path / "wrong.yaml"
    file.write_text("weirlab: 1\nname: wrong\nnetwork: {kind: ring}\n")
    with pytest.raises(ScenarioError, match=r"wrong\.yaml:3:"):
        weirlab.run(file)
    with pytest.raises(InputError, match="did you mean 'incast'"):
        weirlab.run("incst")
    with pytest.raises(InputError, match=r"nothing"):
        weirlab.read(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda run: weirlab.run(5), r"a dict of sections or a weirlab\.Scenario \(got int\)"),
        (lambda run: weirlab.run(INCAST, replicates="3"), r"replicates: a whole number .* \(got '3'\)"),
        (lambda run: weirlab.run(INCAST, seed="1"), r"seed: a whole number .* \(got '1'\)"),
        (lambda run: weirlab.read(5), r"read: a result or its directory .* \(got int\)"),
        (lambda run: weirlab.plot(5), r"a result or its directory .* \(got int\)"),
        (lambda run: weirlab.compare(run, 5), r"compare: a result or its directory .* \(got int\)"),
        (lambda run: weirlab.seconds(run), r"seconds: a table .* \(got RunResult\)"),
        (lambda run: weirlab.bit_rates(run), r"bit_rates: a table .* \(got RunResult\)"),
    ],
)
def test_what_a_function_does_not_take_is_named_with_what_it_takes(run, call, said):
    with pytest.raises(InputError, match=said):
        call(run)


def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(run):
    with pytest.raises(AttributeError, match="no 'flwos'; did you mean 'flows'"):
        run.tables.flwos  # noqa: B018 (the access is the test)
    with pytest.raises(KeyError, match="did you mean 'incast'"):
        weirlab.scenarios()["incats"]


def test_results_at_hand_are_compared_and_stay_where_they_are(run):
    place = run.directory
    other = weirlab.run(INCAST, replicates=2, assign={"traffic.load.source.load": "90 %"})
    compared = weirlab.compare(run, other)
    change = compared.differences.row(by_predicate=pl.col("quantity") == "loss", named=True)
    assert change["result"] == "small-incast-2"
    assert change["before"] < change["after"]
    assert "small-incast-2" in str(compared.summary())
    assert (run.directory, other.directory) == (place, None)


def test_a_scenario_completes_to_its_sections_and_methods_alone():
    names = set(dir(weirlab.Scenario(**INCAST)))
    assert {"network", "traffic", "assign", "save", "to_yaml"} <= names
    assert not names & {"dict", "json", "model_dump", "from_orm", "construct"}
