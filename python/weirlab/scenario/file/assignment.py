"""Other values at dotted paths of a scenario's tree."""

from __future__ import annotations

from collections.abc import Iterable

from weirlab.scenario.file.document import Node
from weirlab.scenario.file.problems import did_you_mean, fields_by_kind, listed, names_at
from weirlab.scenario.model import Scenario


def set_at(tree: Node, path: tuple[str, ...], value: Node) -> Node:
    """`tree` with `value` at `path`; None removes what is there.

    Sections and fields that are absent are made on the way; entries by name (of `traffic`, say) must exist,
    unless the value is a whole entry. With another `kind` the fields go that only the old kind has: they may
    be defaults of a scenario that was saved in full. Raises LookupError for a path that leads nowhere.
    """
    if not path:
        raise LookupError("name what to change, such as 'run.duration'")
    return _set(tree, path, value, ())


def _set(tree: Node, path: tuple[str, ...], value: Node, above: tuple[str, ...]) -> Node:
    key, rest = path[0], path[1:]
    if isinstance(tree.value, list):
        return _set_item(tree, tree.value, path, value, above)
    if isinstance(tree.value, str) and tree.value in fields_by_kind(Scenario, above):
        tree = Node({"kind": tree}, tree.place)  # a kind alone
    if tree.value is not None and not isinstance(tree.value, dict):
        raise LookupError(f"'{'.'.join(above)}' is a value; there is nothing below it")
    entries = dict(tree.value or {})
    removed = value.value is None and not rest
    if key not in entries and (rest or removed):
        _require(key, above, entries)
        if value.value is None:
            return _unchanged(tree, rest, (*above, key))
    if removed:
        entries.pop(key, None)
    elif rest:
        entries[key] = _set(entries.get(key, Node({}, value.place)), rest, value, (*above, key))
    else:
        if key == "kind" and key in entries:
            kinds = fields_by_kind(Scenario, above)
            old, new = (kinds.get(str(kind.value), set()) for kind in (entries[key], value))
            if new:
                entries = {name: entry for name, entry in entries.items() if name in new or name not in old}
        entries[key] = value
    return Node(entries, tree.place)


def _set_item(
    tree: Node, items: list[Node], path: tuple[str, ...], value: Node, above: tuple[str, ...]
) -> Node:
    key, rest = path[0], path[1:]
    if tree.entry(key) is None:
        raise LookupError(f"'{'.'.join(above)}' has no item '{key}'; it has 0 to {len(items) - 1}")
    if not rest and value.value is None:
        return Node([item for i, item in enumerate(items) if i != int(key)], tree.place)
    new = value if not rest else _set(items[int(key)], rest, value, (*above, key))
    return Node([new if i == int(key) else item for i, item in enumerate(items)], tree.place)


def _unchanged(tree: Node, rest: tuple[str, ...], above: tuple[str, ...]) -> Node:
    """`tree`, in which there is nothing to remove; the rest of the path must be one that could exist."""
    for i, key in enumerate(rest):
        _require(key, (*above, *rest[:i]), ())
    return tree


def _require(key: str, above: tuple[str, ...], entries: Iterable[str]) -> None:
    """Raise LookupError unless `key` is a field that may be absent in `above`."""
    fields = names_at(Scenario, above)
    if fields is None:
        known = list(entries)
    elif key in fields:
        return
    else:
        known = fields
    where = f"'{'.'.join(above)}'" if above else "a scenario"
    has = f"; it has {listed(known)}" if known else "; it is empty"
    raise LookupError(f"there is no '{key}' in {where}{did_you_mean(key, known) or has}")
