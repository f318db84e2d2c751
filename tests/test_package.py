"""The front page of the package."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest

import weirlab
from weirlab.cli.app import COMMANDS, application

ROOT = Path(__file__).parents[1]
HEAVY = ("numpy", "polars", "pydantic", "yaml", "rich", "altair", "psutil", "weirlab._core")


def loaded_after(statement: str) -> set[str]:
    """The modules that a fresh interpreter holds after a statement."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


def test_every_exported_name_exists_and_is_sorted():
    assert weirlab.__all__ == sorted(weirlab.__all__)
    for name in weirlab.__all__:
        assert getattr(weirlab, name) is not None
        assert name in dir(weirlab)


def test_run_stays_a_function_whatever_is_imported():
    for name in weirlab.__all__:
        getattr(weirlab, name)
    assert callable(weirlab.run)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        weirlab.nonsense  # noqa: B018 (the access is the test)


def test_there_is_a_version():
    assert weirlab.__version__.count(".") == 2


def test_importing_the_package_loads_nothing_heavy():
    assert not loaded_after("import weirlab").intersection(HEAVY)


def test_the_list_of_commands_loads_no_command():
    modules = loaded_after("from weirlab.cli.app import execute\nassert execute(['--help']) == 0")
    assert "typer" in modules
    assert not modules.intersection(f"weirlab.cli.{module}" for module, _ in COMMANDS.values())


def test_the_help_of_all_commands_loads_typer_and_nothing_heavy():
    modules = loaded_after("from weirlab.cli.app import application\napplication()")
    assert {"typer", "weirlab.cli.search_lab"} <= modules
    assert not modules.intersection(HEAVY)


def test_a_command_loads_its_own_module_and_no_other_command():
    modules = loaded_after("from weirlab.cli.app import application\napplication('check')")
    assert "weirlab.cli.check" in modules
    assert not modules.intersection({"weirlab.cli.search", "weirlab.cli.emulate", "weirlab.cli.trace"})


def test_a_check_loads_neither_polars_nor_numpy():
    modules = loaded_after("from weirlab.cli.app import execute\nassert execute(['check', 'incast']) == 0")
    assert "pydantic" in modules
    assert not modules.intersection({"numpy", "polars", "weirlab.traces", "weirlab.report.run"})


def test_a_run_loads_nothing_that_only_its_report_needs(tmp_path):
    words = ["run", "incast", "--out", str(tmp_path / "out")]
    modules = loaded_after(f"from weirlab.cli.app import execute\nassert execute({words}) == 0")
    assert "polars" in modules
    unneeded = {"numpy", "weirlab.traces", "weirlab.plots.series", "weirlab.studies"}
    assert not modules.intersection(unneeded)


def test_the_package_imports_nothing_that_it_does_not_declare():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    declared = {"pydantic_core"} | {re.split(r"[^\w-]", need)[0].lower() for need in needs}
    owners = packages_distributions()
    undeclared = {
        (module, path.name)
        for path in (ROOT / "python").rglob("*.py")
        for module in re.findall(r"^ *(?:from|import) (\w+)", path.read_text(), re.MULTILINE)
        if module in owners and not declared.intersection(name.lower() for name in owners[module])
    }
    assert not undeclared


@pytest.mark.parametrize("command", COMMANDS)
def test_the_module_of_a_command_has_it(command):
    app = application(command)
    groups = [group.name for group in app.registered_groups]
    assert command in [*(each.name for each in app.registered_commands), *groups]


def test_the_table_of_commands_leaves_none_out():
    app = application()
    assert {each.name for each in (*app.registered_commands, *app.registered_groups)} == set(COMMANDS)


def test_a_table_of_one_kind_of_result_loads_neither_the_other_kinds_nor_scenarios():
    modules = loaded_after("import weirlab.report.trace")
    assert "weirlab.plots.trace" in modules
    assert not modules.intersection({"pydantic", "weirlab.scenario", "weirlab.report.study"})


def test_hints_at_extras_name_extras_that_there_are():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    texts = [path.read_text() for place in ("python", "docs") for path in (ROOT / place).rglob("*.[pm][yd]")]
    named = {
        name
        for text in texts
        for name in re.findall(r"package=.*extra=\"(\w+)\"|install '\.\[(\w+)\]'", text)
    }
    assert {name for pair in named for name in pair if name} <= set(extras)
    assert not [text for text in texts if "install 'weirlab[" in text]  # no index has it
