"""The Python on the documentation pages runs as it stands there."""

from __future__ import annotations

import ast
import re
import runpy
import textwrap
from pathlib import Path

import pytest

from weirlab.searches.controller import __doc__ as controller_page

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[str]:
    return re.findall(r"```py(?:thon)?\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


def run(code: str, tmp_path: Path, **names: object) -> dict[str, object]:
    """Execute code and return its names."""
    path = tmp_path / "page.py"
    path.write_text(code)
    return runpy.run_path(str(path), names)


def test_a_device_of_your_own(capsys, tmp_path):
    (code,) = blocks("devices.md")
    run(code, tmp_path)
    ndr, pdr = ast.literal_eval(capsys.readouterr().out)
    assert 0 < ndr < 6.9e6
    assert pdr == pytest.approx(7e6 / 0.995, rel=0.006)


def test_a_search_in_python(capsys, monkeypatch, tmp_path):
    laboratory, code, loop = blocks("searching.md")
    assert set(run(laboratory, tmp_path)) >= {"CONTROLLERS", "DEVICES"}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    names = run(code, tmp_path)
    printed = capsys.readouterr().out.split()
    assert printed[0::2] == ["NDR", "PDR"]
    assert (tmp_path / "trials.jsonl").exists()
    search = names["build"](names["scenario"])
    run(loop, tmp_path, search=search, testbed=names["open_testbed"](names["scenario"]))
    assert [goal.lower.load_fps for goal in search.result().goals] == [float(fps) for fps in printed[1::2]]


def test_the_controller_in_twenty_lines(tmp_path):
    from weirlab.searches import ControlledSearch, LoadRange, SearchGoal, run_search
    from weirlab.searches.controller import Finding, Wish
    from weirlab.testbed.devices import Knee
    from weirlab.testbed.sim import DeviceTestbed

    code = textwrap.dedent(controller_page[controller_page.index("    class Descend") :])
    names = run(code, tmp_path, Finding=Finding, Wish=Wish)
    controller = names["Descend"](SearchGoal.ndr(duration_s=1.0, width=0.11), LoadRange(1e4, 1e6))
    result = run_search(
        ControlledSearch(controller, frame_size_bytes=64), DeviceTestbed(Knee(capacity_fps=3e5))
    )
    (goal,) = result.goals
    assert goal.regular
    assert goal.lower.load_fps <= 3e5 < goal.upper.load_fps
