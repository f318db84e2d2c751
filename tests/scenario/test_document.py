"""YAML as scenarios read it: text stays text, places are kept, and what is no scenario says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from weirlab.errors import ScenarioError
from weirlab.scenario import load
from weirlab.scenario.file import document


def plain(text: str) -> object:
    return document.parse(text, "f.yaml").plain()


def complaints(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        document.parse(text, "f.yaml")
    return str(caught.value).splitlines()


def test_scalars_are_what_they_look_like() -> None:
    text = "on: no\ntime: 12:30\noctal: 0o17\nexponent: 1e3\ndate: 2020-01-01\nyes: 'null'\nbase: 190:20:30"
    assert plain(text) == {
        "on": "no",
        "time": "12:30",
        "octal": "0o17",
        "exponent": "1e3",
        "date": "2020-01-01",
        "yes": "null",
        "base": "190:20:30",
    }


@pytest.mark.parametrize("nothing", ["", "~", "null", "Null", "NULL", "# a remark"])
def test_nothing_is_none(nothing: str) -> None:
    assert plain(f"a: {nothing}\n") == {"a": None}


def test_a_byte_order_mark_and_line_ends_of_windows_are_harmless() -> None:
    assert plain("\ufeffa: 1\r\nb: [x, y]\r\n") == {"a": "1", "b": ["x", "y"]}


def test_an_alias_repeats_its_anchor() -> None:
    assert plain("a: &x {p: 1}\nb: *x\n") == {"a": {"p": "1"}, "b": {"p": "1"}}


def test_a_key_and_an_item_know_their_places() -> None:
    tree = document.parse("a:\n  b: [x,\n      y]\n", "f.yaml")
    assert tree.nearest(("a", "b")).place == ("f.yaml", 2, 3)
    assert tree.nearest(("a", "b", 1)).place == ("f.yaml", 3, 7)
    assert tree.nearest(("a", "nothing", "below")).place == ("f.yaml", 1, 1)


TRAPS = {
    "an empty file": (
        "",
        "f.yaml:1:1: the file is empty; a scenario begins with 'weirlab: 1' and 'name: ...'",
    ),
    "remarks only": (
        "# x\n",
        "f.yaml:1:1: the file is empty; a scenario begins with 'weirlab: 1' and 'name: ...'",
    ),
    "a list": ("- a\n", "f.yaml:1:1: a scenario is a mapping that begins with 'weirlab: 1' and 'name: ...'"),
    "a word": (
        "incast\n",
        "f.yaml:1:1: a scenario is a mapping that begins with 'weirlab: 1' and 'name: ...'",
    ),
    "two documents": (
        "a: 1\n---\nb: 2\n",
        "f.yaml:2:1: a second document begins here; a file holds one scenario",
    ),
    "a key twice": ("a: 1\nb: 2\na: 3\n", "f.yaml:3:1: 'a' is here twice; first in line 1"),
    "a key twice in a nested mapping": (
        "a: {x: 1, x: 2}\n",
        "f.yaml:1:11: 'x' is here twice; first in line 1",
    ),
    "a list as a key": ("? [x]\n: 1\n", "f.yaml:1:3: a name is expected here, not a list or a mapping"),
    "a merge key": (
        "a: &x {p: 1}\nb:\n  <<: *x\n",
        "f.yaml:3:3: merge keys ('<<') are not used in scenarios; use 'extends: FILE' or an alias",
    ),
    "a tag": ("a: !!int 3\n", "f.yaml:1:4: tags such as 'tag:yaml.org,2002:int' are not used in scenarios"),
    "a tag that runs code elsewhere": (
        "a: !!python/object/apply:eval [x]\n",
        "f.yaml:1:4: tags such as 'tag:yaml.org,2002:python/object/apply:eval' are not used in scenarios",
    ),
    "a tab": ("a:\n\tb: 1\n", "f.yaml:2:1: there is a tab; indent with spaces"),
    "an unquoted group": (
        "from: @hosts\n",
        "f.yaml:1:7: text that begins with '@' needs quotes, such as \"@...\"",
    ),
    "an unquoted glob": (
        "at: *->switch-0\n",
        "f.yaml:1:7: text that begins with '*' needs quotes, such as \"*->switch-0\"",
    ),
    "an unknown anchor": (
        "at: *all\n",
        "f.yaml:1:5: there is no anchor '&all' above; text that begins with '*' needs quotes",
    ),
    "an anchor inside itself": ("a: &x [*x]\n", "f.yaml:1:8: '*x' contains itself"),
    "unquoted brackets in a list": (
        "join: [ep-[0-3], es]\n",
        "f.yaml:1:11: '[' is not possible inside the list [...] that begins in line 1; "
        "put quotes around text that begins with one of @ * & % ! ` or holds [ ] { } , : #",
    ),
    "an open mapping": (
        "a: {b: 1\n",
        "f.yaml:2:1: the file ends inside the mapping {...} that begins in line 1",
    ),
    "an open quote": ("a: 'x\n", "f.yaml:2:1: the file ends inside the quoted text that begins in line 1"),
    "a line that is indented too far": (
        "a: 1\n  b: 2\n",
        "f.yaml:2:4: a ':' is not possible here; check the indentation and the lines before",
    ),
    "a control character": ("a: x\x07\n", "f.yaml:1:5: the character '\\x07' is not possible in a text file"),
    "an escaped one": ('a: "x\\0"\n', "f.yaml:1:4: the character '\\x00' is not possible in a text file"),
    "half of a character": (
        'a: "\\ud800"\n',
        "f.yaml:1:4: the character '\\ud800' is not possible in a text file",
    ),
}


@pytest.mark.parametrize(("text", "message"), TRAPS.values(), ids=TRAPS.keys())
def test_a_trap_is_told_with_its_place(text: str, message: str) -> None:
    assert complaints(text) == [message]


def test_several_faults_are_told_at_once() -> None:
    assert len(complaints("a: 1\na: 2\n<<: {}\nb: !!int 3\n")) == 3


def test_deep_nesting_ends_in_a_message() -> None:
    assert complaints("[" * 100_000) == ["f.yaml:1:52: nested more than 50 deep"]
    assert complaints("a: " + "{x: " * 10_000) == ["f.yaml:1:201: nested more than 50 deep"]


def test_aliases_that_multiply_end_in_a_message() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 30)]
    (complaint,) = complaints("\n".join(lines))
    assert complaint.endswith("more than 100000 values: this is no scenario file")


class TestFiles:
    def refusal(self, path: Path) -> str:
        with pytest.raises(ScenarioError) as caught:
            document.read(path)
        (problem,) = caught.value.problems
        assert problem.file == str(path)
        return str(caught.value).removeprefix(str(path))

    def test_a_missing_file(self, tmp_path: Path) -> None:
        assert self.refusal(tmp_path / "x.yaml") == ": there is no such file"

    def test_a_name_that_no_file_can_have(self, tmp_path: Path) -> None:
        assert self.refusal(tmp_path / "x\0.yaml") == ": there is no such file"
        assert self.refusal(tmp_path / ("x" * 5000)) == ": cannot be read: File name too long"
        with pytest.raises(ScenarioError, match="cannot be read: File name too long"):
            load("x" * 5000)

    def test_a_directory(self, tmp_path: Path) -> None:
        assert (
            self.refusal(tmp_path)
            == ": this is a directory; name a scenario file (of a result, its scenario.yaml)"
        )

    def test_a_file_below_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_text("a: 1")
        assert self.refusal(tmp_path / "x" / "y.yaml") == ": cannot be read: Not a directory"

    def test_a_huge_file(self, tmp_path: Path) -> None:
        (tmp_path / "x.yaml").write_bytes(b"# remark\n" * 200_000)
        assert self.refusal(tmp_path / "x.yaml") == ": larger than 1000 kB: this is no scenario file"

    def test_another_encoding(self, tmp_path: Path) -> None:
        (tmp_path / "x.yaml").write_bytes("name: x\ndescription: Größe\n".encode("latin-1"))
        assert self.refusal(tmp_path / "x.yaml") == ":2:16: this is not UTF-8 text; save the file as UTF-8"

    def test_utf_16(self, tmp_path: Path) -> None:
        (tmp_path / "x.yaml").write_bytes("name: x\n".encode("utf-16"))
        assert self.refusal(tmp_path / "x.yaml") == ":1:1: this is not UTF-8 text; save the file as UTF-8"
