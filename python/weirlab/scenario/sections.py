"""What follows from some sections of a scenario alone, kept for scenarios that share these.

The points of a study differ in a few fields. A scenario that is made of another one by assignments shares the
sections that these leave alone, and what was worked out from them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from weirlab.scenario.model import Scenario

P = ParamSpec("P")
Result = TypeVar("Result")
Of = Callable[Concatenate["Scenario", P], Result]


def follows_from(*sections: str) -> Callable[[Of[P, Result]], Of[P, Result]]:
    """Have a function of a scenario remember its last result.

    The result must follow from these `sections` alone, and must not be changed by whoever gets it; other
    arguments must follow from the sections, too.
    """

    def remembering(function: Of[P, Result]) -> Of[P, Result]:
        @functools.wraps(function)
        def remembered(scenario: Scenario, /, *args: P.args, **kwargs: P.kwargs) -> Result:
            now = tuple([getattr(scenario, section) for section in sections])
            known: dict[object, tuple[tuple[object, ...], Result]] = scenario._origin.known
            before = known.get(remembered)
            if before and all(a is b or not (a or b) for a, b in zip(before[0], now, strict=True)):
                return before[1]
            result = function(scenario, *args, **kwargs)
            known[remembered] = now, result
            return result

        remembered.sections = sections  # type: ignore[attr-defined]
        return remembered

    return remembering
