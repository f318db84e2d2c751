"""Where objects lie: a directory of this machine, or object storage. An object has a name and bytes, appears
whole or not at all, and never changes."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from weirlab.errors import InputError, WeirlabError
from weirlab.foreign import optional

_PART = ".part-"
"""What unfinished files begin with. No listing shows them."""
_ABANDONED_S = 86_400.0
"""Age from which an unfinished file has nobody who writes it."""


class Place(Protocol):
    """A flat set of objects by name; names have slashes."""

    url: str
    """What `place_of` takes, from any working directory."""

    def put_new(self, name: str, content: bytes) -> bool:
        """Make an object, on disk when this returns. False: there is one of this name, which is left as it
        is. Raises WeirlabError when it cannot be written."""
        ...

    def get(self, name: str) -> bytes:
        """The bytes of an object. Raises FileNotFoundError."""
        ...

    def sizes(self, prefix: str) -> Mapping[str, int]:
        """The objects whose names begin with `prefix`, which ends in a slash, and their sizes [B]."""
        ...

    def delete(self, name: str) -> None:
        """Remove an object; nothing happens where there is none."""
        ...

    def sweep(self) -> int:
        """Remove what writers that were killed left unfinished; how many files these were."""
        ...


def place_of(url: str | Path) -> Place:
    """The place that a path, or a URL such as `s3://bucket/folder`, names.

    Keys, region and endpoint of object storage come from the environment, as its own tools have them
    (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`). Raises MissingCapability without obstore.
    """
    text = str(url)
    if "://" not in text:
        return _Directory(Path(text))
    if text.startswith("file://"):
        return _Directory(Path(text.removeprefix("file://")))
    return _Bucket(text)


class _Directory:
    """Objects as files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory.absolute()
        self.url = str(self._directory)
        if self._directory.exists() and not self._directory.is_dir():
            raise InputError(f"{directory}: this is a file; name a directory")

    def put_new(self, name: str, content: bytes) -> bool:
        path = self._directory / name
        if path.exists():
            return False
        part = path.with_name(f"{_PART}{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with part.open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                return _named(part, path)
            finally:
                with suppress(OSError):
                    part.unlink()
        except OSError as error:
            raise WeirlabError(f"{path}: cannot be written: {error.strerror or error}") from error

    def get(self, name: str) -> bytes:
        return (self._directory / name).read_bytes()

    def sizes(self, prefix: str) -> dict[str, int]:
        found: dict[str, int] = {}
        folders = [prefix]
        while folders:
            folder = folders.pop()
            try:
                entries = list(os.scandir(self._directory / folder))
            except (FileNotFoundError, NotADirectoryError):
                continue
            for entry in entries:
                if entry.name.startswith(_PART):
                    continue
                if entry.is_dir():
                    folders.append(f"{folder}{entry.name}/")
                    continue
                with suppress(FileNotFoundError):  # somebody compacts or prunes
                    found[folder + entry.name] = entry.stat().st_size
        return dict(sorted(found.items()))

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            (self._directory / name).unlink()

    def sweep(self) -> int:
        removed = 0
        for path in self._directory.rglob(f"{_PART}*"):
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > _ABANDONED_S:
                    path.unlink()
                    removed += 1
        return removed


def _named(part: Path, path: Path) -> bool:
    """Give a finished file its name, unless another has it."""
    try:
        os.link(part, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if path.exists():
            return False
        part.replace(path)
    _sync(path.parent)
    return True


def _sync(directory: Path) -> None:
    """Have the name of a new file on disk, too."""
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _Bucket:
    """Objects of object storage."""

    def __init__(self, url: str) -> None:
        self.url = url
        who = f"{url}: object storage needs"
        self._obstore = optional("obstore", who=who, package="obstore", extra="cluster")
        self._errors: Any = import_module("obstore.exceptions")
        try:
            self._bucket: Any = import_module("obstore.store").from_url(url)
        except Exception as error:
            raise InputError(f"{url}: no object storage can be opened there: {_first_line(error)}") from error

    def put_new(self, name: str, content: bytes) -> bool:
        try:
            self._obstore.put(self._bucket, name, content, mode="create")
        except self._errors.AlreadyExistsError:
            return False
        except Exception as error:
            raise self._fault(name, "written", error) from error
        return True

    def get(self, name: str) -> bytes:
        try:
            return bytes(self._obstore.get(self._bucket, name).bytes())
        except self._errors.NotFoundError as error:
            raise FileNotFoundError(name) from error
        except FileNotFoundError:
            raise
        except Exception as error:
            raise self._fault(name, "read", error) from error

    def sizes(self, prefix: str) -> dict[str, int]:
        try:
            found = {
                each["path"]: int(each["size"])
                for some in self._obstore.list(self._bucket, prefix=prefix.rstrip("/") or None)
                for each in some
            }
        except Exception as error:
            raise self._fault(prefix, "listed", error) from error
        return dict(sorted(found.items()))

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError, self._errors.NotFoundError):
            self._obstore.delete(self._bucket, name)

    def sweep(self) -> int:
        return 0  # what was not put whole is not there

    def _fault(self, name: str, what: str, error: Exception) -> WeirlabError:
        text = _first_line(error)
        hint = next((hint for sign, hint in _HINTS.items() if sign in text), "")
        if what == "written" and isinstance(error, FileNotFoundError | self._errors.NotFoundError):
            hint = "; is there such a bucket?"
        return WeirlabError(f"{self.url}/{name}: cannot be {what}: {text}{hint}")


_HINTS = {
    "169.254.169.254": "; no keys were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what the "
    "storage of that scheme needs",
    "builder error": "; for an endpoint with http:// set AWS_ALLOW_HTTP=true",
}
"""What to do, by what a message has. Without keys the library asks the metadata service of a cloud."""


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
