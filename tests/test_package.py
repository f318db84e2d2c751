"""The front page of the package."""

import subprocess
import sys

import pytest

import weirlab
from weirlab.cli.app import COMMANDS, application

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
    assert not modules.intersection({"numpy", "polars", "scipy", "weirlab.traces", "weirlab.report.run"})


def test_a_run_loads_nothing_that_only_its_report_needs(tmp_path):
    words = ["run", "incast", "--out", str(tmp_path / "out")]
    modules = loaded_after(f"from weirlab.cli.app import execute\nassert execute({words}) == 0")
    assert "polars" in modules
    unneeded = {"numpy", "scipy", "weirlab.traces", "weirlab.plots.series", "weirlab.studies"}
    assert not modules.intersection(unneeded)


def test_a_search_on_a_model_loads_no_scipy(tmp_path):
    words = ["search", "search-knee", "--out", str(tmp_path / "out")]
    modules = loaded_after(f"from weirlab.cli.app import execute\nassert execute({words}) == 0")
    assert "weirlab.searches.forwarding" in modules
    assert "scipy" not in modules


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
    assert not modules.intersection({"pydantic", "scipy", "weirlab.scenario", "weirlab.report.study"})
