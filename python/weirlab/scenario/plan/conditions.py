"""Conditions between the factors of a study, as a person writes them: `limit >= rate * delay or aqm = codel`.

    condition  = both, { "or", both }
    both       = one, { "and", one }
    one        = "not", one | "(", condition, ")" | sum, ( "=" | "!=" | "<" | "<=" | ">" | ">=" ), sum
               | sum, [ "not" ], "in", "(", sum, { ",", sum }, ")"
    sum        = product, { ( "+" | "-" ), product }
    product    = value, { ( "*" | "/" ), value }
    value      = number with its unit | name | 'text' | "-", value | "(", sum, ")"

A name is that of a factor, a parameter of a design or a path that a level sets, whole or its last part; any
other word is the text of a level. What decides stands first, as in `limit = unlimited or limit > 1 MB`: the
rest is then not looked at. Quantities keep their dimension: a rate times a time is an amount of data. Nothing
is executed.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from weirlab.errors import UnitError
from weirlab.scenario.file.problems import did_you_mean, listed

_Dimension = tuple[int, int, int]
"""Powers of bit, second and frame."""
_PLAIN: _Dimension = (0, 0, 0)
_BASES: Mapping[str, tuple[float, _Dimension]] = {
    "%": (0.01, _PLAIN),
    "bit": (1.0, (1, 0, 0)),
    "B": (8.0, (1, 0, 0)),
    "s": (1.0, (0, 1, 0)),
    "min": (60.0, (0, 1, 0)),
    "h": (3600.0, (0, 1, 0)),
    "frame": (1.0, (0, 0, 1)),
    "bps": (1.0, (1, -1, 0)),
    "fps": (1.0, (0, -1, 1)),
    "pps": (1.0, (0, -1, 1)),
}
_POWERS = {"p": 1e-12, "n": 1e-9, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "m": 1e-3, "": 1.0} | {
    "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40
}  # fmt: skip
_NUMBER = r"(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_UNIT = r"%|(?:[pnuµμm]?s|min|h|(?:[kMGT]|[KMGT]i)?(?:bit|B|bps|fps|pps|frames?))(?:/s)?(?![\w.])"
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>{_NUMBER})(?:\s*(?P<unit>{_UNIT}))?(?![\w.])"
    r"|(?P<name>[^\W\d][\w]*(?:[-.][\w]+)*)|`(?P<quoted>[^`]+)`"
    r"|'(?P<text>[^']*)'|\"(?P<other>[^\"]*)\"|(?P<sign><=|>=|!=|==|[=<>()+*/,-]))"
)
_LEVEL = re.compile(rf"\s*(?P<minus>-?)(?P<number>{_NUMBER})(?:\s*(?P<unit>{_UNIT}))?\s*")
_CLOSE = 1e-9


@dataclass(frozen=True)
class _Value:
    """What a part of a condition is worth: a number with its dimension, a text, or both."""

    number: float | None = None
    dimension: _Dimension = _PLAIN
    text: str | None = None

    def __str__(self) -> str:
        if self.text is not None:
            return f"'{self.text}'"
        return f"{self.number:.6g}" + _named(self.dimension)


_Known = Mapping[str, str]
_Sum = Callable[[_Known], _Value]
_Truth = Callable[[_Known], bool]


def _named(dimension: _Dimension) -> str:
    powers = [
        f"{unit}^{power}" for unit, power in zip(("bit", "s", "frame"), dimension, strict=True) if power
    ]
    return " " + " ".join(powers) if powers else ""


def _quantity(number: str, unit: str | None) -> tuple[float, _Dimension]:
    value = float(number.replace("_", ""))
    if not unit:
        return value, _PLAIN
    per_second = unit.endswith("/s")
    base = unit.removesuffix("/s")
    base = "frame" if base in ("frames", "kframes", "Mframes", "Gframes") else base
    for power in ("Ki", "Mi", "Gi", "Ti", "", *"pnuµμmkMGT"):
        if base.startswith(power) and base[len(power) :] in _BASES and (not power or base not in _BASES):
            factor, (bits, seconds, frames) = _BASES[base[len(power) :]]
            return value * factor * _POWERS[power], (bits, seconds - per_second, frames)
    raise UnitError(f"'{unit}' is not a unit")


@functools.cache
def _level(text: str) -> _Value:
    """The level of a factor, as a number where it is one."""
    found = _LEVEL.fullmatch(text)
    if found is None:
        return _Value(text=text)
    number, dimension = _quantity(found["number"], found["unit"])
    return _Value(-number if found["minus"] else number, dimension, text)


@functools.lru_cache(64)
def _short_names(names: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
    """The whole names behind each last part."""
    found: dict[str, tuple[str, ...]] = {}
    for name in sorted(names):
        last = name.rsplit(".", 1)[-1]
        found[last] = (*found.get(last, ()), name)
    return found


@dataclass(frozen=True)
class Condition:
    """One condition."""

    text: str
    names: frozenset[str]
    """All words in it that stand for themselves."""
    _truth: _Truth

    def holds(self, known: Mapping[str, str]) -> bool:
        """Whether it is true, with the texts of levels and values by name. Raises UnitError where it makes
        no sense."""
        return self._truth(known)

    def mentions(self, name: str) -> bool:
        """Whether it speaks of a factor or parameter."""
        return name in self.names or name.rsplit(".", 1)[-1] in self.names


@functools.lru_cache(256)
def as_condition(text: str) -> Condition:
    """Read a condition. Raises UnitError, with the character at which it cannot be read."""
    parser = _Parser(text)
    truth = parser.condition()
    parser.end()
    return Condition(text, frozenset(parser.names), truth)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.names: set[str] = set()

    # --- words

    def _peek(self) -> re.Match[str] | None:
        found = _TOKEN.match(self._text, self._at)
        if found is None and self._text[self._at :].strip():
            self._refuse("this cannot be read")
        return found

    def _refuse(self, message: str) -> None:
        rest = self._text[self._at :].lstrip()
        place = len(self._text) - len(rest) + 1
        what = f"'{rest[:20]}'" if rest else "the end"
        raise UnitError(f"{message}, at character {place}, {what} (in '{self._text}')")

    def _takes(self, *words: str) -> str | None:
        """The next sign or word, if it is one of these."""
        found = self._peek()
        if found is None or (found["sign"] or found["name"]) not in words:
            return None
        self._at = found.end()
        return found["sign"] or found["name"]

    def _needs(self, word: str) -> None:
        if self._takes(word) is None:
            self._refuse(f"'{word}' is missing")

    def end(self) -> None:
        """Raises UnitError unless all has been read."""
        if self._peek() is not None:
            self._refuse("'and', 'or' or the end is expected")

    # --- truth

    def condition(self) -> _Truth:
        """One or more, with `or`."""
        parts = [self._both()]
        while self._takes("or"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else lambda known: any(part(known) for part in parts)

    def _both(self) -> _Truth:
        parts = [self._one()]
        while self._takes("and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else lambda known: all(part(known) for part in parts)

    def _one(self) -> _Truth:
        if self._takes("not"):
            part = self._one()
            return lambda known: not part(known)
        before, names = self._at, set(self.names)
        if self._takes("("):
            try:
                inner = self.condition()
                self._needs(")")
            except UnitError:
                # It is a sum in parentheses, or wrong: then what follows says where.
                self._at, self.names = before, names
            else:
                return inner
        return self._comparison()

    def _comparison(self) -> _Truth:
        left = self._sum()
        wanted = True
        if self._takes("not"):
            wanted = False
            self._needs("in")
        if not wanted or self._takes("in"):
            self._needs("(")
            among = [self._sum()]
            while self._takes(","):
                among.append(self._sum())
            self._needs(")")
            return lambda known: any(_same(left(known), each(known)) for each in among) == wanted
        sign = self._takes("=", "==", "!=", "<=", ">=", "<", ">")
        if sign is None:
            self._refuse("'=', '!=', '<', '<=', '>', '>=' or 'in' is expected")
        right = self._sum()
        if sign in ("=", "=="):
            return lambda known: _same(left(known), right(known))
        if sign == "!=":
            return lambda known: not _same(left(known), right(known))
        return lambda known: _ordered(left(known), str(sign), right(known))

    # --- values

    def _sum(self) -> _Sum:
        value = self._product()
        while sign := self._takes("+", "-"):
            value = _combined(value, sign, self._product())
        return value

    def _product(self) -> _Sum:
        value = self._value()
        while sign := self._takes("*", "/"):
            value = _combined(value, sign, self._value())
        return value

    def _value(self) -> _Sum:
        if self._takes("-"):
            return _combined(lambda _: _Value(-1.0), "*", self._value())
        if self._takes("("):
            inner = self._sum()
            self._needs(")")
            return inner
        found = self._peek()
        if found is None or found["sign"] or found["name"] in ("and", "or", "not", "in"):
            self._refuse("a value is missing: the name of a factor, a number with its unit, or a level")
        assert found is not None
        self._at = found.end()
        if found["number"] is not None:
            value = _Value(*_quantity(found["number"], found["unit"]))
            return lambda _: value
        if (text := found["text"] if found["text"] is not None else found["other"]) is not None:
            level = _level(text)
            return lambda _: level
        name = found["name"] or found["quoted"]
        self.names.add(name)
        return functools.partial(_looked_up, name)


def _looked_up(name: str, known: _Known) -> _Value:
    if name in known:
        return _level(known[name])
    whole = _short_names(frozenset(known)).get(name, ())
    if len(whole) == 1:
        return _level(known[whole[0]])
    if whole:
        raise UnitError(f"'{name}' can be {' or '.join(whole)}; write the whole name")
    return _Value(text=name)


def _same(left: _Value, right: _Value) -> bool:
    if left.number is not None and right.number is not None:
        _refuse_apart(left, right)
        return math.isclose(left.number, right.number, rel_tol=_CLOSE)
    return left.text == right.text


def _ordered(left: _Value, sign: str, right: _Value) -> bool:
    one, other = _number(left), _number(right)
    _refuse_apart(left, right)
    if math.isclose(one, other, rel_tol=_CLOSE):
        return sign in ("<=", ">=")
    return one < other if sign in ("<", "<=") else one > other


def _combined(left: _Sum, sign: str, right: _Sum) -> _Sum:
    def value(known: _Known) -> _Value:
        one, other = left(known), right(known)
        a, b = _number(one), _number(other)
        if sign in "+-":
            _refuse_apart(one, other)
            return _Value(a + b if sign == "+" else a - b, one.dimension)
        turn = 1 if sign == "*" else -1
        if turn < 0 and b == 0:
            raise UnitError(f"{one} is divided by zero")
        powers = [x + turn * y for x, y in zip(one.dimension, other.dimension, strict=True)]
        return _Value(a * b if turn > 0 else a / b, (powers[0], powers[1], powers[2]))

    return value


def _number(value: _Value) -> float:
    if value.number is None:
        raise UnitError(f"{value} is not a number; compare it by '=', '!=' or 'in'")
    return value.number


def _refuse_apart(left: _Value, right: _Value) -> None:
    if left.dimension != right.dimension:
        raise UnitError(f"{left} and {right} cannot be compared: they have different units")


def unknown_words(condition: Condition, known: Mapping[str, str], levels: frozenset[str]) -> str:
    """What is wrong with the words of a condition; nothing where all are names or levels."""
    short = _short_names(frozenset(known))
    for word in sorted(condition.names):
        if word not in known and word not in short and word not in levels:
            names = [*short, *known, *levels]
            hint = did_you_mean(word, names) or f"; there are {listed(known) or 'none'}"
            return f"there is no factor or level '{word}'{hint}"
    return ""
