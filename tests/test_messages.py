"""Sentences of messages that are written in several literals."""

import io
import itertools
import re
import tokenize
from pathlib import Path

import weirlab

_LITERAL = re.compile(r"""(?s)[A-Za-z]*('''|\"""|'|")(?P<text>.*)\1""")


def _literals(code):
    """Lines and texts of literals that stand one after the other, without docstrings."""
    run = []
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.STRING:
            run.append((token.start[0], _LITERAL.fullmatch(token.string)["text"]))
        elif token.type not in (tokenize.NL, tokenize.COMMENT):
            yield run
            run = []


CODE = re.compile(r"<\w|\(\?")
"""Of HTML and regular expressions, which are no sentences."""


def _faults(code):
    for run in _literals(code):
        for (_, first), (line, second) in itertools.pairwise(run):
            seam = first[-1:] + second[:1]
            if re.fullmatch(r"[^\s{}\\]{2}", seam) and not first.endswith("\\n") and not CODE.search(first):
                yield line, f"no blank at the seam: {first[-20:]}|{second[:20]}"
            if re.fullmatch(r"  ", seam):
                yield line, f"two blanks at the seam: {first[-20:]}|{second[:20]}"
        for line, text in run:
            if "\n" not in text and re.search(r"(?<!\\)[a-z,;.)] {2,}[a-z(]", text):
                yield line, f"two blanks: {text}"


def test_literals_that_make_a_sentence_have_one_blank_between_them():
    faults = [
        f"{file.name}:{line}: {fault}"
        for file in sorted(Path(weirlab.__file__).parent.rglob("*.py"))
        for line, fault in _faults(file.read_text(encoding="utf-8"))
    ]
    assert faults == []


def test_a_sentence_that_is_broken_is_found():
    broken = 'say("the link is" "full")\nsay("it is " " full")\nsay("two  blanks")\nsay("fine, " "it is")\n'
    assert [line for line, _ in _faults(broken)] == [1, 2, 3]
