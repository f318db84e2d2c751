"""Packages of other people add measures, search controllers, testbeds and studies; Weirlab stays as it is."""

import html
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import weirlab
from weirlab.scenario import loads

ROOT = Path(__file__).resolve().parent.parent


def installed(example: str, site: Path) -> None:
    """What `pip install` leaves of a package of pure Python in `site`: the modules, and what they offer."""
    about = tomllib.loads((ROOT / "examples" / example / "pyproject.toml").read_text())
    assert about["build-system"]["build-backend"] == "hatchling.build", "where hatchling has `build_wheel`"
    project = about["project"]
    shutil.copytree(ROOT / "examples" / example / "src", site, dirs_exist_ok=True)
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    groups = project["entry-points"].items()
    lines = [
        f"[{group}]\n" + "\n".join(f"{name} = {home}" for name, home in points.items())
        for group, points in groups
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def weir(site: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "weirlab", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "1000"},
        capture_output=True,
        text=True,
        timeout=120,
    )


SCENARIO = """
weirlab: 1
name: two
network: {kind: star, hosts: 3, link: {rate: 1 Gbit/s}}
traffic:
  small: {from: host-0, to: host-2, source: {kind: constant, rate: 100 Mbit/s, frame_size: 1250 B}}
  large: {from: host-1, to: host-2, source: {kind: constant, rate: 300 Mbit/s, frame_size: 1250 B}}
run: {duration: 10 ms}
record: {all: {flow: "*", every: 1 ms}}
measure: {slowest: {kind: slowest-flow, of: "*", window: 5 ms .. 10 ms}}
"""


@pytest.fixture
def with_measure(tmp_path):
    site = tmp_path / "site"
    installed("measure", site)
    (tmp_path / "two.yaml").write_text(SCENARIO)
    return site


def test_a_measure_of_another_package_is_evaluated(with_measure, tmp_path):
    done = weir(with_measure, "run", "two.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (measure,) = json.loads(done.stdout)["measures"]
    assert measure["unit"] == "bit/s"
    # One frame more or less in 5 ms are 2 Mbit/s.
    assert measure["mean"] == pytest.approx(100e6, abs=2.1e6)


def test_its_fields_are_checked_with_their_places(with_measure, tmp_path):
    spoilt = tmp_path / "spoilt.yaml"
    spoilt.write_text(SCENARIO.replace("window: 5", "windwo: 5"))
    done = weir(with_measure, "check", "spoilt.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "spoilt.yaml:10:50: measure.slowest.windwo: unknown field" in done.stderr
    assert "did you mean 'window'" in done.stderr


def test_its_needs_are_checked_when_the_file_is_loaded(with_measure, tmp_path):
    bare = tmp_path / "bare.yaml"
    bare.write_text(SCENARIO.replace('record: {all: {flow: "*", every: 1 ms}}\n', ""))
    done = weir(with_measure, "check", "bare.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "add an entry such as {flow: small, every: 1 ms} to 'record'" in done.stderr


def test_without_the_package_the_kind_is_unknown(tmp_path):
    (tmp_path / "two.yaml").write_text(SCENARIO.replace("slowest-flow", "gini-index"))
    done = weir(tmp_path / "nothing", "check", "two.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "unknown kind 'gini-index'" in done.stderr
    assert "kinds: rms-fairness, " in done.stderr
    said = "(entry points of the group 'weirlab.measures'), and none installed adds 'gini-index'"
    assert f"{said}: if it comes from one, install that" in done.stderr


def test_an_unknown_kind_is_told_with_those_that_packages_add(with_measure, tmp_path):
    (tmp_path / "two.yaml").write_text(SCENARIO.replace("slowest-flow", "slowest-flwo"))
    done = weir(with_measure, "check", "two.yaml", cwd=tmp_path)
    assert "did you mean 'slowest-flow'?" in done.stderr
    assert ", control-frames, slowest-flow" in done.stderr


def test_an_entry_point_that_is_no_measure_is_told_where_it_is_used(with_measure, tmp_path):
    (with_measure / "slowest_flow" / "__init__.py").write_text("SlowestFlow = 5\n")
    done = weir(with_measure, "check", "two.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "is no subclass of FlowMeasure or PortMeasure" in done.stderr


MEASURE = """
from typing import Literal
import polars as pl
from weirlab.measures.base import FlowMeasure, Measure, PortSeries

class SlowestFlow(FlowMeasure):
    kind: Literal["slowest-flow"]
    window: object = None
    def values(self, subject):
        return pl.DataFrame({"replicate": [0], "value": [1.0]})
"""
OWNER = "'slowest-flow' of slowest-flow 0.1.0, not of weirlab; report it to the makers of that package"


@pytest.mark.parametrize(
    ("whole", "broken", "said"),
    [
        ("SlowestFlow(FlowMeasure)", "SlowestFlow(Measure)", "is no subclass of FlowMeasure or PortMeasure"),
        ('Literal["slowest-flow"]', "str", "needs a field 'kind: Literal[\"slowest-flow\"]'"),
        ("import polars as pl", "1 / 0", "loading 'slowest_flow:SlowestFlow' failed: ZeroDivisionError"),
        ("import polars as pl", "def", "failed: SyntaxError"),
        (
            "import polars as pl",
            "raise SystemExit(0)",
            "loading 'slowest_flow:SlowestFlow' failed: SystemExit: 0",
        ),
        ("def values", "def needs(self): exit(0)\n    def values", "what it needs failed: SystemExit: 0"),
        (
            "window: object",
            "window: type(lambda: 0)",
            "reading the fields failed: PydanticSchemaGenerationError",
        ),
        ("def values", "def needs(self): return None\n    def values", "what it needs failed: TypeError"),
        (
            "def values",
            "def faults(self): raise KeyError('x')\n    def values",
            "what it needs failed: KeyError",
        ),
    ],
    ids=["base", "kind", "import", "syntax", "exit", "needs-exit", "fields", "needs", "faults"],
)
def test_a_broken_measure_of_another_package_is_told_with_its_place_when_the_file_is_loaded(
    with_measure, tmp_path, whole, broken, said
):
    (with_measure / "slowest_flow" / "__init__.py").write_text(MEASURE.replace(whole, broken))
    done = weir(with_measure, "check", "two.yaml", cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "two.yaml:10:" in done.stderr
    assert "measure.slowest" in done.stderr
    assert said in done.stderr
    assert "bug in weirlab" not in done.stderr


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("1 / 0", "measure 'slowest' failed: ZeroDivisionError: division by zero (__init__.py, line 10)"),
        ("None", "measure 'slowest' failed: TypeError"),
        ("pl.DataFrame({'replicate': [0]})", "measure 'slowest' failed: ColumnNotFoundError"),
        (
            "pl.DataFrame({'replicate': [1], 'value': [1.0]})",
            "its rows are of the replicates [1], not of [0]",
        ),
        (
            "pl.DataFrame({'replicate': [0], 'value': ['fast']})",
            "measure 'slowest' failed: InvalidOperationError",
        ),
        (
            "pl.DataFrame({'replicate': [0], 'value': [float('inf')]})",
            "its value is inf in replicate 0; for no answer it is null",
        ),
        (
            "pl.DataFrame({'replicate': [0], 'value': [float('nan')]})",
            "its value is nan in replicate 0; for no answer it is null",
        ),
        (
            "exec('from weirlab.measures import MissingRecordError; raise MissingRecordError(\"no tea\")')",
            "measure 'slowest': no tea",
        ),
        ("exit(0)", "measure 'slowest' failed: SystemExit: 0"),
        ("(_ for _ in ()).throw(BaseException('odd'))", "measure 'slowest' failed: BaseException: odd"),
    ],
    ids=[
        "raises",
        "nothing",
        "columns",
        "replicates",
        "text",
        "inf",
        "nan",
        "lacks",
        "exit",
        "base-exception",
    ],
)
def test_a_measure_that_fails_names_its_package_and_costs_only_its_value(
    with_measure, tmp_path, values, said
):
    text = MEASURE.replace('pl.DataFrame({"replicate": [0], "value": [1.0]})', values)
    (with_measure / "slowest_flow" / "__init__.py").write_text(text)
    more = 'lost: {kind: loss-ratio, of: "*"}'
    scenario = SCENARIO.replace(", window: 5 ms .. 10 ms}", f"}}, {more}")
    (tmp_path / "two.yaml").write_text(scenario)
    done = weir(with_measure, "run", "two.yaml", "--out", "res", cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    closing = " ".join(done.stdout.split())
    assert said.lower() in closing.lower()
    assert "tea" in said or OWNER in closing
    assert "bug in weirlab" not in done.stderr
    kept = json.loads((tmp_path / "res" / "result.json").read_text())
    assert [(each["measure"], each["values"]) for each in kept["measures"]] == [
        ("slowest", [None]),
        ("lost", [0.0]),
    ]
    assert list(kept["faults"]) == ["slowest"]
    assert said in kept["faults"]["slowest"]
    assert weir(with_measure, "report", "res", cwd=tmp_path).returncode == 0
    page = html.unescape((tmp_path / "res" / "report.html").read_text())
    assert said in page


def test_records_are_kept_before_measures_are_taken(monkeypatch, tmp_path):
    def fails(*_):
        raise RuntimeError("a fault of our own")

    monkeypatch.setattr("weirlab.api.simulated.evaluated", fails)
    scenario = loads(SCENARIO.partition("measure:")[0])
    with pytest.raises(RuntimeError) as caught:
        weirlab.run(scenario, out=tmp_path / "res")
    assert caught.value.__notes__ == [f"the records are kept in {tmp_path / 'res'}"]
    assert weirlab.read(tmp_path / "res").totals["dropped_frames"] == 0


def test_an_interruption_of_a_foreign_measure_is_one(with_measure, tmp_path):
    text = MEASURE.replace('pl.DataFrame({"replicate": [0], "value": [1.0]})', "_raise()")
    text += "\n\ndef _raise():\n    raise KeyboardInterrupt\n"
    (with_measure / "slowest_flow" / "__init__.py").write_text(text)
    (tmp_path / "two.yaml").write_text(SCENARIO.replace(", window: 5 ms .. 10 ms", ""))
    done = weir(with_measure, "run", "two.yaml", "--out", "res", cwd=tmp_path)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        130,
        "weir: interrupted; the records are kept in res",
    )


def test_entry_points_are_not_looked_for_where_every_kind_is_known(tmp_path):
    code = (
        "import importlib.metadata\n"
        "look = importlib.metadata.entry_points\n"
        "def never(**chosen):\n"
        "    assert not chosen['group'].startswith('weirlab')\n"
        "    return look(**chosen)\n"
        "importlib.metadata.entry_points = never\n"
        "from weirlab.scenario import load\n"
        "assert load('incast').measure"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)


def test_a_scenario_with_measures_loads_without_polars():
    code = "import sys\nfrom weirlab.scenario import load\nload('incast')\nassert 'polars' not in sys.modules"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)


SEARCH = """
weirlab: 1
name: knee
testbed: {kind: sim, device: {kind: knee, capacity: 10.6 Mframe/s}}
traffic:
  offered:
    pattern: {kind: list, flows: [sender->receiver]}
    source: {kind: constant, frame_size: 64 B}
search:
  vary: traffic.offered.source.rate
  between: [20 kframe/s, 14.880952 Mframe/s]
  goals: {NDR: {loss: 0 %, width: 5 %}}
  trial: {duration: 1 s}
  algorithm: {kind: descend, step: 4 %}
"""


def test_a_search_controller_of_another_package_brackets_the_truth(tmp_path):
    site = tmp_path / "site"
    installed("search", site)
    (tmp_path / "knee.yaml").write_text(SEARCH)
    done = weir(site, "search", "knee.yaml", "--json", "--out", "made", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (goal,) = json.loads(done.stdout)["goals"]
    lower, upper = goal["lower"]["load_fps"], goal["upper"]["load_fps"]
    assert lower < 10.6e6 <= upper
    assert lower == pytest.approx(0.96 * upper)
    assert "'descend' is an algorithm of another package" in goal["rfc9971_deviations"]
    again = weir(site, "report", "made", cwd=tmp_path)
    assert again.returncode == 0, again.stderr


def test_a_field_of_that_controller_is_checked_with_its_place(tmp_path):
    site = tmp_path / "site"
    installed("search", site)
    (tmp_path / "knee.yaml").write_text(SEARCH.replace("step: 4 %", "step: 0 %"))
    done = weir(site, "check", "knee.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "knee.yaml:14:30: search.algorithm.step:" in done.stderr


@pytest.fixture
def with_testbed(tmp_path):
    installed("testbed", tmp_path / "site")
    device = "testbed: {kind: sim, device: {kind: knee, capacity: 10.6 Mframe/s}}"
    own = SEARCH.replace(device, "testbed: {kind: polled, turn: 50 us, most: 256}")
    (tmp_path / "polled.yaml").write_text(own.replace("descend, step: 4 %", "mdr"))
    return tmp_path / "site"


def test_a_testbed_of_another_package_is_searched(with_testbed, tmp_path):
    done = weir(with_testbed, "search", "polled.yaml", "--json", "--out", "made", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (goal,) = json.loads(done.stdout)["goals"]
    assert goal["lower"]["load_fps"] <= 256 / 50e-6 < goal["upper"]["load_fps"]
    again = weir(with_testbed, "report", "made", cwd=tmp_path)
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("turn: 50 us", "turns: 50 us", "polled.yaml:4:25: testbed.turns: unknown field"),
        ("run:", "network: {kind: star, hosts: 2, link: {rate: 1 Gbit/s}}\nrun:", "has its own network"),
        ("source: {kind: constant", "source: {kind: poisson", "a polled device is offered a constant load"),
    ],
)
def test_what_such_a_testbed_does_not_know_is_refused(with_testbed, tmp_path, right, wrong, message):
    spoilt = tmp_path / "polled.yaml"
    text = spoilt.read_text() + "run: {seed: 1}\n"
    assert right in text
    spoilt.write_text(text.replace(right, wrong))
    done = weir(with_testbed, "search", "polled.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_study_of_another_package_is_listed_reproduced_and_shown(tmp_path):
    site = tmp_path / "site"
    installed("study", site)
    listed = weir(site, "reproduce", "--json", cwd=tmp_path)
    names = [study["name"] for study in json.loads(listed.stdout)["studies"]]
    assert names[-1] == "half-loaded"
    done = weir(site, "reproduce", "half-loaded", "--quick", "--json", "--out", "made", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["published"], row["verdict"]) == (0.25, "holds")
    for place in (site, tmp_path / "nothing"):  # the page of what is no longer installed has its verdicts
        assert weir(place, "report", "made", cwd=tmp_path).returncode == 0


def test_an_entry_point_that_is_no_study_is_refused_by_name(tmp_path):
    site = tmp_path / "site"
    installed("study", site)
    (site / "half_loaded" / "__init__.py").write_text("STUDY = 5\n")
    done = weir(site, "reproduce", "half-loaded", cwd=tmp_path)
    assert done.returncode == 2
    assert (
        "'half_loaded:STUDY', which an entry point of the group 'weirlab.studies' names, is no" in done.stderr
    )


CONTROLLER = ROOT / "examples" / "search" / "src" / "descend" / "__init__.py"


@pytest.mark.parametrize(
    ("whole", "broken", "said"),
    [
        (
            "return Descent(goals, loads, self.step)",
            "return 1 / 0",
            "making the controller failed: ZeroDivision",
        ),
        (
            "return Descent(goals, loads, self.step)",
            "return None",
            "its goals and loads failed: AttributeError",
        ),
        (
            "self.goals, self.loads, self._step = goals, loads",
            "self.goals, self.loads, self._step = goals, 5",
            "'loads'",
        ),
        ('{"kind": "descend", "step": self._step}', '{"step": self._step}', "'settings' has no 'kind'"),
        ('{"kind": "descend", "step": self._step}', '{"kind": self}', "'settings' failed: TypeError"),
        ('return "descending"', "raise KeyError", "'phase' failed: KeyError"),
        (
            "return None if place is None else Wish(",
            "return None if place is None else (",
            "which is no Wish",
        ),
        (
            "Wish(self._next_fps(place)",
            "Wish(2 * self._next_fps(place)",
            "'ask' wants 2.97619e+07 frames/s, outside",
        ),
        ("self.goals[place].duration_s)", "0.0)", "'ask' wants a trial of 0 s"),
        ("Wish(self._next_fps(place)", "Wish(None", "whose load_fps is no number"),
        ("Wish(self._next_fps(place)", "Wish('fast'", "whose load_fps is no number"),
        ("self.goals[place].duration_s)", "'1')", "whose duration_s is no number"),
        ("self.goals[place].duration_s)", "1.0, 'much')", "whose loss_budget is no number"),
        ("self.goals[place].duration_s)", "1.0, 2.0)", "'ask' wants a loss budget of 2, outside"),
        ("self.goals[place].duration_s)", "1.0, 0.1, 1.0)", "'ask' wants a look after 1 s, outside"),
        (
            "self.goals[place].duration_s)",
            "1.0, purpose='fun')",
            "whose purpose is not one of search, warm-up",
        ),
        ("lower=self._lower[i]", "lower=5", "'findings' gave a Finding whose lower cannot be 5"),
        (
            "lower=self._lower[i]",
            "not_stationary=None, lower=self._lower[i]",
            "whose not_stationary cannot be None",
        ),
        (
            '{"kind": "descend", "step": self._step}',
            '{"kind": "descend", "step": float("nan")}',
            "'settings' failed: ValueError",
        ),
        ("self._upper[i] = outcome", "raise SystemExit(0)", "'tell' failed: SystemExit: 0"),
        ("self._upper[i] = outcome", "raise BaseException('odd')", "'tell' failed: BaseException: odd"),
        ("self._upper[i] = outcome", "raise ValueError('odd')", "'tell' failed: ValueError: odd"),
        (
            "for i in range(len(self.goals))\n        ]",
            "for i in ()\n        ]",
            "'findings' gave 0, not a Finding",
        ),
    ],
    ids=[
        "make",
        "none",
        "loads",
        "kind",
        "json",
        "phase",
        "wish",
        "beyond",
        "empty",
        "load-none",
        "load-text",
        "duration-text",
        "budget-text",
        "budget",
        "look",
        "purpose",
        "lower",
        "not-stationary",
        "nan",
        "exit",
        "base-exception",
        "tell",
        "findings",
    ],
)
def test_a_broken_controller_is_told_as_a_fault_of_its_package(tmp_path, whole, broken, said):
    site = tmp_path / "site"
    installed("search", site)
    assert whole in CONTROLLER.read_text()
    (site / "descend" / "__init__.py").write_text(CONTROLLER.read_text().replace(whole, broken))
    (tmp_path / "knee.yaml").write_text(SEARCH)
    done = weir(site, "search", "knee.yaml", "--out", "made", cwd=tmp_path)
    assert done.returncode == 1
    assert said in done.stderr
    assert "'descend' of descend 0.1.0, not of weirlab" in done.stderr
    assert "bug in weirlab" not in done.stderr


def test_a_controller_that_cannot_be_copied_searches_without_an_estimate_of_the_time(tmp_path):
    site = tmp_path / "site"
    installed("search", site)
    text = CONTROLLER.read_text().replace(
        "        self.goals, self.loads",
        "        self.steps = (step for step in ())\n        self.goals, self.loads",
    )
    (site / "descend" / "__init__.py").write_text(text)
    (tmp_path / "knee.yaml").write_text(SEARCH)
    done = weir(site, "search", "knee.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_an_unknown_algorithm_is_told_with_where_such_kinds_come_from(tmp_path):
    (tmp_path / "knee.yaml").write_text(SEARCH)
    done = weir(tmp_path / "nothing", "check", "knee.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "unknown kind 'descend'; kinds: binary, mdr, mlr, weir" in done.stderr
    said = "(entry points of the group 'weirlab.controllers'), and none installed adds 'descend'"
    assert said in done.stderr


@pytest.mark.parametrize(
    ("whole", "broken", "said"),
    [
        ("return Trial(", "1 / 0; return Trial(", "trial 0 of the testbed failed: ZeroDivisionError"),
        (
            "        return Trial(",
            "        return dict(",
            "trial 0 of the testbed failed: TypeError: a trial gives",
        ),
        (
            "    assert isinstance(scenario.testbed, Polled)",
            "    exit(0)",
            "opening the testbed failed: SystemExit: 0",
        ),
        ("return only_the_load(", "return 1 / 0, (", "what the testbed refuses failed: ZeroDivisionError"),
        (
            "return only_the_load(",
            "return 'no', (",
            "what the testbed refuses failed: TypeError: a refusal is",
        ),
    ],
)
def test_a_broken_testbed_is_reported_as_a_fault_of_its_package(with_testbed, tmp_path, whole, broken, said):
    (source,) = with_testbed.glob("*/__init__.py")
    text = source.read_text()
    assert whole in text
    source.write_text(text.replace(whole, broken))
    done = weir(with_testbed, "search", "polled.yaml", "--out", "made", cwd=tmp_path)
    reported = " ".join(done.stderr.split())
    assert done.returncode not in {0, 70}, done.stderr
    assert said in reported
    assert "a fault of the kind 'polled' of" in reported
    assert "Traceback" not in done.stderr
    assert "bug in weirlab" not in reported


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("def reproduce(effort):\n    return 1 / 0\n", "failed: ZeroDivisionError: division by zero"),
        (
            "def reproduce(effort):\n    return 5\n",
            "TypeError: half_loaded.study:reproduce must return",
        ),
        ("", "failed: AttributeError"),
    ],
)
def test_a_broken_study_is_reported_as_a_fault_of_its_package(tmp_path, broken, said):
    site = tmp_path / "site"
    installed("study", site)
    home = site / "half_loaded" / "__init__.py"
    home.write_text(
        "from weirlab.reproductions import Reproduction\n"
        "STUDY = Reproduction(title='Half', source='none', rows='half_loaded.study:reproduce')\n"
    )
    (site / "half_loaded" / "study.py").write_text(broken)
    done = weir(site, "reproduce", "half-loaded", "--quick", "--out", "made", cwd=tmp_path)
    reported = " ".join(done.stderr.split())
    assert done.returncode not in {0, 70}, done.stderr
    assert said in reported
    assert "a fault of the kind 'half-loaded' of half-loaded" in reported
    assert "bug in weirlab" not in reported


def test_a_measure_that_failed_leaves_the_rest_to_compare(with_measure, tmp_path):
    text = MEASURE.replace('pl.DataFrame({"replicate": [0], "value": [1.0]})', "1 / 0")
    (with_measure / "slowest_flow" / "__init__.py").write_text(text)
    (tmp_path / "two.yaml").write_text(SCENARIO.replace(", window: 5 ms .. 10 ms", ""))
    for name, seed in (("a", "1"), ("b", "2")):
        weir(with_measure, "run", "two.yaml", "--seed", seed, "--out", name, cwd=tmp_path)
    done = weir(with_measure, "compare", "a", "b", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    reported = " ".join(done.stdout.split())
    assert "small: delivered rate" in reported
    assert "a: measure 'slowest' failed: ZeroDivisionError" in reported
    assert "not compared" in reported
