"""From a file to a scenario: read, inherit, assign, validate, check."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from weirlab.errors import Problem, ScenarioError
from weirlab.scenario.checks import faults
from weirlab.scenario.file import document
from weirlab.scenario.file.assignment import set_at
from weirlab.scenario.file.document import Node
from weirlab.scenario.file.problems import explain
from weirlab.scenario.file.ready import ready_made, scenario_file
from weirlab.scenario.model import VERSION, Origin, Scenario, split_path

MAX_ANCESTORS = 20


def load(path: str | Path, assign: Mapping[str, object] | None = None) -> Scenario:
    """The scenario in the file `path`, with other values at the dotted paths of `assign`. The name of a
    ready-made scenario will do.

    Raises ScenarioError with every problem, in the order of the file.
    """
    return _scenario(_inherited(document.read(scenario_file(path)), ()), assign or {})


def loads(text: str, assign: Mapping[str, object] | None = None, *, file: str = "<text>") -> Scenario:
    """The scenario in `text`; `file` is what its problems call it, and where `extends` is looked for from."""
    return _scenario(_inherited(document.parse(text, file), ()), assign or {})


def assigned(scenario: Scenario, assignments: Mapping[str, object]) -> Scenario:
    """`scenario` with other values; see `Scenario.assign`."""
    if scenario._origin.tree.value:
        return _scenario(scenario._origin.tree, assignments, scenario)
    return _scenario(Node.of(scenario.dump()), assignments)


def build(scenario: Scenario, sections: Mapping[str, object]) -> None:
    """Give a scenario that is being made in Python its sections. Raises ScenarioError."""
    try:
        Scenario.__pydantic_validator__.validate_python(dict(sections), self_instance=scenario)
    except ValidationError as error:
        tree = Node.of(sections)
        raise ScenarioError(explain(error, Scenario, tree) + _further(tree, error)) from None
    if problems := faults(scenario):
        raise ScenarioError(problems)


def _scenario(tree: Node, assignments: Mapping[str, object], near: Scenario | None = None) -> Scenario:
    problems: list[Problem] = []
    for path, value in assignments.items():
        try:
            tree = set_at(tree, split_path(path), Node.of(value))
        except LookupError as error:
            problems.append(Problem(str(error), path=path))
    if problems:
        raise ScenarioError(problems)
    try:
        scenario = _validated(tree, near)
    except ValidationError as error:
        problems = explain(error, Scenario, tree)
        of_another_version = [
            problem for problem in problems if problem.path == "weirlab" and tree.entry("weirlab")
        ]
        problems = of_another_version or problems + _further(tree, error)
    else:
        problems = faults(scenario)
    if problems:
        raise ScenarioError(_in_order(problems, tree))
    return scenario


def _validated(tree: Node, near: Scenario | None = None) -> Scenario:
    """The scenario of a tree. Sections that it shares with that of another one are taken from there."""
    scenario = Scenario.__new__(Scenario)
    sections = tree.plain() if near is None or not isinstance(tree.value, dict) else _shared(tree.value, near)
    Scenario.__pydantic_validator__.validate_python(sections, self_instance=scenario)
    scenario._origin = Origin(tree, None if near is None else near._origin)
    return scenario


def _shared(entries: Mapping[str, Node], near: Scenario) -> dict[str, object]:
    before = near._origin.tree.value
    assert isinstance(before, dict)
    return {
        name: getattr(near, name) if before.get(name) is entry and name in _MODELS else entry.plain()
        for name, entry in entries.items()
    }


_MODELS = frozenset(Scenario.model_fields) - {"weirlab", "name", "description"}


def _further(tree: Node, error: ValidationError) -> list[Problem]:
    """Faults of the sections that `error` does not concern, so that all are reported at once."""
    broken = {str(fault["loc"][0]) for fault in error.errors()}
    assert isinstance(tree.value, dict)
    sound = {key: entry for key, entry in tree.value.items() if key not in broken}
    for key, stand_in in (("weirlab", str(VERSION)), ("name", "unnamed")):
        sound.setdefault(key, Node(stand_in, tree.place))
    return faults(_validated(Node(sound, tree.place)), broken)


def _in_order(problems: list[Problem], tree: Node) -> list[Problem]:
    """Each problem once, those of the main file first, then by line and column."""
    main = tree.place.file
    unique = dict.fromkeys(problems)
    return sorted(
        unique, key=lambda problem: (problem.file != main, problem.file, problem.line, problem.column)
    )


def _inherited(tree: Node, below: tuple[Path, ...]) -> Node:
    """`tree` merged into the file that it extends, if it does."""
    extends = tree.entry("extends")
    if extends is None or not isinstance(tree.value, dict):
        return tree
    own = Node({key: entry for key, entry in tree.value.items() if key != "extends"}, tree.place)
    place = extends.place

    def refused(message: str) -> ScenarioError:
        return ScenarioError([Problem(message, "extends", place.file, place.line, place.column)])

    if not isinstance(extends.value, str):
        raise refused("name one scenario file, such as 'extends: base.yaml'")
    parent = (Path(tree.place.file).parent / extends.value).resolve()
    chain = (*below, Path(tree.place.file).resolve())
    if parent in chain:
        names = " -> ".join(file.name for file in (*chain[chain.index(parent) :], parent))
        raise refused(f"the files extend each other in a circle: {names}")
    if len(chain) > MAX_ANCESTORS:
        raise refused(f"more than {MAX_ANCESTORS} files extend one another")
    shown = Path(tree.place.file).parent / extends.value
    name = extends.value.removesuffix(".yaml")
    try:
        exists, is_file = shown.exists(), shown.is_file()
    except OSError as error:
        raise refused(f"'{extends.value}' cannot be used: {error.strerror}") from None
    if name in ready_made() and not exists:
        write = f", and write 'extends: {name}.yaml'" if name == extends.value else ""
        raise refused(
            f"there is no file '{extends.value}' next to it: copy the ready-made scenario with "
            f"'weir scenarios {name} --copy {name}.yaml'{write}"
        )
    if exists and not is_file:
        raise refused(f"'{extends.value}' is not an ordinary file")
    try:
        base = document.read(shown)
    except ScenarioError as error:
        raise ScenarioError(
            [*refused(f"'{extends.value}' cannot be used").problems, *error.problems]
        ) from None
    return _merged(_inherited(base, chain), own)


def _merged(base: Node, own: Node) -> Node:
    """Entries of `own` over those of `base`; None removes, and another `kind` replaces the whole mapping."""
    if not (isinstance(base.value, dict) and isinstance(own.value, dict)):
        return own
    kinds = (base.entry("kind"), own.entry("kind"))
    if kinds[1] is not None and kinds[0] is not None and kinds[0].value != kinds[1].value:
        return own
    entries = dict(base.value)
    for key, entry in own.value.items():
        if entry.value is None and key in entries:
            del entries[key]
        else:
            entries[key] = _merged(entries[key], entry) if key in entries else entry
    return Node(entries, own.place)
