"""The ready-made scenarios that come with the package."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from weirlab.errors import InputError

Starts = Literal["run", "study", "search", "bulk", "emulate"]
"""The command that starts a scenario; `run` starts studies, too."""

_PLACE = Path(__file__).resolve().parents[2] / "scenarios"


def ready_made() -> dict[str, Path]:
    """Files of the ready-made scenarios by name, in order."""
    return {file.stem: file for file in sorted(_PLACE.glob("*.yaml"))}


def needed_by(scenario: Path) -> list[Path]:
    """Other files next to a ready-made scenario that it needs: those that it extends, and programs that they
    run."""
    text = scenario.read_text(encoding="utf-8")
    found = [file for file in sorted(_PLACE.iterdir()) if file.suffix != ".yaml" and file.name in text]
    if extended := re.search(r"^extends: *(\S+)", text, re.MULTILINE):
        base = _PLACE / extended[1]
        found += [base, *(file for file in needed_by(base) if file not in found)]
    return found


def started_by(file: Path) -> Starts:
    """The command that starts a ready-made scenario, by its sections and those of the files that it extends;
    the shell asks for all of them on Tab, so that YAML would take too long."""
    sections: dict[str, str] = {}
    while True:
        text = file.read_text(encoding="utf-8")
        for found in re.finditer(r"^(\w+):(.*(?:\n[ #].*|\n)*)", text, re.MULTILINE):
            sections.setdefault(found[1], found[2])
        if (extended := re.search(r"^extends: *(\S+)", text, re.MULTILINE)) is None:
            break
        file = file.parent / extended[1]
    sections = {name: content for name, content in sections.items() if content.strip() != "null"}
    if "search" in sections:
        return "search"
    if "campaign" in sections:
        return "bulk"
    if re.search(r"\bnetns\b", sections.get("testbed", "")) and "hops" in sections["testbed"]:
        return "emulate"
    return "study" if "study" in sections else "run"


def scenario_file(name: str | Path) -> Path:
    """The file that a user means: a path that exists, or the name of a ready-made scenario. A directory of
    such a name, as of results, does not hide the scenario.

    Raises InputError when it is neither, unless it looks like a path.
    """
    path = Path(name)
    try:
        exists, is_file = path.exists(), path.is_file()
    except OSError:  # whoever reads it says why not
        return path
    if is_file or path.suffix or len(path.parts) > 1:
        return path
    files = ready_made()
    if path.name in files:
        return files[path.name]
    if exists:
        return path
    from weirlab.scenario.file.problems import did_you_mean, listed, with_words_of

    hint = did_you_mean(path.name, list(files))
    if not hint and (near := with_words_of(path.name, files)):
        hint = f"; ready-made are {listed(near)}"
    hint = hint or "; 'weir scenarios' lists the ready-made ones"
    raise InputError(f"{name}: there is no such file, and no ready-made scenario of that name{hint}")
