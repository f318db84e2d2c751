"""Files that start Dask's own scheduler and workers on a cluster, and a study on them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from importlib import resources

from weirlab import _core
from weirlab.errors import InputError

_PORT = 8786

KINDS = {"slurm": "sbatch", "kubernetes": "yaml"}
"""Clusters for which files are written, and how these files end. The templates lie beside this."""


def cluster_file(on: str, words: Sequence[str], name: str, file: str) -> str:
    """The content of a file that starts a cluster, and on it the command of some words.

    Args:
        on: `slurm:N` or `kubernetes:N`, with the number of workers.
        words: The command line without `--on`.
        name: What the work is called there.
        file: What the file will be called.

    Raises InputError for any other text.
    """
    kind, _, many = on.partition(":")
    if kind not in KINDS or not many.isdecimal() or int(many) < 1:
        raise InputError(f"--on {on}: write the number of workers, such as {kind}:64")
    scheduler = f"tcp://{_label(name)}-scheduler:{_PORT}"
    facts = {
        "workers": int(many),
        "name": _label(name),
        "file": file,
        "port": _PORT,
        "version": _core.version(),
        # YAML has lists of texts as JSON has them.
        "command": shlex.join(words) if kind == "slurm" else json.dumps([*words, "--on", scheduler]),
    }
    template = resources.files("weirlab.execution") / f"cluster.{KINDS[kind]}.in"
    return re.sub(r"{{ (\w+) }}", lambda word: str(facts[word[1]]), template.read_text(encoding="utf-8"))


def _label(name: str) -> str:
    """A name as both take it: small letters, digits and hyphens, not too long."""
    kept = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.lower()).strip("-")
    return (f"weirlab-{kept}")[:50].rstrip("-")
