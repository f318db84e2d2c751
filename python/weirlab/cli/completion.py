"""What the shell offers on Tab. It must answer at once, so that nothing here loads the models of scenarios:
kinds and paths are read from the text of files, names of devices from the source."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weirlab.scenario.completing import Held

_HERE = Path(__file__).resolve().parent.parent
_STARTED: Mapping[str, tuple[str, ...]] = {
    "run": ("run", "study"),
    "study": ("study",),
    "search": ("search",),
    "bulk": ("bulk",),
    "emulate": ("emulate",),
    "check": (),
    "scenarios": (),
    "stability": (),
}
"""What commands start, of those that take a scenario; nothing where it may be any."""


def answered() -> bool:
    """Print what the shell asks for, where that is a scenario, a path of `--set`, a result or a name of the
    laboratory; else typer knows better."""
    asked = what_is_asked()
    if asked is None:
        return False
    shell, words, incomplete = asked
    found = _offers(words, incomplete)
    if not found:
        return False
    if shell == "bash":
        # It takes what follows '=' for a word of its own.
        after = incomplete.partition("=")[1]
        text = "\n".join(each.partition("=")[2] if after else each for each in found)
    else:
        quoted = (each.replace('"', '""').replace("'", "''").replace(":", r"\\:") for each in found)
        listed = "\n".join(f'"{each}"' for each in quoted)
        text = f"_arguments '*: :(({listed}))'"
    sys.stdout.write(text + "\n")
    return True


def what_is_asked() -> tuple[str, list[str], str] | None:
    """The shell, the words before the one to complete, without `weir`, and that one; None for another
    shell."""
    kind = os.environ["_WEIR_COMPLETE"]
    if kind == "complete_bash":
        words = _split(os.environ.get("COMP_WORDS", ""))
        place = int(os.environ.get("COMP_CWORD", "0"))
        words = [*words[: place + 1], *([""] if len(words) <= place else [])]
        # Bash breaks words at '='.
        joined: list[str] = []
        for word in words:
            if joined and joined[-1] and (word == "=" or joined[-1].endswith("=")):
                joined[-1] += word
            else:
                joined.append(word)
        return "bash", joined[1:-1], joined[-1]
    if kind == "complete_zsh":
        line = os.environ.get("_TYPER_COMPLETE_ARGS", "")
        words = [*_split(line), *([""] if line.endswith(" ") else [])]
        return "zsh", words[1:-1], words[-1]
    return None


def _split(line: str) -> list[str]:
    """The words of a line that may end within quotes."""
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _offers(words: Sequence[str], incomplete: str) -> list[str]:
    if not words or incomplete.startswith("-"):
        return []
    command, *given = words
    match given[-1] if given else "":
        case "--set":
            return _settings(given, incomplete)
        case "--devices" if command == "search-lab":
            return complete_devices(incomplete)
        case "--controllers" if command == "search-lab":
            return complete_controllers(incomplete)
        case "--resume":
            return _results(incomplete)
    if command in ("report", "compare", "view"):
        return _results(incomplete)
    if given or command not in _STARTED:
        return []
    return _scenarios(command, incomplete)


def complete_scenario(ctx: Any, incomplete: str) -> list[str]:
    """Names of the ready-made scenarios that the command starts; the shell completes files itself.

    `ctx` is the context of typer, which knows it by its name: this module does without typer.
    """
    return _scenarios(ctx.info_name or "", incomplete)


def _scenarios(command: str, incomplete: str) -> list[str]:
    from weirlab.scenario.file.ready import ready_made, started_by

    kinds = _STARTED.get(command, ())
    return [
        name
        for name, file in ready_made().items()
        if name.startswith(incomplete) and (not kinds or started_by(file) in kinds)
    ]


def _results(incomplete: str) -> list[str]:
    """Directories of results, here and in `results`, where commands keep them by default; the shell completes
    others itself."""
    manifests = (*Path().glob("*/manifest.json"), *Path().glob("results/*/manifest.json"))
    names = sorted(str(file.parent) for file in manifests)
    return [name for name in names if name.startswith(incomplete)]


def _settings(given: Sequence[str], incomplete: str) -> list[str]:
    """Paths that the scenario of the command may have, level by level, those first that it writes, and for
    `PATH=` the words that the field takes, or the values that it and the ready-made scenarios have there."""
    trees = (_tree(word) for word in given if not word.startswith("-"))
    tree: object = next(filter(None, trees), {})
    if not tree:
        return []
    path, equals, value = incomplete.partition("=")
    if equals:
        return [f"{path}={each}" for each in _values(tree, path) if each.startswith(value)]
    found = [incomplete]
    # The shell ends a word that has one completion only: go on below it.
    while len(found) == 1 and "=" not in found[0]:
        found = _below(tree, found[0])
    return [f"{found[0]}{each}" for each in _values(tree, found[0][:-1])] if len(found) == 1 else found


def _below(tree: object, incomplete: str) -> list[str]:
    """The paths that begin so, to their next dot or sign."""
    above, _, begun = incomplete.rpartition(".")
    written = _at(tree, above)
    section = written if isinstance(written, Mapping) else {}
    could = _fields_of(_held(tree, above), written)
    stem = f"{above}." if above else ""
    whole = {
        **{name: isinstance(below, Mapping) for name, below in section.items()},
        **{name: bool(held.keys() & {"of", "each"}) for name, held in could.items() if name not in section},
    }
    return [
        f"{stem}{name}" + ("." if has_parts else "=")
        for name, has_parts in whole.items()
        if name.startswith(begun) and name not in ("weirlab", "extends")
    ]


@cache
def _models() -> Mapping[str, Mapping[str, Held]]:
    """Of each model of a scenario its fields, with what they hold (`weirlab.scenario.completing`)."""
    found: Mapping[str, Mapping[str, Held]] = json.loads(
        (_HERE / "scenario" / "fields.json").read_text(encoding="utf-8")
    )
    return found


def _held(tree: object, path: str) -> Held:
    """What the field at a path may hold; nothing where there is none."""
    held: Held = {"of": {"name": "Scenario"}}
    written = tree
    for name in path.split(".") if path else ():
        each = held.get("each")
        held = each if each is not None else _fields_of(held, written).get(name, {})
        written = written.get(name) if isinstance(written, Mapping) else None
    return held


def _fields_of(held: Held, written: object) -> Mapping[str, Held]:
    """The fields of a part: those of the model that what is written chooses, by its kind or its first field;
    its kinds alone where it chooses none."""
    of = held.get("of", {})
    kind = written.get("kind") if isinstance(written, Mapping) else written
    named = next((each for each in written if each in of), None) if isinstance(written, Mapping) else None
    chosen = of.get(kind) if isinstance(kind, str) else None
    if chosen is None and (len(of) == 1 or named is not None):
        chosen = of[named] if named is not None else next(iter(of.values()))
    if chosen is not None:
        return _models()[chosen]
    return {"kind": {"words": list(of)}} if of else {}


def complete_devices(incomplete: str) -> list[str]:
    """Names of devices of the laboratory, of a list with commas the last one."""
    names = [
        *_keys("searches/lab_devices.py", "DEVICES"),
        *_keys("searches/lab_families.py", "STEADY", "CHANGING"),
    ]
    return _listed(incomplete, ["all", "drawn", *names])


def complete_controllers(incomplete: str) -> list[str]:
    """Names of controllers of the laboratory, of a list with commas the last one."""
    own = _keys("searches/lab_files.py", "CONTROLLERS")
    return _listed(incomplete, [*own, *_keys("searches/lab.py", "PEERS")])


def _listed(incomplete: str, names: Iterable[str]) -> list[str]:
    before, comma, begun = incomplete.rpartition(",")
    taken = before.split(",")
    return [f"{before}{comma}{name}" for name in names if name.startswith(begun) and name not in taken]


def _tree(name: str) -> object:
    """The sections of a file and of those that it extends; nothing where it cannot be read."""
    import yaml

    from weirlab.documents import over
    from weirlab.scenario.file.ready import ready_made

    loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # text, lists and mappings only
    file = ready_made().get(name, Path(name))
    merged: Mapping[str, object] = {}
    for _ in range(20):
        try:
            content = yaml.load(file.read_text(encoding="utf-8"), Loader=loader)
        except (OSError, ValueError, yaml.YAMLError):
            break
        merged = over(merged, content)
        if not isinstance(content, Mapping) or "extends" not in content:
            break
        file = file.parent / str(content["extends"])
    return merged


def _at(tree: object, path: str) -> object:
    for name in path.split(".") if path else ():
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    return tree


def _values(tree: object, path: str) -> list[str]:
    """What stands at a path, and what ready-made scenarios write for a field of that name; kinds only where
    they are of the same section."""
    from weirlab.scenario.file.ready import ready_made

    written = _at(tree, path)
    above_path, _, last = path.rpartition(".")
    # Of a kind all of its union; what else takes words says which.
    kinds = _held(tree, above_path).get("of", {}) if last == "kind" else {}
    known = _held(tree, path)
    words = [*kinds] or [*known.get("words", ()), *(known.get("of", {}) if isinstance(written, str) else ())]
    if words:
        return [*([written] if written in words else []), *(word for word in words if word != written)]
    texts = [written] if isinstance(written, str) else []
    *above, name = path.split(".")
    section = above[-1] if above else ""
    before = rf"\b{re.escape(section)}: *\{{" if name == "kind" else r"[{ ]"
    pattern = re.compile(rf"{before}{re.escape(name)}: *([^\s{{}}\[\],#][^{{}}\[\],#\n]*)")
    for file in ready_made().values():
        texts += pattern.findall(file.read_text(encoding="utf-8"))
    # A quantity is understood without its blank, of which the shell would make two words.
    values = (re.sub(r"(?<=\d) (?=\S+$)", "", text.strip().strip("\"'")) for text in texts)
    return list(dict.fromkeys(value for value in values if value and not re.search(r"\s", value)))


def _keys(file: str, *names: str) -> list[str]:
    """The keys of dicts at the top of a module."""
    keys = []
    for statement in ast.parse((_HERE / file).read_text(encoding="utf-8")).body:
        targets = (
            statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        )
        value = getattr(statement, "value", None)
        if isinstance(value, ast.Dict) and any(isinstance(t, ast.Name) and t.id in names for t in targets):
            keys += [key.value for key in value.keys if isinstance(key, ast.Constant)]
    return [str(key) for key in keys]
