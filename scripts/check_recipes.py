"""Every file and folder that CONTRIBUTING.md and ARCHITECTURE.md name exists, and the layers are as they say.

    python scripts/check_recipes.py

A place is a piece of code that ends like a file or a folder: `crates/weir-core/src/cc/`, `searches/build.py`.
It is the end of the path of a file or folder that git knows; `*` stands for anything. Names in capitals
stand for what a reader chooses, as in `measures/SUBJECT.py`: their folder must exist.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("CONTRIBUTING.md", "ARCHITECTURE.md")
MADE = {"docs/commands.md", "docs/tables.md"}
"""Written when the documentation is built."""
TOPS = (
    "",
    "python/weirlab",
    "crates",
    "crates/weir-core/src",
    "crates/weir-core/tests/it",
    "crates/weir-sim/src",
)
_CODE = re.compile(r"`([^`\n]+)`|\]\(([^)#\s]+)\)")
_FILE = re.compile(r"[\w./*-]+\.(?:rs|py|md|toml|yaml|sh|ipynb)|[\w.*-]+(?:/[\w.*-]+)*/")


def places(text: str) -> Iterator[tuple[int, str]]:
    """(line, place) of all files and folders that a page names."""
    for number, line in enumerate(text.splitlines(), 1):
        for match in _CODE.finditer(line):
            for word in (match[1] or match[2]).split():
                if _FILE.fullmatch(word) and not word.startswith(("http", "results/", "target/")):
                    yield number, word


def exists(place: str) -> bool:
    """Whether there is a file or folder of which this is the end of the path."""
    if place in MADE:
        return True
    path = Path(place)
    while re.search(r"[A-Z]{3,}", path.name) and path.suffix != ".md":
        path = path.parent
    return any(fnmatchcase(f"/{known}", f"*/{path}") for known in _known())


@cache
def _known() -> frozenset[str]:
    """All files of the repository and their folders."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    files = [Path(name) for name in listed.stdout.decode().splitlines() if (ROOT / name).exists()]
    return frozenset(str(path) for file in files for path in (file, *file.parents))


def _layers() -> str:
    """The layers of the package, the lowest first, as ARCHITECTURE.md has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    return " <- ".join(layer.replace(" |", ",") for layer in reversed(contract["layers"]))


def main() -> int:
    """Report the places that are missing."""
    missing = [
        f"{page}:{number}: {place}: there is no such file"
        for page in PAGES
        for number, place in places((ROOT / page).read_text(encoding="utf-8"))
        if not exists(place)
    ]
    layers = _layers()
    if layers not in " ".join((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split()):
        missing.append(f"ARCHITECTURE.md: the layers of pyproject.toml are {layers}")
    print("\n".join(missing) or "all places that recipes name exist")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
