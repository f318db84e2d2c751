"""Generate what the shell completes behind `--set`: the fields of scenarios, and the words that they take.

    python scripts/generate_fields.py            # write python/weirlab/cli/fields.json
    python scripts/generate_fields.py --check    # fail where that file is not current

The models are the source. Completion reads the file, as to load the models takes longer than a Tab may.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from weirlab.fields.base import Model, Named, kind_of
from weirlab.scenario.model import Scenario

FILE = Path(__file__).resolve().parent.parent / "python" / "weirlab" / "cli" / "fields.json"
WITHOUT = {"weirlab", "name", "description"}


def described(annotation: Any, found: dict[type[Model], None]) -> dict[str, Any]:
    """What a field may hold: `words`, models `of` kinds, and for entries by name what each holds (`each`)."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return described(arguments[0], found)
    if origin is Named:
        return {"each": described(arguments[0], found)}
    if origin in (Union, UnionType):
        whole: dict[str, Any] = {}
        for part in arguments:
            for key, value in described(part, found).items():
                before = whole.get(key)
                whole[key] = (
                    value if before is None else before | value if isinstance(value, dict) else before + value
                )
        return whole
    if origin is Literal:
        return {"words": [str(word) for word in arguments]}
    if annotation is bool:
        return {"words": ["true", "false"]}
    if isinstance(annotation, type) and issubclass(annotation, Model):
        found[annotation] = None
        return {"of": {kind_of(annotation): annotation.__name__}}
    return {}


def fields() -> dict[str, dict[str, Any]]:
    """Of each model its fields, as files call them."""
    left: dict[type[Model], None] = {Scenario: None}
    models: dict[str, dict[str, Any]] = {}
    while left:
        model = next(iter(left))
        del left[model]
        if model.__name__ in models:
            continue
        found: dict[type[Model], None] = {}
        models[model.__name__] = {
            field.alias or name: described(field.annotation, found)
            for name, field in model.model_fields.items()
            if not (model is Scenario and name in WITHOUT)
        }
        left |= found
    return models


def main() -> int:
    text = json.dumps(fields(), separators=(",", ":"), sort_keys=True) + "\n"
    if sys.argv[1:] == ["--check"]:
        if not FILE.exists() or FILE.read_text(encoding="utf-8") != text:
            print(f"{FILE}: is not current; run scripts/generate_fields.py", file=sys.stderr)
            return 1
        return 0
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
