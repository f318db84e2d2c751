"""Controllers and devices that can be compared, those of a user's file included."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from weirlab.errors import InputError, WeirlabError
from weirlab.foreign import NO_FAULT
from weirlab.searches.base import LoadRange, SearchGoal
from weirlab.searches.binary import Binary
from weirlab.searches.controller import Controller
from weirlab.searches.lab_devices import DEVICES, Family
from weirlab.searches.lab_families import CHANGING, STEADY
from weirlab.searches.mdr import Mdr
from weirlab.searches.mlr import Mlr
from weirlab.searches.weir import Weir
from weirlab.testbed.devices import Device

Make = Callable[[Sequence[SearchGoal], LoadRange], Controller]


CONTROLLERS: Mapping[str, Make] = {
    "binary": Binary,
    "mdr": Mdr,
    "mlr": lambda goals, loads: Mlr(goals, loads, effective="with-waits"),
    "weir": lambda goals, loads: Weir(goals, loads, effective="with-waits"),
    "weir-no-guard": lambda goals, loads: Weir(goals, loads, effective="with-waits", guard=False),
    "weir-no-stop": lambda goals, loads: Weir(goals, loads, effective="with-waits", early_stop=False),
}


class Own(NamedTuple):
    """What a file defines, by name."""

    controllers: dict[str, Make]
    devices: dict[str, Device | Family]


class Known(NamedTuple):
    """Controllers and devices by name."""

    controllers: dict[str, Make]
    devices: dict[str, Device | Family]
    own: Own
    """Those of them that the file defines."""


def known(file: Path | None) -> Known:
    """What can be compared, the definitions of a file included."""
    module = None if file is None else _loaded(file)
    controllers, devices = getattr(module, "CONTROLLERS", {}), getattr(module, "DEVICES", {})
    for name, entries in (("CONTROLLERS", controllers), ("DEVICES", devices)):
        if not isinstance(entries, dict):
            raise InputError(f"{file}: {name} must be a dict by name (got {entries!r})")
    for name, make in controllers.items():
        if not callable(make):
            raise InputError(
                f"{file}: controller {name!r} must be a function of goals and loads (got {make!r})"
            )
    for name, device in devices.items():
        if not callable(device) and not hasattr(device, "received_frames"):
            raise InputError(
                f"{file}: device {name!r} must have a method received_frames, or be a function of a "
                f"random.Random that makes one (got {device!r})"
            )
    return Known(
        {**CONTROLLERS, **controllers},
        {**DEVICES, **STEADY, **CHANGING, **devices},
        Own(controllers, devices),
    )


def _loaded(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(f"weirlab_lab_{path.stem}", path)
    if spec is None:
        raise InputError(f"{path}: is no Python file; its name ends in .py")
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look for their module there
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise InputError(f"{path}:{error.lineno}: {type(error).__name__}: {error.msg}") from error
    except NO_FAULT:
        raise
    except BaseException as error:
        raise _fault_of(path, error) from error
    return module


@contextmanager
def blamed(file: Path | None, what: str) -> Iterator[None]:
    """Report a failure as one of ``what``, which ``file`` defines; None: it is none of the user's."""
    try:
        yield
    except WeirlabError as error:
        if file is not None:
            error.add_note(f"it was {what}, with what {file} defines")
        raise
    except NO_FAULT:
        raise
    except BaseException as error:
        if file is None:
            raise
        raise _fault_of(file, error, f"{what}: ") from error


def _fault_of(file: Path, error: BaseException, what: str = "") -> InputError:
    """The error of a file of the user's, with the innermost of its lines that led there."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).resolve() == file.resolve()
    ]
    place = f"{file}:{lines[-1]}" if lines else f"{file}"
    return InputError(f"{place}: {what}{type(error).__name__}: {error}")
