"""Parameters of commands that mean several options: frozen data classes whose fields are the options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass


def options_of(
    command: Callable[..., None],
) -> tuple[dict[str, tuple[type, list[str]]], dict[str, inspect.Parameter]]:
    """The parameters of a command that mean several options, each with its class and the names of these,
    which are the fields; and all options, these in the place of such a parameter."""
    groups: dict[str, tuple[type, list[str]]] = {}
    parameters: dict[str, inspect.Parameter] = {}
    for name, each in inspect.signature(command, eval_str=True).parameters.items():
        found = {name: each}
        if is_dataclass(each.annotation) and isinstance(each.annotation, type):
            found = dict(inspect.signature(each.annotation, eval_str=True).parameters)
            groups[name] = (each.annotation, list(found))
        parameters |= {option: found[option].replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in found}
    return groups, parameters
