"""What README and docs show is what happens: commands parse, consoles print what stands there, Python runs.

A document may hold files (``{code-block} yaml`` with ``:caption: NAME``), consoles (``console``: lines
``$ weir ...`` with the output that follows) and Python (``python``; a fragment is ``py``). They run in the
order of the page, in one new directory, after those of the page that CONTINUES names for it. In an output
``...`` stands for anything within a line, and alone on a line for any number of lines. Consoles of README are
indented, and hold some of the lines.
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ("commands.md", "catalogue.md")
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.name not in GENERATED),
]
CONTINUES = {"docs/tutorial/study.md": "docs/tutorial/simulate.md"}
COLUMNS = "90"


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


def commands(page: Path) -> Iterator[tuple[int, list[str]]]:
    """The commands that a page shows, as arguments of ``weir``."""
    for block in blocks(page):
        text = re.sub(r"\\\n", "  ", block.text)
        for offset, line in enumerate(text.splitlines()):
            if found := re.match(r"\s*(\$ )?(\.venv/bin/)?weir (?P<rest>[^.].*)", line):
                # What follows after wide space without a comment sign is a remark, too.
                yield block.line + offset, shlex.split(re.split(r"\s{3,}", found["rest"])[0], comments=True)


SHOWN = [(page, line, arguments) for page in PAGES for line, arguments in commands(page)]


@pytest.mark.parametrize(
    ("page", "line", "arguments"), SHOWN, ids=[f"{p.relative_to(ROOT)}:{n}" for p, n, _ in SHOWN]
)
def test_a_command_on_a_page_is_one_that_the_program_takes(
    page: Path, line: int, arguments: list[str]
) -> None:
    from weirlab.cli.app import application

    command, parent = typer.main.get_command(application()), None
    if arguments[0] == "COMMAND":
        return
    while isinstance(command, typer.core.TyperGroup) and not arguments[0].startswith("-"):
        name, *arguments = arguments
        assert name in command.commands, f"there is no command {name}"
        command, parent = command.commands[name], typer.Context(command, info_name=name, parent=parent)
    context = typer.Context(command, info_name="weir", parent=parent)
    command.make_parser(context).parse_args(list(arguments))
    if parent is not None:  # options of weir itself act at once, such as --install-completion
        with contextlib.suppress(typer.Exit):
            command.make_context("weir", list(arguments), parent=parent)


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


def _run(block: Block, page: Path, there: Path) -> None:
    lines = block.text.splitlines()
    starts = [place for place, line in enumerate(lines) if line.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        line = lines[start][2:]
        arguments = shlex.split(line, comments=True)
        assert arguments[0] == "weir", f"{page}:{block.line + start}: only weir is run"
        done = subprocess.run(
            [sys.executable, "-m", "weirlab", *arguments[1:]],
            cwd=there,
            env={**os.environ, "COLUMNS": COLUMNS, "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        expected = lines[start + 1 : end]
        if block.language != "console":
            expected = ["...", *(part for shown in expected for part in (shown, "..."))]
        assert done.returncode == 0, f"{page.relative_to(ROOT)}:{block.line + start}: {line}:\n{done.stdout}"
        assert _matches(expected, done.stdout.splitlines()), (
            f"{page.relative_to(ROOT)}:{block.line + start}: {line} printed:\n{done.stdout}"
        )


def _is_console(block: Block) -> bool:
    """Whether its commands are run: not those of README that need a real path, or minutes."""
    elsewhere = ("$ weir emulate", "$ weir reproduce")
    return block.language == "console" or (
        block.text.startswith("$ weir") and not block.text.startswith(elsewhere)
    )


def _follow(page: Path, there: Path) -> int:
    before = CONTINUES.get(str(page.relative_to(ROOT)))
    ran = _follow(ROOT / before, there) if before else 0
    for block in blocks(page):
        if block.caption:
            (there / block.caption).write_text(block.text, encoding="utf-8")
        elif _is_console(block):
            _run(block, page, there)
            ran += 1
        elif block.language == "python":
            done = subprocess.run(
                [sys.executable, "-W", "error", "-c", block.text],
                cwd=there,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=300,
                check=False,
            )
            assert done.returncode == 0, f"{page.relative_to(ROOT)}:{block.line}:\n{done.stdout}"
            ran += 1
    return ran


NOT_RUN = {
    "docs/sensitivity.md": "reads the result of a study of 20 064 runs",
    "docs/traces.md": "reads a capture of the reader's",
    "docs/testbed-netns.md": "searches a real router for minutes",
}
"""Pages whose consoles and Python are not run, and why."""
EXECUTED = [
    page
    for page in PAGES
    if str(page.relative_to(ROOT)) not in NOT_RUN
    and any(block.language == "python" or _is_console(block) for block in blocks(page))
]


@pytest.mark.parametrize("page", EXECUTED, ids=[str(page.relative_to(ROOT)) for page in EXECUTED])
def test_a_page_shows_what_happens(page: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    assert _follow(page, tmp_path) > 0


@pytest.mark.live
def test_the_readme_shows_what_happens_over_a_real_path(tmp_path: Path) -> None:
    (block,) = (each for each in blocks(ROOT / "README.md") if each.text.startswith("$ weir emulate"))
    _run(block, ROOT / "README.md", tmp_path)


def test_an_output_that_differs_is_seen() -> None:
    assert _matches(["a", "...", "d ... f"], ["a  ", "b", "c", "d eee f"])
    assert not _matches(["a", "...", "d"], ["a", "b"])
    assert not _matches(["rate 5"], ["rate 6"])
    assert not _matches([], ["something"])
