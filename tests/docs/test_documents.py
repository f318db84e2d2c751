"""What README and docs show is what happens: commands and Python run, and print what stands there.

A document may hold files (``{code-block} yaml`` with ``:caption: NAME``, or an indented block that starts
with ``# NAME.yaml``), consoles (``console``: lines ``$ weir ...`` with the output that follows), commands
(indented lines ``weir ...``) and Python (``python``; a fragment is ``py``). They run in the order of the
page, in one new directory, after those of the page that CONTINUES names for it; live ones in live tests.
`shown` says what is run otherwise than it stands, or not, and why. In an output ``...`` stands for anything
within a line, and alone on a line for any number of lines. Consoles of README are indented, and hold some of
the lines.
"""

import contextlib
import os
import pydoc
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from markdown_it import MarkdownIt

from docs.shown import (
    FIRST,
    FIRST_LIVE,
    FRAGMENTS,
    INSTEAD,
    LIVE_PYTHON,
    ROOT,
    SEARCH,
    SHORTER_PYTHON,
    WAYS,
    Way,
    give,
    way_of,
)
from execution.test_executors import Dask
from store.test_object_storage import bucket

__all__ = ["bucket"]

GENERATED = ("commands.md", "catalogue.md")
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.name not in GENERATED),
]
CONTINUES = {"docs/tutorial/study.md": "docs/tutorial/simulate.md"}
COLUMNS = "90"
COMMAND = re.compile(r"\s*(?P<prompt>\$ )?(\.venv/bin/)?weir (?P<rest>[^.].*)")


@dataclass(frozen=True)
class Block:
    """A block of code of a page; `line` is that of its first line, from 1."""

    language: str
    caption: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type not in ("fence", "code_block"):
            continue
        assert token.map is not None
        info = token.info.replace("{code-block}", "").strip()
        text, caption, line = token.content, "", token.map[0] + (2 if token.type == "fence" else 1)
        if found := re.match(r":caption: (?P<name>\S+)\n+", text):
            caption, text = found["name"], text[found.end() :]
        yield Block(info, caption, text, line)


def commands(block: Block) -> Iterator[tuple[int, list[str], list[str] | None]]:
    """The commands of a block, as arguments of `weir`, with their lines and the outputs that are shown."""
    lines = re.sub(r"\\\n\s*", "", block.text).splitlines()
    found = [(at, match) for at, line in enumerate(lines) if (match := COMMAND.match(line))]
    for place, (at, match) in enumerate(found):
        expected: list[str] | None = None
        if match["prompt"]:
            end = found[place + 1][0] if place + 1 < len(found) else len(lines)
            expected = lines[at + 1 : end]
            if block.language != "console":
                expected = ["...", *(part for line in expected for part in (line, "..."))]
        # What follows after wide space without a comment sign is a remark, too.
        arguments = shlex.split(re.split(r"\s{3,}", match["rest"])[0], comments=True)
        if arguments[0] != "COMMAND":
            yield block.line + at, arguments, expected


SHOWN = {
    f"{page.relative_to(ROOT)}:{line}": arguments
    for page in PAGES
    for block in blocks(page)
    for line, arguments, _ in commands(block)
}


@pytest.mark.parametrize("arguments", SHOWN.values(), ids=SHOWN)
def test_a_command_on_a_page_is_one_that_the_program_takes(arguments: list[str]) -> None:
    from weirlab.cli.app import application

    command, parent = typer.main.get_command(application()), None
    while isinstance(command, typer.core.TyperGroup) and not arguments[0].startswith("-"):
        name, *arguments = arguments
        assert name in command.commands, f"there is no command {name}"
        command, parent = command.commands[name], typer.Context(command, info_name=name, parent=parent)
    context = typer.Context(command, info_name="weir", parent=parent)
    command.make_parser(context).parse_args(list(arguments))
    if parent is not None:  # options of weir itself act at once, such as --install-completion
        with contextlib.suppress(typer.Exit):
            command.make_context("weir", list(arguments), parent=parent)


@pytest.mark.parametrize("pattern", WAYS)
def test_what_is_run_otherwise_stands_on_a_page(pattern: str) -> None:
    assert any(way_of(arguments) is WAYS[pattern] for arguments in SHOWN.values())


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_names_of_python_on_a_page_exist(page: Path) -> None:
    # A group of entry points is called like a package, or like one that does not exist.
    text = re.sub(r"entry points? `[^`]*`", "", page.read_text(encoding="utf-8"))
    for name in {*re.findall(r"`(weirlab(?:\.[A-Za-z_]\w*)+)", text)}:
        if not name.endswith(".json"):
            assert pydoc.locate(name) is not None, name


def _matches(expected: list[str], printed: list[str]) -> bool:
    pattern = ""
    for line in expected:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ ]*\n"
    return (
        re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in printed).replace("\u202f", " "))
        is not None
    )


def _is_python(block: Block) -> bool:
    return block.language in ("python", "py")


class Reader:
    """Follows pages in a directory, either what needs no real path or what does."""

    def __init__(self, there: Path, kept: Path, instead: Mapping[str, str], *, live: bool) -> None:
        self.there, self.kept, self.instead, self.live = there, kept, instead, live
        give(there)
        for name in ("home", "bin"):
            (there / name).mkdir()
        weir = there / "bin/weir"
        weir.write_text(f'#!/bin/sh\nexec {sys.executable} -m weirlab "$@"\n')
        weir.chmod(0o755)

    def do(self, words: Sequence[str], place: str, codes: Sequence[int] = (0,)) -> str:
        """What a program prints that ends as it should."""
        mine = {
            "COLUMNS": COLUMNS,
            "NO_COLOR": "1",
            "BROWSER": "true",
            "HOME": str(self.there / "home"),
            "PATH": f"{self.there / 'bin'}:{os.environ['PATH']}",
        }
        done = subprocess.run(
            # From bash, which `--install-completion` must find among the processes above it.
            ["bash", "-c", '"$@"; exit', "bash", *words],
            cwd=self.there,
            env=os.environ | mine,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1800,
            check=False,
        )
        assert done.returncode in codes, f"{place}: {shlex.join(words)}:\n{done.stdout}"
        return done.stdout

    def weir(self, arguments: Sequence[str], way: Way, place: str) -> str | None:
        """What a command prints; None where it is not run here."""
        if way.why_not or way.live != self.live:
            return None
        words = ["weir", *arguments, *shlex.split(way.more.replace("KEPT", shlex.quote(str(self.kept))))]
        for old, new in {**self.instead, **way.instead}.items():
            words = [word.replace(old, new) for word in words]
        if way.far:
            near = re.sub(r"192\.0\.2\.7|example\.net", "$WEIR_FAR", shlex.join(words))
            path = ["emulate", "--rate", "50mbit", "--delay", "5ms", "--far", way.far]
            words = ["weir", *path, "--", "sh", "-c", f"sleep 1; {near}"]
        return self.do([str(self.there / "bin/weir"), *words[1:]], place, way.codes)

    def follow(self, page: Path) -> None:
        """Do what a page shows."""
        name = str(page.relative_to(ROOT))
        if name in CONTINUES:
            self.follow(ROOT / CONTINUES[name])
        for command in (FIRST_LIVE if self.live else FIRST).get(name, []):
            self.weir(shlex.split(command), SEARCH if self.live else Way(), name)
        contents = list(blocks(page))
        for block in reversed(contents):  # some files stand below the commands that take them
            self.write(block)
        for block in contents:
            self.write(block)
            if _is_python(block) and self.live == (name in LIVE_PYTHON):
                text = FRAGMENTS[name] + block.text if block.language == "py" else block.text
                for old, new in SHORTER_PYTHON.items():
                    text = text.replace(old, new)
                self.do([sys.executable, "-W", "error", "-c", text], f"{name}:{block.line}")
            for line, arguments, expected in commands(block):
                printed = self.weir(arguments, way_of(arguments), f"{name}:{line}")
                if printed is not None and expected is not None:
                    command = shlex.join(arguments)
                    assert _matches(expected, printed.splitlines()), f"{name}:{line}: {command}:\n{printed}"

    def write(self, block: Block) -> None:
        """Write the file that a block is."""
        if "." in block.caption:
            (self.there / block.caption).write_text(block.text, encoding="utf-8")
        elif found := re.match(r"# (\S+\.yaml)\n", block.text):
            text = re.split(r"^weir ", block.text, flags=re.MULTILINE)[0]
            (self.there / found[1]).write_text(text, encoding="utf-8")


EXECUTED = [
    page for page in PAGES if any(_is_python(block) or list(commands(block)) for block in blocks(page))
]
LIVE = [
    page
    for page in EXECUTED
    if str(page.relative_to(ROOT)) in LIVE_PYTHON
    or any(way_of(arguments).live for block in blocks(page) for _, arguments, _ in commands(block))
]


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of all workers of a parallel run."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "kept"


@pytest.mark.parametrize("page", EXECUTED, ids=[str(page.relative_to(ROOT)) for page in EXECUTED])
def test_a_page_shows_what_happens(
    page: Path, tmp_path: Path, kept: Path, request: pytest.FixtureRequest
) -> None:
    instead = dict(INSTEAD)
    text = page.read_text(encoding="utf-8")
    if "s3://" in text:
        instead["s3://lab/runs"] = request.getfixturevalue("bucket")
    with contextlib.ExitStack() as servers:
        if "tcp://head:8786" in text:
            (tmp_path / "dask").mkdir()
            cluster = servers.enter_context(contextlib.closing(Dask(tmp_path / "dask")))
            cluster.start_workers()
            instead["tcp://head:8786"] = cluster.address
        Reader(tmp_path, kept, instead, live=False).follow(page)


@pytest.mark.live
@pytest.mark.parametrize("page", LIVE, ids=[str(page.relative_to(ROOT)) for page in LIVE])
def test_a_page_shows_what_happens_over_real_paths(page: Path, tmp_path: Path, kept: Path) -> None:
    Reader(tmp_path, kept, INSTEAD, live=True).follow(page)


def test_an_output_that_differs_is_seen() -> None:
    assert _matches(["a", "...", "d ... f"], ["a  ", "b", "c", "d eee f"])
    assert not _matches(["a", "...", "d"], ["a", "b"])
    assert not _matches(["rate 5"], ["rate 6"])
    assert not _matches([], ["something"])
