"""The search laboratory: truths that are known, fair conditions, contestants of one's own."""

from __future__ import annotations

import json
import math
import random
import shutil
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

import weirlab
from weirlab.cli.app import application
from weirlab.cli.search_lab import _sentences
from weirlab.errors import ImpossibleTrial, InputError, MissingCapability
from weirlab.searches import LoadRange, SearchGoal, lab_kept
from weirlab.searches.lab import Experiment, compare, goal_sets, means, summary, truth_fps
from weirlab.searches.lab_devices import DEVICES
from weirlab.searches.lab_families import CHANGING, STEADY
from weirlab.searches.lab_files import known
from weirlab.searches.lab_kept import Searches
from weirlab.testbed.devices import DeepBuffer, Gradual, Inversion, Knee, Offer, RandomDrops

LOADS = LoadRange(2e4, 29.76e6)
NDR = SearchGoal.ndr(duration_s=10.0)
PDR = SearchGoal.pdr(duration_s=10.0)


def experiment(**changes) -> Experiment:
    settings = {
        "controllers": ["mlrsearch-1.2.1", "weir"],
        "devices": ["knee", "buffer"],
        "goals": ["10s"],
        "searches": 3,
    }
    return Experiment(**{**settings, **changes})


@pytest.mark.parametrize(
    ("device", "goal", "expected_fps"),
    [
        (Knee(capacity_fps=9e6), NDR, 9e6),
        (Knee(capacity_fps=9e6), PDR, 9e6 / 0.995),
        (Inversion(run_spread=0.0, trial_spread=0.0), NDR, 8e6),
        (DeepBuffer(), NDR, 10e6 + 600_000 / 10.0),
        # One loss in 10 s on average is seen with probability 1/2 at ln 2 of it.
        (RandomDrops(), NDR, 10e6 * math.log(2.0) * 2.0 / 10.0),
        (Gradual(), PDR, 8e6 + 2e6 * math.sqrt(0.5)),
    ],
    ids=["knee NDR", "knee PDR", "inversion", "buffer", "drops", "gradual"],
)
def test_the_truth_is_that_of_theory(device, goal: SearchGoal, expected_fps: float) -> None:
    tolerance = 0.25 if isinstance(device, RandomDrops) else 1e-3
    assert truth_fps(device, goal, LOADS, seed=1) == pytest.approx(expected_fps, rel=tolerance)


def test_a_device_that_loses_nothing_has_no_truth() -> None:
    assert truth_fps(Knee(capacity_fps=1e9), NDR, LOADS, seed=1) is None


def test_the_result_does_not_depend_on_the_number_of_processes() -> None:
    one = compare(experiment(), processes=1)
    assert_frame_equal(one, compare(experiment(), processes=2))
    assert one.height == 2 * 2 * 3 * 2


def test_both_goals_of_a_search_are_rows_with_its_time_and_bounds_within_the_width() -> None:
    frame = compare(experiment(width=0.01))
    assert frame["goal"].unique().sort().to_list() == ["NDR", "PDR"]
    widths = 1.0 - frame["lower_fps"] / frame["upper_fps"]
    assert widths.max() <= 0.01 * (1 + 1e-9)
    assert frame["lower_error"].is_between(-0.0105, 0.001).all()
    times = frame.group_by("controller", "device", "seed").agg(pl.col("time_s").n_unique())
    assert times["time_s"].max() == 1


def test_the_baseline_has_ratio_one_and_weir_is_faster_on_a_plain_knee() -> None:
    table = summary(compare(experiment(devices=["knee"], searches=5)), "mlrsearch-1.2.1")
    ratio = {row["controller"]: row["ratio"] for row in table.to_dicts()}
    assert ratio["mlrsearch-1.2.1"] == pytest.approx(1.0)
    assert ratio["weir"] < 0.85


def test_every_device_keeps_the_beginning_of_a_trial_when_it_is_cut_short() -> None:
    """The law that early stop rests on: what is lost up to a time never becomes less."""
    for name, entry in {**DEVICES, **STEADY, **CHANGING}.items():
        device = entry(random.Random(1)) if callable(entry) else entry
        for index, load_fps in enumerate((3.6e6, 7.2e6, 8.9e6, 9.99e6, 10.2e6, 12e6)):
            lost = []
            for duration_s in (0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 3.7, 5.0, 10.0):
                offer = Offer(
                    frames=round(load_fps * duration_s),
                    duration_s=duration_s,
                    frame_size_bytes=64,
                    index=index,
                    elapsed_s=5.0,
                    seed=3,
                    steady_fps=load_fps,
                )
                received = device.received_frames(offer)
                assert 0 <= received <= offer.frames
                lost.append(offer.frames - received)
            # Frames are whole: a knee may round by one.
            assert all(b >= a - 1 for a, b in pairwise(lost)), (name, load_fps, lost)


MINE = """
from weirlab.searches.mdr import Mdr
from weirlab.testbed.devices import Knee

CONTROLLERS = {"mdr-4": lambda goals, loads: Mdr(goals, loads, intermediate_phases=4)}
DEVICES = {"slow": Knee(capacity_fps=1e6)}
"""


def test_a_file_adds_controllers_and_devices(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    frame = compare(
        experiment(controllers=["mdr", "mdr-4"], devices=["slow"], searches=1, file=file), processes=2
    )
    assert set(frame["controller"]) == {"mdr", "mdr-4"}
    assert frame["truth_fps"].drop_nulls().is_between(0.99e6, 1.02e6).all()
    assert "slow" in known(file).devices


def test_what_is_wrong_is_silent_or_marked() -> None:
    """The library takes a device that is cold for one that stays so; `weir` says that it has changed."""
    table = summary(compare(experiment(devices=["warm-up"], searches=4)), "mlrsearch-1.2.1")
    by = {row["controller"]: row for row in table.to_dicts()}
    library, weir = by["mlrsearch-1.2.1"], by["weir"]
    assert (library["wrong_silent"], library["marked"]) == (1.0, 0.0)
    assert (weir["wrong_silent"], weir["marked"]) == (0.0, 1.0)
    assert weir["wrong_marked"] > 0.0


def test_giving_up_early_does_not_count_as_being_fast() -> None:
    table = summary(compare(experiment(devices=["knee", "warm-up"], searches=4)), "mlrsearch-1.2.1")
    by = {(row["controller"], row["device"]): row for row in table.to_dicts()}
    assert by["weir", "warm-up"]["gave_up"] == 1.0
    assert by["weir", "knee"]["gave_up"] == by["mlrsearch-1.2.1", "warm-up"]["gave_up"] == 0.0
    rows = {row["controller"]: row for row in means(table, "mlrsearch-1.2.1").to_dicts()}
    assert rows["weir"]["mean"] == rows["weir"]["worst"] == pytest.approx(by["weir", "knee"]["ratio"])
    assert (rows["weir"]["devices"], rows["weir"]["left_out"]) == (1, ["warm-up"])
    assert (rows["mlrsearch-1.2.1"]["devices"], rows["mlrsearch-1.2.1"]["wrong_silent"]) == (2, 0.5)
    nothing_left = means(table.filter(pl.col("device") == "warm-up"), "weir").to_dicts()
    assert {row["mean"] for row in nothing_left} == {None}


def test_searches_that_are_kept_are_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "searches.jsonl"
    whole = compare(experiment(controllers=["mlr", "weir"]))
    compare(experiment(controllers=["mlr"], searches=2), kept=kept)
    kept.write_text(kept.read_text() + '{"goals": [{"control')  # killed while it was written
    assert_frame_equal(compare(experiment(controllers=["mlr", "weir"]), kept=kept), whole)

    def refuse(*_: object) -> None:
        raise AssertionError("searched again")

    monkeypatch.setattr("weirlab.searches.lab._searched", refuse)
    assert_frame_equal(compare(experiment(controllers=["mlr", "weir"]), kept=kept), whole)
    with pytest.raises(InputError, match=r"searches.jsonl.*width was 0.00581 there and is 0.01 here"):
        compare(experiment(controllers=["mlr"], width=0.01), kept=kept)


def test_searches_of_other_code_are_not_mixed_with_those_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who changes an algorithm and repeats the command would otherwise see the old one."""
    kept = tmp_path / "searches.jsonl"
    compare(experiment(controllers=["mlr"], searches=1), kept=kept)
    monkeypatch.setattr("weirlab.searches.lab_kept._code", lambda: "another")
    with pytest.raises(InputError, match=r"code was .* there and is .*another"):
        compare(experiment(controllers=["mlr"], searches=1), kept=kept)


@pytest.mark.parametrize("module", ["searches/weir.py", "searches/checks.py", "testbed/devices.py"])
def test_other_code_is_code_that_differs_in_any_module_that_decides_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    home = Path(weirlab.__file__).parent
    for package in ("searches", "testbed"):
        shutil.copytree(home / package, tmp_path / package)
    monkeypatch.setattr(weirlab, "__file__", str(tmp_path / "__init__.py"))
    before = lab_kept._code()
    with (tmp_path / module).open("a") as file:
        file.write("# changed\n")
    assert lab_kept._code() != before


@pytest.mark.parametrize(
    "line", ["[]", '{"goals": []}', '{"goals": [{"controller": "mlr"}]}', '{"searches": 1}', "not JSON"]
)
def test_a_damaged_file_of_searches_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    kept = tmp_path / "searches.jsonl"
    compare(experiment(controllers=["mlr"], devices=["knee"], searches=1), kept=kept)
    kept.write_text(kept.read_text() + line + "\n")
    with pytest.raises(InputError, match=r"searches\.jsonl:3: damaged log of the laboratory"):
        compare(experiment(controllers=["mlr"], devices=["knee"], searches=1), kept=kept)


@pytest.mark.parametrize("content", [b"[]\n", b"\xff\xfe\n", b"some notes\n"])
def test_a_file_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    kept = tmp_path / "searches.jsonl"
    kept.write_bytes(content)
    with pytest.raises(InputError, match=r"searches\.jsonl: not a log of the laboratory"):
        compare(experiment(controllers=["mlr"], searches=1), kept=kept)
    assert kept.read_bytes() == content


def test_two_comparisons_do_not_write_into_one_file(tmp_path: Path) -> None:
    kept = tmp_path / "searches.jsonl"
    with (
        Searches(kept, asdict(experiment())),
        pytest.raises(InputError, match="another comparison is writing"),
    ):
        compare(experiment(), kept=kept)


def test_another_release_of_the_library_is_not_taken_for_the_one_that_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("weirlab.searches.lab_peer.version", lambda _: "1.3.0")
    with pytest.raises(MissingCapability, match=r"pip install MLRsearch==1\.2\.1 \(there is 1\.3\.0\)"):
        compare(experiment(controllers=["mlrsearch-1.2.1"], devices=["knee"], searches=1))


def test_names_that_stand_twice_are_told() -> None:
    with pytest.raises(InputError, match="the device 'knee' is named twice"):
        compare(experiment(devices=["knee", "buffer", "knee"]))


def test_names_that_there_are_not_and_files_that_fail_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no controller is called 'wier'; there are binary, mdr"):
        compare(experiment(controllers=["wier"]))
    with pytest.raises(InputError, match="no set of goals is called '11s'"):
        compare(experiment(goals=["11s"]))
    with pytest.raises(InputError, match="no such file"):
        compare(experiment(file=tmp_path / "none.py"))
    (tmp_path / "broken.py").write_text("CONTROLLERS = {")
    with pytest.raises(InputError, match="SyntaxError"):
        compare(experiment(file=tmp_path / "broken.py"))


FAULTY = """\
from __future__ import annotations

from dataclasses import dataclass

from weirlab.searches.mdr import Mdr


class Fails(Mdr):
    def ask(self):
        return self.goals[7]


class Elsewhere(Mdr):
    def ask(self):
        return super().ask().__class__(1e12, 1.0)


class Silent(Mdr):
    def findings(self):
        return []


class First(Mdr):
    def __init__(self, goals, loads):
        super().__init__(goals[:1], loads)


class Backwards(Mdr):
    def __init__(self, goals, loads):
        super().__init__(goals[::-1], loads)


@dataclass(frozen=True)
class Broken:
    share: float = 0.0

    def received_frames(self, offer):
        return round(offer.frames / self.share)


@dataclass(frozen=True)
class Magic:
    def received_frames(self, offer):
        return offer.frames + 1


CONTROLLERS = {"fails": Fails, "elsewhere": Elsewhere, "silent": Silent}
DEVICES = {"broken": Broken(), "magic": Magic(), "undrawn": lambda chance: chance.nothing()}
DEVICES["quits"] = lambda _: exit("no")
CONTROLLERS |= {"first": First, "backwards": Backwards}
"""


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(
    ("controller", "device", "message"),
    [
        ("fails", "knee", r"mine.py:10: controller 'fails' on device 'knee': IndexError: "),
        ("elsewhere", "knee", r"mine.py: controller 'elsewhere' on device 'knee': ValueError: .* outside of"),
        ("mdr", "broken", r"mine.py:38: device 'broken': ZeroDivisionError: "),
        ("mdr", "quits", r"mine.py:49: device 'quits': SystemExit: no"),
        ("mdr", "undrawn", r"mine.py:48: device 'undrawn': AttributeError: .*'nothing'"),
    ],
)
def test_what_fails_in_a_file_of_the_users_is_told_with_its_line(
    tmp_path: Path, controller: str, device: str, message: str, processes: int
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FAULTY)
    with pytest.raises(InputError, match=message):
        compare(
            experiment(controllers=[controller], devices=[device], searches=1, file=file),
            processes=processes,
        )


@pytest.mark.parametrize("processes", [1, 2])
def test_what_weirlab_refuses_of_a_file_of_the_users_is_told_with_the_file(
    tmp_path: Path, processes: int
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FAULTY)
    with pytest.raises(ImpossibleTrial, match="received") as caught:
        compare(experiment(devices=["magic"], searches=1, file=file), processes=processes)
    assert caught.value.__notes__ == [f"it was device 'magic', with what {file} defines"]


@pytest.mark.parametrize(
    ("controller", "message"),
    [
        ("silent", r"controller 'silent' returned 0 findings for 2 goals \(NDR, PDR\)"),
        ("first", r"controller 'first' returned 1 finding for 2 goals"),
        ("backwards", "controller 'backwards' has the goals PDR, NDR, but was given NDR, PDR"),
    ],
)
def test_a_controller_that_leaves_goals_out_is_told_so_with_its_file(
    tmp_path: Path, controller: str, message: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FAULTY)
    with pytest.raises(InputError, match=message) as caught:
        compare(experiment(controllers=[controller], devices=["knee"], searches=1, file=file))
    assert str(file) in caught.value.__notes__[0]


def test_a_file_that_was_mended_before_any_search_was_kept_is_taken(tmp_path: Path) -> None:
    file, kept = tmp_path / "mine.py", tmp_path / "searches.jsonl"
    mine = experiment(controllers=["first"], devices=["knee"], searches=1, file=file)
    file.write_text(FAULTY)
    with pytest.raises(InputError, match="1 finding"):
        compare(mine, kept=kept)
    file.write_text(FAULTY.replace("goals[:1]", "goals"))
    assert len(compare(mine, kept=kept)) == 2
    file.write_text(FAULTY)
    with pytest.raises(InputError, match="another comparison"):
        compare(mine, kept=kept)


def test_a_fault_that_is_none_of_the_users_stays_a_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FAULTY)

    def bug(*_: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("weirlab.searches.lab._searched", bug)
    with pytest.raises(ZeroDivisionError, match="ours"):
        compare(experiment(controllers=["mdr"], devices=["knee"], searches=1, file=file))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("lab.py", "x = 1\nDEVICES = {'x': y}", r"lab.py:2: NameError"),
        ("lab.py", "x = 1\nDEVICES = {", r"lab.py:2: SyntaxError: '\{' was never closed"),
        ("lab.py", "x = 1\nraise SystemExit(3)", r"lab.py:2: SystemExit: 3"),
        ("lab.py", "x = 1\nraise BaseException(3)", r"lab.py:2: BaseException: 3"),
        ("lab.yaml", "DEVICES: {}", "is no Python file"),
        ("lab.py", "DEVICES = 3", "DEVICES must be a dict by name"),
        ("lab.py", "DEVICES = {'x': 3}", "device 'x' must have a method received_frames"),
        ("lab.py", "CONTROLLERS = {'x': 3}", "controller 'x' must be a function of goals and loads"),
    ],
)
def test_a_file_that_defines_something_else_is_told(tmp_path: Path, name, text, message) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        known(tmp_path / name)


def test_the_sets_of_goals_are_equal_for_all() -> None:
    for name, goals in goal_sets(0.007).items():
        assert [goal.width for goal in goals] == [0.007, 0.007], name
        assert [goal.loss_ratio for goal in goals] == [0.0, 0.005]


@pytest.mark.parametrize(
    ("mean", "wrong", "told"),
    [
        (
            0.5,
            0.0,
            "weir was fastest, 0.500 of the time of mdr,",
        ),
        (0.5, 0.1, "none was faster than mdr"),
        (1.2, 0.0, "none was faster than mdr"),
        (None, None, "none was faster than mdr"),
    ],
)
def test_the_command_ends_with_the_fastest_controller_that_is_wrong_no_more_often(mean, wrong, told) -> None:
    columns = ["goals", "controller", "mean", "wrong_silent"]
    rows = [("10s", "mdr", 1.0, 0.0), ("10s", "weir", mean, wrong)]
    assert _sentences(pl.DataFrame(rows, columns, orient="row"), "mdr") == [
        f"Goals 10s: {told} without more results that are wrong silently."
    ]


def test_the_command_prints_tables_and_keeps_the_searches(tmp_path: Path) -> None:
    options = ["search-lab", "--controllers", "mlr, weir", "--devices", "knee", "--searches", "2"]
    out = CliRunner().invoke(application(), [*options, "--threads", "1", "--out", str(tmp_path / "lab")])
    assert out.exit_code == 0, out.output
    assert "relative to mlr" in out.stdout
    assert "\nGoals 10s: " in out.stdout
    assert "wrong, silent" in " ".join(out.stdout.split())
    assert pl.read_parquet(tmp_path / "lab/searches.parquet").height == 8
    assert (tmp_path / "lab/search-lab-10s.svg").read_text().startswith("<svg")
    document = CliRunner().invoke(application(), [*options, "--processes", "1", "--json"])
    rows = json.loads(document.stdout)["rows"]
    assert [row["controller"] for row in rows] == ["mlr", "weir"]
    assert [row["left_out"] for row in json.loads(document.stdout)["means"]] == [[], []]
    assert "left out" in " ".join(out.stdout.split())
