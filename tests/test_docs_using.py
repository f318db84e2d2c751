"""The page on using Weirlab says what is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from weirlab.cli.app import execute
from weirlab.fields.base import kind_of
from weirlab.measures.registry import MEASURES
from weirlab.scenario.file.ready import ready_made
from weirlab.scenario.reference import rewritten

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "using.md").read_text(encoding="utf-8")
LINES = [line.split("#")[0].strip() for line in PAGE.splitlines() if line.startswith("    weir ")]


@pytest.mark.parametrize("line", LINES)
def test_every_command_line_names_a_command_and_options_that_exist(line, capsys):
    _, *words = line.split()
    command = [words[0]] if not words[0].startswith("-") else []
    assert execute([*command, "--help"]) == 0
    known = capsys.readouterr().out
    for option in re.findall(r"--[a-z-]+", line):
        assert option in known, option


def test_scenarios_that_are_named_exist():
    named = {line.split()[2] for line in LINES if line.split()[1] == "run"}
    assert named <= set(ready_made())
    assert named


def test_the_table_of_measures_is_that_of_the_models():
    page = (ROOT / "docs" / "measures.md").read_text(encoding="utf-8")
    assert rewritten(page) == page, "run: python -m weirlab.scenario.reference docs/measures.md"
    for measure in MEASURES:
        assert f"`{kind_of(measure)}`" in page, measure


def test_the_python_on_the_page_runs(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    short = ready_made()["incast"].read_text().replace("100 ms", "10 ms")
    (tmp_path / "incast.yaml").write_text(short)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=120)
    assert (tmp_path / "results" / "mine" / "manifest.json").exists()
