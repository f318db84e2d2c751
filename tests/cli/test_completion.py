"""What the shell offers on Tab."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

PROGRAM = "import sys; sys.argv = ['weir']; from weirlab.cli import main; main()"
HEAVY = "import sys; sys.stderr.write(' '.join(sys.modules))"


def offered(words: str, *, shell: str = "zsh", count: int | None = None) -> list[str]:
    """The completions of the last word of a command line."""
    if shell == "bash":
        told = {"COMP_WORDS": words, "COMP_CWORD": str((count or len(words.split())) - 1)}
    else:
        told = {"_TYPER_COMPLETE_ARGS": words}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **told, "_WEIR_COMPLETE": f"complete_{shell}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    text = done.stdout
    if shell == "zsh":
        return [part.split('"')[0].replace("\\:", ":") for part in text.split('"')[1::2]]
    return [line for line in text.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "some", "none"),
    [
        ("weir search ", {"search-knee", "router-ndr"}, {"incast", "bulk-cern"}),
        ("weir run ", {"incast", "load-and-buffer"}, {"search-knee", "bulk-cern", "wan-path"}),
        ("weir study ", {"load-and-buffer"}, {"incast", "router-ndr"}),
        ("weir bulk ", {"bulk-cern"}, {"incast", "search-knee"}),
        ("weir emulate ", {"wan-path"}, {"incast"}),
        ("weir check ", {"incast", "search-knee", "bulk-cern"}, set()),
        ("weir run inc", {"incast"}, {"load-and-buffer"}),
        ("weir search-lab --devices knee,any-", {"knee,any-drops", "knee,any-regime"}, {"knee,all"}),
        ("weir search-lab --controllers mdr,we", {"mdr,weir", "mdr,weir-no-guard"}, {"mdr,mdr"}),
    ],
)
def test_completion_knows_the_command(words: str, some: set[str], none: set[str]) -> None:
    found = set(offered(words, shell="bash", count=len(words.split(" "))))
    assert some <= found
    assert not none & found


def test_paths_of_the_scenario_complete_level_by_level() -> None:
    assert {"network.", "traffic.", "run."} <= set(offered("weir run incast --set ", shell="bash", count=5))
    run = ["run.duration=", "run.seed=", "run.engine=", "run.flows="]
    assert offered("weir run incast --set run.", shell="bash") == run  # those that the file writes come first
    assert offered("weir run incast --set tra", shell="zsh")[:3] == [
        "traffic.load.from=",
        "traffic.load.to=",
        "traffic.load.source.",
    ]
    # One that is alone would end the word: what lies below it is offered instead.
    assert "traffic.load.source." in offered("weir run incast --set tra", shell="bash")
    assert "run.seed=" in offered("weir run bcn-delay --set run.", shell="bash")


@pytest.mark.parametrize("words", ["weir report ", "weir compare mine ", "weir search --resume "])
def test_results_complete_where_they_are_kept(words, tmp_path, monkeypatch) -> None:
    for place in ("mine", "results/incast-20260101-120000"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "manifest.json").touch()
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    count = len(words.split(" "))
    assert offered(words, shell="bash", count=count) == ["mine", "results/incast-20260101-120000"]
    assert offered(f"{words}results/i", shell="bash") == ["results/incast-20260101-120000"]


@pytest.mark.parametrize(
    ("words", "some"),
    [
        ("weir run incast --set control.", {"control.bcn.", "control.pause."}),
        ("weir run incast --set control.bcn.", {"control.bcn.congestion_point."}),
        ("weir run incast --set queues.egress.", {"queues.egress.marking."}),
        ("weir run l4s --set traffic.l4s.transport.", {"traffic.l4s.transport.ecn="}),
        ("weir search search-knee --set search.", {"search.strict=", "search.algorithm."}),
    ],
)
def test_fields_that_the_file_does_not_write_complete_too(words: str, some: set[str]) -> None:
    assert some <= set(offered(words, shell="bash"))


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("incast --set run.engine", {"event", "slotted"}),
        ("incast --set queues.egress.kind", {"drop-tail", "codel", "dual-pi2"}),
        ("incast --set network.kind", {"star", "fat-tree", "graph"}),
        ("l4s --set traffic.l4s.transport.ecn", {"none", "classic", "dctcp", "accurate"}),
        ("l4s --set traffic.l4s.transport.sack", {"true", "false"}),
    ],
)
def test_a_field_of_words_completes_to_all_of_them(path: str, values: set[str]) -> None:
    assert values <= set(offered(f"weir run {path} = ", shell="bash", count=7))


def test_every_path_of_every_ready_made_scenario_is_known_to_completion() -> None:
    from weirlab.cli.completion import _at, _fields_of, _held, _models, _tree
    from weirlab.scenario.file.ready import ready_made

    def paths(part: object, above: str) -> Iterator[str]:
        for name, below in part.items() if isinstance(part, dict) else ():
            path = f"{above}.{name}" if above else name
            if path.split(".")[0] in ("weirlab", "extends", "name", "description", "study", "campaign"):
                continue
            yield path
            yield from paths(below, path)

    known = {name for fields in _models().values() for name in fields}
    for name, file in ready_made().items():
        tree = _tree(name)
        if "\nextends: " in file.read_text():  # another kind leaves fields of the file below it
            continue
        for path in paths(tree, ""):
            above, _, last = path.rpartition(".")
            held = _held(tree, above)
            assert "each" in held or last in _fields_of(held, _at(tree, above)) or last not in known, path


def test_the_fields_that_complete_are_those_of_the_models() -> None:
    from weirlab.scenario import completing

    made = completing.FILE.read_text(encoding="utf-8")
    assert made == completing.text(), "run python -m weirlab.scenario.reference"


def test_values_complete_in_shells_that_break_words_at_the_sign_and_in_those_that_do_not() -> None:
    kinds = offered("weir run incast --set queues.egress.kind = ", shell="bash", count=7)
    assert "drop-tail" in kinds
    assert offered("weir run incast --set traffic.load.source.kind = po", shell="bash") == ["poisson"]
    assert "traffic.load.source.kind=poisson" in offered(
        "weir run incast --set traffic.load.source.kind=po", shell="zsh"
    )
    assert "100ms" in offered("weir run incast --set run.duration = 1", shell="bash")


def test_a_file_completes_its_own_paths_and_a_wrong_one_none(tmp_path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("weirlab: 1\nextends: base.yaml\nrun: {seed: 3}\n")
    (tmp_path / "base.yaml").write_text("weirlab: 1\nname: base\nnetwork: {kind: star, hosts: 3}\n")
    known = offered(f"weir run {file} --set network.", shell="bash")
    assert known == ["network.kind=", "network.hosts=", "network.link.", "network.switch."]
    file.write_text("{")
    assert offered(f"weir run {file} --set net", shell="bash") == []


def test_names_of_devices_are_those_of_the_laboratory() -> None:
    from weirlab.cli.completion import complete_controllers, complete_devices
    from weirlab.searches.lab import PEERS
    from weirlab.searches.lab_files import known

    assert set(complete_devices("")) == {"all", "drawn", *known(None).devices}
    assert set(complete_controllers("")) == {*known(None).controllers, *PEERS}


@pytest.mark.parametrize(
    "words", ["weir search s", "weir run incast --set run.", "weir search-lab --devices k"]
)
def test_completion_loads_nothing_heavy(words: str) -> None:
    program = PROGRAM.replace("main()", "\ntry:\n    main()\nfinally:\n    " + HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "_WEIR_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout
    assert not {"typer", "pydantic", "polars", "numpy", "rich"} & set(done.stderr.split())
