"""What the shell offers on Tab."""

import os
import subprocess
import sys

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
    assert offered("weir run incast --set run.", shell="bash") == ["run.duration=", "run.seed="]
    assert offered("weir run incast --set tra", shell="zsh") == [
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
    assert offered(f"weir run {file} --set network.", shell="bash") == ["network.kind=", "network.hosts="]
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
