"""Check prose for words that are never right here, and say what to write instead.

Reads docs, README.md, ARCHITECTURE.md and CONTRIBUTING.md without code, of the commands (python/weirlab/cli)
the docstrings and the texts of ``help=``, and of the specs and tables in Rust the comments of which
documentation is made. Generated pages are left out. The tables of docs/scenarios.md come from
docstrings of python/weirlab/scenario: edit these.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GENERATED = {ROOT / f"docs/{name}.md" for name in ("commands", "tables", "catalogue")}
INSTEAD = {
    r"beside": "compared with, next to, during, with, in addition to",
    r"in the mean": "on average",
    r"in the place of": "instead of",
    r"(from|at|since|before|after|until|by) the begin": "start",
    r"foretell|foretold": "predict, predicted",
    r"(is|are|was|were|be|not|nothing is) told": "reported, given, noted, sent",
    r"told apart|tells? \w+( \w+)? apart": "distinguish",
    r"tells? of": "report, name",
    r"mend(s|ed|ing)?": "fix, correct",
    r"(whereof|thereof|wherein|heeds?|heeded)": "of which; obey, respond to",
    r"of one's own|that one has": "your own",
    r"dear and|and dear|(is|are) dear": "expensive",
    r"reckon(s|ed|ing)?": "compute, estimate",
    r"for ever": "forever, permanently",
    r"hardly ever": "rarely",
    r"(is|are) no matter (of|for)": "does not concern",
    r"neither of both": "neither",
    r"of whomever|of whoever": "from anybody",
}
IN_TEXTS = {
    r"(goes|go|going|went) on": "continue, work in progress",
    r"anew": "again",
    r"stands? (in|on|for|under|there|here|still)": "is in, means, does not move",
    r"in the course of": "during",
    r"(is|are|was|were) asked for": "offered, requested",
    r"none of (its|their) own|ways? by which": "no ..., how",
    r"by (whomever|whoever)|whoever \w+s": "anybody, on any ...",
    r"shortest ways?|equal ways?|ways? (for|of) (each|a|one) (message|packet|frame|flow)": "path",
    r"(take|takes|taken) (\w+ ){0,3}for (a loss|lost|losses)": "mistake for",
    r"go(es)? before": "precede, have priority",
    r"hears? (nothing|of|from)": "see, learn of",
    r"(is|was|were|not) at hand": "available",
    r"one behind the other": "one after the other",
    r"needs no fork": "without a fork",
    r"as ever": "as usual",
}
"""Of pages and commands alone."""


def compiled(words: dict[str, str]) -> dict[re.Pattern[str], str]:
    return {re.compile(rf"\b(?:{each})\b", re.IGNORECASE): instead for each, instead in words.items()}


WORDS, WORDS_OF_TEXTS = compiled(INSTEAD), compiled(INSTEAD | IN_TEXTS)
FENCE = re.compile(r"^(?P<mark>```+|~~~+).*?^(?P=mark)\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^(?: {4,}|\t)(?![-*\d]).*$|`[^`\n]*`|\]\([^)\n]*\)|<[^>\n]*>", re.MULTILINE)
QUOTED = re.compile(r'"[^"\n]*"|“[^”\n]*”')


def blank(found: re.Match[str]) -> str:
    return re.sub(r"\S", "_", found[0])


def prose_of_page(text: str) -> Iterator[tuple[int, str]]:
    for pattern in (FENCE, CODE, QUOTED):
        text = pattern.sub(blank, text)
    yield 1, text


def prose_of_commands(text: str) -> Iterator[tuple[int, str]]:
    """Docstrings, and the texts of help= and short_help=."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node) and isinstance(first := node.body[0], ast.Expr):
                yield first.lineno, CODE.sub(blank, ast.literal_eval(first.value))
        elif isinstance(node, ast.keyword) and node.arg in ("help", "short_help"):
            for part in ast.walk(node.value):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, CODE.sub(blank, part.value)


def prose_of_rust(text: str) -> Iterator[tuple[int, str]]:
    """Documentation comments, line by line."""
    for number, line in enumerate(text.splitlines(), 1):
        if comment := re.match(r"\s*//[/!] ?(.*)", line):
            yield number, CODE.sub(blank, comment[1])


def main() -> int:
    rust = {*ROOT.glob("crates/weir-core/src/spec/*.rs"), *ROOT.glob("crates/weir-sim/src/tables/*.rs")}
    rust.add(ROOT / "crates/weir-core/src/spec.rs")
    pages = {ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")}
    pages |= {*ROOT.glob("crates/*/README.md"), ROOT / "benches/README.md"}
    pages = {*ROOT.glob("docs/**/*.md"), *pages} - GENERATED
    found = []
    for file in sorted({*pages, *rust, *ROOT.glob("python/weirlab/cli/*.py")}):
        prose = prose_of_page if file in pages else prose_of_rust if file in rust else prose_of_commands
        for start, text in prose(file.read_text(encoding="utf-8")):
            for pattern, instead in (WORDS if file in rust else WORDS_OF_TEXTS).items():
                for match in pattern.finditer(text):
                    line = start + text.count("\n", 0, match.start())
                    found.append(f"{file.relative_to(ROOT)}:{line}: '{match[0]}': write {instead}")
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
