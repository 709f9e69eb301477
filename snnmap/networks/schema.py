"""Which keys a model file may hold, and what their values must be.

A check turns a TOML value into a Python one or raises ValueError with what was expected.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from snnmap.errors import NetworkError

Check = Callable[[Any], Any]


def count(value: Any) -> int:
    """A whole number >= 1."""
    return _whole(value, 1)


def count_or_zero(value: Any) -> int:
    """A whole number >= 0."""
    return _whole(value, 0)


def whole(value: Any) -> int:
    """A whole number, e.g. an axis."""
    return _whole(value, -(2**31))


def positive(value: Any) -> float:
    """A number > 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e308:
        raise ValueError("a number > 0")
    return float(value)


def non_negative(value: Any) -> float:
    """A number >= 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e308:
        raise ValueError("a number >= 0")
    return float(value)


def share(value: Any) -> float:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("a number from 0 to 1")
    return float(value)


def flag(value: Any) -> bool:
    """A truth value."""
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def text(value: Any) -> str:
    """Text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("text")
    return value


def shape(value: Any) -> tuple[int, ...]:
    """One whole number >= 0, or a list of them."""
    values = value if isinstance(value, list) else [value]
    if not values:
        raise ValueError("one whole number >= 0 or a list of them")
    return tuple(count_or_zero(v) for v in values)


def extent(value: Any) -> tuple[float, float]:
    """[width, height] of the area that neurons lie in, each > 0."""
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("[width, height]")
    return positive(value[0]), positive(value[1])


def counts(value: Any) -> int | tuple[int, ...]:
    """A whole number >= 1, or a list with one a dimension."""
    if isinstance(value, list) and value:
        return tuple(count(v) for v in value)
    return count(value)


def padding(value: Any) -> Any:
    """Give "same", "valid", a number, one a dimension, or a [before, after] pair a dimension."""
    if value in ("same", "valid"):
        return value
    if isinstance(value, list) and value:
        return tuple(
            (_whole(v[0], 0), _whole(v[1], 0))
            if isinstance(v, list) and len(v) == 2
            else _whole(v, 0)
            for v in value
        )
    try:
        return _whole(value, 0)
    except ValueError:
        raise ValueError('"same", "valid", a whole number >= 0 or one a dimension') from None


def names(value: Any) -> tuple[str, ...]:
    """A layer's name, or a list of them."""
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(v, str) for v in values):
        raise ValueError("the name of a layer or a list of names")
    return tuple(values)


def delay(value: Any) -> tuple[float, float]:
    """Milliseconds, or [smallest, largest] milliseconds."""
    values = value if isinstance(value, list) else [value, value]
    if len(values) != 2:
        raise ValueError("milliseconds or [smallest, largest] milliseconds")
    low, high = (non_negative(v) for v in values)
    if low > high:
        raise ValueError("[smallest, largest] milliseconds")
    return low, high


def one_of(*known: str) -> Check:
    """Check for one of a few words."""

    def check(value: Any) -> str:
        if value not in known:
            raise ValueError(" or ".join(f'"{word}"' for word in known))
        return str(value)

    return check


def table(value: Any) -> dict[str, Any]:
    """A table."""
    if not isinstance(value, dict):
        raise ValueError("a table")
    return value


def tables(value: Any) -> list[dict[str, Any]]:
    """A list of tables that is not empty."""
    if not isinstance(value, list) or not value or not all(isinstance(v, dict) for v in value):
        raise ValueError("a list of tables")
    return value


def anything(value: Any) -> Any:
    """Accept any value; it is checked where it is used."""
    return value


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys of one kind of table: required ones, optional ones with their defaults."""

    required: Mapping[str, Check] = field(default_factory=dict)
    optional: Mapping[str, tuple[Check, Any]] = field(default_factory=dict)

    def read(self, table: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Values of all keys of `table`, defaults filled in.

        Args:
            table: as TOML gives it.
            where: names the table in errors, e.g. ``"layer 'conv1'"``.

        Raises:
            NetworkError: a missing or unknown key, or a value of the wrong kind.
        """
        known = [*self.required, *self.optional]
        for key in table:
            if key not in known:
                raise NetworkError(f"{where}: unknown key {key!r}; {suggest(key, known)}")
        values = {key: default for key, (_, default) in self.optional.items()}
        for key, check in {
            **self.required,
            **{k: c for k, (c, _) in self.optional.items()},
        }.items():
            if key in table:
                try:
                    values[key] = check(table[key])
                except ValueError as error:
                    raise NetworkError(
                        f"{where}: {key} is {table[key]!r}; expected {error}"
                    ) from None
            elif key in self.required:
                raise NetworkError(f"{where}: key {key!r} is missing")
        return values


def suggest(word: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` if one of `known` is close to `word`, and the list of them."""
    listed = sorted(known)
    close = difflib.get_close_matches(word, listed, 1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}known: {', '.join(listed)}"


def _whole(value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"a whole number >= {least}")
    return value
