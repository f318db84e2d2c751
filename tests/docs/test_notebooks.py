"""The notebooks in `examples/` run from top to bottom; each asserts what it says."""

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


@pytest.mark.parametrize("file", NOTEBOOKS, ids=[file.stem for file in NOTEBOOKS])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_notebook_runs_and_shows_tables_and_charts(file: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(file, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    shown = [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert any("<table" in page for page in shown)
    assert any("vegaEmbed" in page for page in shown)
    assert not list(tmp_path.iterdir())


def test_there_are_two_notebooks_and_they_are_kept_without_outputs() -> None:
    assert [file.stem for file in NOTEBOOKS] == ["first-steps", "study"]
    for file in NOTEBOOKS:
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        assert not any(cell.get("outputs") for cell in cells)
