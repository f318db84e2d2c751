"""Devices of the simulator out of their models in scenarios."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from weirlab.testbed import devices

if TYPE_CHECKING:
    from weirlab.scenario.testbeds import AnyDevice
    from weirlab.testbed.devices import Device


def device_of(model: AnyDevice) -> Device:
    """The device that a scenario describes: the class that is called like the model, and whose fields are
    those of the model with their units behind them."""
    kind = getattr(devices, type(model).__name__)
    device: Device = kind(**{field.name: _plain(model, field.name) for field in fields(kind)})
    return device


def _plain(model: AnyDevice, field: str) -> float:
    """The value of a device's field: `capacity_fps` is `fps` of the model's `capacity`."""
    own, _, unit = field.rpartition("_")
    known = type(model).model_fields
    value = getattr(model, field) if field in known else getattr(getattr(model, own), _UNITS.get(unit, unit))
    return float(value) if isinstance(value, float) else int(value)


_UNITS = {"frames": "count"}
