"""A result on disk: a directory that holds everything needed to read, judge and repeat what was measured.

    scenario.yaml    the scenario as it was run, changes of the command line included
    resolved.json    the same with every default written out
    manifest.json    what this is, how far it came, and where, when and with what it was made
    tables/*.parquet records of a run, or points and measures of a study
    trials.jsonl     trials of a search, one line each, appended as they end
    result.json      the numbers that answer the question
    report.html, plots/

`manifest.json` says `running` from the beginning and `complete` only at the end; each other file appears
whole or not at all. So a crash leaves a directory that does not pass for a finished one.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Literal, cast, get_args

import psutil

from weirlab._core import version
from weirlab.documents import section, typed
from weirlab.errors import InputError, Interrupted, WeirlabError
from weirlab.files import whole
from weirlab.interruptions import claiming
from weirlab.working import left_over

FORMAT = 1
"""Version of the layout. A reader refuses a newer one."""

Kind = Literal["run", "search", "study", "search-study", "campaign", "reproduce", "trace", "path", "rapid"]
Status = Literal["running", "complete", "interrupted", "failed"]

_PACKAGES = ("numpy", "polars", "pydantic", "PyYAML", "pyroute2", "altair", "vl-convert-python")


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where, when and with what a result was made. Unknown facts are None."""

    weirlab: str
    """Version of the package and its compiled core."""
    revision: str | None = None
    """Commit of the checkout that the package runs from, `-dirty` where files differ from it; None for an
    installed package."""
    python: str
    packages: Mapping[str, str]
    host: str
    os: str
    kernel: str
    cpu: str | None
    cpus: int | None
    """Logical CPUs of the machine."""
    cpus_usable: int
    """Logical CPUs that this process may use."""
    memory_bytes: int | None
    load_average: tuple[float, float, float] | None
    """Over 1, 5 and 15 minutes, when the work began: high values disturb live measurements."""
    started: str
    """UTC, ISO 8601."""
    finished: str | None = None
    command: Sequence[str] = ()

    @classmethod
    def now(cls, command: Sequence[str] | None = None) -> Provenance:
        """Facts of this machine at this moment; `command` defaults to the command line of this process."""
        system = platform.uname()
        return cls(
            weirlab=version(),
            revision=_revision(),
            python=platform.python_version(),
            packages={name: found for name in _PACKAGES if (found := _version(name))},
            host=system.node,
            os=_os_name(),
            kernel=f"{system.system} {system.release}",
            cpu=_cpu_model(),
            cpus=psutil.cpu_count(),
            cpus_usable=usable_cpus(),
            memory_bytes=psutil.virtual_memory().total,
            load_average=_load_average(),
            started=_utc_now(),
            command=list(_command_line() if command is None else command),
        )

    def ended(self) -> Provenance:
        """The same with the time of now as its end."""
        return replace(self, finished=_utc_now())

    @property
    def duration_s(self) -> float | None:
        """Wall-clock time between start and end [s]; None before the end."""
        if self.finished is None:
            return None
        return (datetime.fromisoformat(self.finished) - datetime.fromisoformat(self.started)).total_seconds()


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a result directory is, and how far it came."""

    kind: Kind
    name: str
    provenance: Provenance
    status: Status = "running"
    seed: int | None = None
    replicates: int | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Changes of the command line: dotted path to text."""
    remark: str = ""
    """Why the work ended early, for a person."""
    sittings: Sequence[Provenance] = ()
    """The later sittings, of work that went on after it had ended early; `provenance` is the first one."""
    format: int = FORMAT

    def write(self, directory: Path) -> None:
        """Write `directory/manifest.json`."""
        write_json(directory / "manifest.json", asdict(self))

    @classmethod
    def read(cls, directory: Path) -> Manifest:
        """Read `directory/manifest.json`. Raises InputError when this is no result that can be read."""
        if not directory.is_dir():
            raise InputError(f"{directory}: no such directory")
        path = directory / "manifest.json"
        if not path.exists():
            below = sorted(str(each.parent) for each in directory.glob("*/manifest.json"))
            hint = f"; results below it, such as {', '.join(below[:4])}" if below else ""
            raise InputError(f"{directory}: not a result of weir (it has no manifest.json){hint}")
        content = read_json(path)
        try:
            written = content["format"]
            if isinstance(written, int) and written > FORMAT:
                raise InputError(
                    f"{directory}: format {written} of weirlab "
                    f"{section(content, 'provenance').get('weirlab')}; this weirlab reads formats up to "
                    f"{FORMAT}"
                )
            if content["kind"] not in get_args(Kind) or content["status"] not in get_args(Status):
                raise ValueError("unknown kind or status")
            return _manifest(content)
        except (KeyError, TypeError, ValueError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise InputError(f"{path}: not a manifest of weir: {what}") from error

    def ended(self, status: Status, remark: str = "") -> Manifest:
        """The same, at its end."""
        if self.sittings:
            ended = (*self.sittings[:-1], self.sittings[-1].ended())
            return replace(self, status=status, remark=remark, sittings=ended)
        return replace(self, status=status, remark=remark, provenance=self.provenance.ended())

    def failed(self, directory: Path, error: BaseException) -> None:
        """Note that the work in `directory` was ended by an error; where that cannot be written, as on a full
        disk, what went wrong first is what is reported."""
        stopped = isinstance(error, KeyboardInterrupt | Interrupted)
        with suppress(WeirlabError):
            self.ended("interrupted" if stopped else "failed", str(error)).write(directory)

    def begun_in(self, directory: Path) -> Manifest:
        """This one; or, where the work in `directory` goes on, the one that is there with a further
        sitting."""
        if not (directory / "manifest.json").exists():
            return self
        earlier = Manifest.read(directory)
        return replace(earlier, status="running", remark="", sittings=(*earlier.sittings, self.provenance))


def _manifest(content: Mapping[str, object]) -> Manifest:
    """The manifest of a JSON object. Raises ValueError with the first field that is wrong."""
    manifest = typed(Manifest, content)
    if manifest.seed is not None and not 0 <= manifest.seed < 2**64:
        raise ValueError(f"seed: a whole number from 0 to 2^64 - 1 (got {manifest.seed})")
    if manifest.replicates is not None and manifest.replicates < 1:
        raise ValueError(f"replicates: at least 1 (got {manifest.replicates})")
    for provenance in (manifest.provenance, *manifest.sittings):
        for name in ("started", "finished"):
            moment = getattr(provenance, name)
            if moment is not None and not _is_moment(moment):
                raise ValueError(f"{name}: a time in UTC, ISO 8601 (got {moment!r})")
    return manifest


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def new_directory(name: str, out: Path | None = None, *, root: Path | None = None) -> Path:
    """Make an empty directory for a result and return it: `out`, or `root/NAME-YYYYMMDD-HHMMSS` (local time).

    Nothing is ever overwritten: raises InputError when `out` exists and is not an empty directory.
    """
    if out is not None:
        return _claim(out)
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "result"
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    root = Path("results") if root is None else root
    for number in range(1, 1000):
        candidate = root / (f"{stem}-{stamp}" if number == 1 else f"{stem}-{stamp}-{number}")
        try:
            candidate.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise InputError(f"{candidate}: cannot make this directory: {error.strerror}") from error
        return candidate
    raise WeirlabError(f"{root}: a thousand results of '{name}' within one second")


@claiming
def claimed_directory(name: str, out: Path | None = None) -> Iterator[Path]:
    """A new directory that disappears again when the work in the block fails before it has kept anything; an
    interruption then has a note of that."""
    directory = new_directory(name, out)
    try:
        yield directory
    except BaseException as error:
        with suppress(OSError):  # it holds something
            directory.rmdir()
            if isinstance(error, KeyboardInterrupt):
                error.add_note("nothing is kept")
        raise


def _claim(out: Path) -> Path:
    try:
        out.mkdir(parents=True, exist_ok=True)
        occupied = next((each for each in out.iterdir() if not left_over(each)), None)
    except FileExistsError as error:
        raise InputError(f"{out}: this is a file; name a directory") from error
    except OSError as error:
        raise InputError(f"{out}: cannot make this directory: {error.strerror}") from error
    if occupied is not None:
        what = "a result already" if (out / "manifest.json").exists() else "other files"
        raise InputError(f"{out}: holds {what}; name a new or an empty directory")
    return out


def write_text(path: Path, text: str) -> None:
    """Write a file that appears whole or not at all. Raises WeirlabError when it cannot be written."""
    with whole(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def write_json(path: Path, content: object) -> None:
    """Write `content` as JSON, for people to read too. Numbers that are not finite become null."""
    write_text(path, json_text(content))


_BROKEN = 2
"""Levels of a document whose entries stand on lines of their own."""


def json_text(content: object) -> str:
    """A document as JSON for people, too: entries of its first two levels have lines of their own, so that
    a row of a list is a line. Numbers that are not finite become null."""
    try:
        return f"{_lines(content)}\n"
    except (TypeError, ValueError):
        return f"{_lines(finite(content))}\n"


def _lines(value: object, level: int = 0) -> str:
    if level == _BROKEN or not value or not isinstance(value, dict | list):
        return _ENCODER.encode(value)
    if isinstance(value, dict):
        named = ((_ENCODER.encode(str(name)), _lines(each, level + 1)) for name, each in value.items())
        parts, ends = [f"{name}: {text}" for name, text in named], "{}"
    else:
        parts, ends = [_lines(each, level + 1) for each in value], "[]"
    edge = "\n" + "  " * level
    return f"{ends[0]}{edge}  {f',{edge}  '.join(parts)}{edge}{ends[1]}"


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def finite(value: object) -> object:
    """A document whose numbers that are not finite are null: JSON has no others, and they are unknown."""
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_json(path: Path) -> dict[str, object]:
    """Read a JSON object. Raises InputError with the place when it is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: a JSON object was expected")
    return cast("dict[str, object]", content)


def _version(package: str) -> str | None:
    try:
        text = metadata.distribution(package).read_text("METADATA") or ""
    except metadata.PackageNotFoundError:
        return None
    # To read all of it as a message, as `metadata.version` does, takes milliseconds for each package.
    found = re.search(r"^Version:\s*(\S+)", text, re.MULTILINE)
    return found[1] if found else None


def _revision() -> str | None:
    root = Path(__file__).resolve().parents[2]
    if not ((root / ".git").exists() and (root / "crates" / "weir-core").is_dir()):
        return None
    describe = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        found = subprocess.run(describe, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.platform(terse=True)


def _cpu_model() -> str | None:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or None


def usable_cpus() -> int:
    """Logical CPUs that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def _load_average() -> tuple[float, float, float] | None:
    try:
        return os.getloadavg()
    except (AttributeError, OSError):
        return None


def _utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _command_line() -> list[str]:
    program = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"
    return ["weir" if program == "__main__.py" else program, *sys.argv[1:]]
