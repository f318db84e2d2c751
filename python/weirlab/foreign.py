"""Code of other packages, which entry points name: what installed packages offer, and whose fault it is."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirlab.errors import ForeignFault, MissingCapability, WeirlabError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

NO_FAULT = (KeyboardInterrupt, GeneratorExit)
"""What code may raise without a fault of it. All else is one, `SystemExit` and panics of compiled packages
included, which are no `Exception`."""


def optional(module: str, *, who: str, package: str, extra: str) -> Any:
    """A module of a package that an extra installs. Raises MissingCapability, which says
    who needs it, such as "plots need", and how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        hint = f"In a checkout of Weirlab:  pip install -e '.[{extra}]'"
        raise MissingCapability(f"{who} {package}, which is not installed. {hint}") from error


def kinds(group: str) -> list[str]:
    """The kinds that installed packages add to a group, each once."""
    from importlib.metadata import entry_points  # takes 20 ms to load

    return sorted({point.name for point in entry_points(group=group)})


def point_of(group: str, kind: str) -> EntryPoint | None:
    """The entry point that names a kind; None where no installed package adds it."""
    from importlib.metadata import entry_points

    return next(iter(entry_points(group=group, name=kind)), None)


def is_foreign(owner: type | str) -> bool:
    """Whether a class, or what stands in a module of that name, comes from another package."""
    module = owner if isinstance(owner, str) else owner.__module__
    return module.split(".")[0] != "weirlab"


def source(group: str, kind: str) -> str:
    """Whose a kind is and what to do about a fault of it, for the end of a message."""
    point = point_of(group, kind)
    package = ""
    if point is not None:
        package = (
            f" of '{point.value}'" if point.dist is None else f" of {point.dist.name} {point.dist.version}"
        )
    return (
        f"a fault of the kind '{kind}'{package}, not of weirlab; report it to the makers of that package, or "
        "leave the kind out"
    )


def fault(group: str, kind: str, what: str, error: BaseException) -> str:
    """What went wrong in the code of another package, where in it, whose it is, and what to do.

    Args:
        what: What was asked of it, such as ``measure 'slowest'``.
    """
    point = point_of(group, kind)
    place = "" if point is None else _place(error, point.module)
    return f"{what} failed: {type(error).__name__}: {error or 'no message'}{place}: {source(group, kind)}"


@contextmanager
def blamed(owner: type | str, group: str, kind: str, what: str) -> Iterator[None]:
    """Report a failure in this block as one of the package that adds ``kind``, where the class ``owner``,
    or what stands in the module of that name, comes from another package. What Weirlab raises on purpose
    passes.

    Raises:
        ForeignFault: Something else was raised.
    """
    try:
        yield
    except (WeirlabError, *NO_FAULT):
        raise
    except BaseException as error:
        if not is_foreign(owner):
            raise
        raise ForeignFault(fault(group, kind, what, error)) from error


def _place(error: BaseException, module: str) -> str:
    """The innermost line of the package that led to an error, in brackets; empty where there is none."""
    home = module.split(".")[0]
    lines = [
        f" ({Path(frame.filename).name}, line {frame.lineno})"
        for frame in traceback.extract_tb(error.__traceback__)
        if home and home in (*Path(frame.filename).parts, Path(frame.filename).stem)
    ]
    return lines[-1] if lines else ""
