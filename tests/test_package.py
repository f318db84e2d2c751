"""The front page of the package."""

import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib import import_module
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest

import weirlab
from weirlab.cli.app import COMMANDS, application
from weirlab.scenario import testbeds

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


def imported(text: str) -> set[tuple[str, str]]:
    """What a text takes from modules of the package, as (module, name); mypy sees neither tests nor pages."""
    found = re.findall(r"^[ >]*from (weirlab[\w.]*) import (\([^)]*\)|[^\n#;]*)", text, re.MULTILINE)
    return {(module, name) for module, names in found for name in re.findall(r"(\w+)(?: as \w+)?", names)}


def offers(module: str, name: str) -> bool:
    """Whether a module defines a name, has a module of it, or offers it: `from home import name as name`."""
    place = ROOT.joinpath("python", *module.split("."))
    if (place / name).is_dir() or any(place.glob(f"{name}.*")) or name == "__doc__":
        return True
    path = place.with_suffix(".py") if place.with_suffix(".py").exists() else place / "__init__.py"
    defined = (
        rf"^ *(class|def) {name}\b|^(    )?{name}(:|,| =)|\b{name} as {name}\b|, {name}\b.* =|^    \"{name}\""
    )
    return re.search(defined, text_of(path), re.MULTILINE) is not None


@cache
def text_of(path: Path) -> str:
    return path.read_text()


def test_nobody_takes_or_names_what_a_module_does_not_offer():
    texts = [
        path.read_text()
        for place in ("benches", "docs", "examples", "scripts", "tests")
        for path in (ROOT / place).rglob("*.[pm][yd]")
    ]
    taken = {pair for text in texts for pair in imported(text)}
    texts += [path.read_text() for path in (*ROOT.glob("*.md"), *(ROOT / "python").rglob("*.py"))]
    taken |= {pair for text in texts for pair in re.findall(r"`(weirlab[a-z_.]*)\.([A-Z]\w*)[`.(]", text)}
    assert len(taken) > 500
    assert not {pair for pair in taken if "_core" not in pair[0] and not offers(*pair)}


def test_the_module_of_each_testbed_offers_what_opens_it():
    ours = [each.HOME for each in testbeds.Testbed.__subclasses__() if each.__module__ == testbeds.__name__]
    assert len(ours) > 4
    for home in map(import_module, ours):
        assert callable(home.opened)
        assert callable(home.refusals)


def test_a_long_file_of_the_package_says_why_it_is_one():
    texts = {str(path): path.read_text() for path in (ROOT / "python").rglob("*.py")}
    long = {path: text[:2000] for path, text in texts.items() if text.count("\n") > 400}
    assert long
    assert not [path for path, head in long.items() if "One file" not in head and "Generated by" not in head]


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
