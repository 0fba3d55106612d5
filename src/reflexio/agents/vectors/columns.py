"""Metadata by key, so that a filter over very many chunks costs no look at each of them.

A key becomes a column when a filter first names it: the number of its value for each slot. Slots are only ever
added, so a column reads on from where it stopped.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexio.agents.vectors.filters import Both, Condition, Either, Neither, OneOf, Ordered, Present, identity, stands

Mask = NDArray[np.bool_]
MISSING = 0
# Values up to which comparing with each in turn is faster than numpy's `isin`.
FEW = 8


@dataclass
class Column:
    """The values of one key. Number 0 stands for slots without the key."""

    numbers: NDArray[np.int32] = field(default_factory=lambda: np.empty(1024, np.int32))
    values: list[Any] = field(default_factory=lambda: [None])
    number_of: dict[Hashable, int] = field(default_factory=dict)
    read: int = 0

    def read_on(self, key: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if len(rows) > len(self.numbers):
            self.numbers = np.concatenate((self.numbers, np.empty(len(rows), np.int32)))
        fresh = [self._number(row[key]) if key in row else MISSING for row in rows[self.read :]]
        self.numbers[self.read : len(rows)] = fresh
        self.read = len(rows)

    def _number(self, value: Any) -> int:
        number = self.number_of.setdefault(identity(value), len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number

    def equal(self, values: Sequence[Any]) -> Mask:
        wanted = [self.number_of[identity(each)] for each in values if identity(each) in self.number_of]
        if None in values:
            wanted.append(MISSING)
        numbers = self.numbers[: self.read]
        if len(wanted) > FEW:
            return np.isin(numbers, wanted)
        return _joined(np.logical_or, [numbers == each for each in wanted], empty=np.zeros(self.read, np.bool_))

    def present(self) -> Mask:
        return np.not_equal(self.numbers[: self.read], MISSING)

    def where(self, passes: Callable[[Any], bool]) -> Mask:
        table = np.array([number != MISSING and passes(value) for number, value in enumerate(self.values)])
        return table[self.numbers[: self.read]]


class Columns:
    """Answers conditions about rows of metadata; `rows` is the caller's list, which only grows."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = rows
        self._columns: dict[str, Column] = {}

    def mask(self, asked: Condition) -> Mask:
        """Which rows answer."""
        match asked:
            case OneOf(key, values):
                return self._column(key).equal(values)
            case Ordered(key):
                return self._column(key).where(lambda value: stands(value, asked))
            case Present(key):
                return self._column(key).present()
            case Neither(inner):
                return ~self.mask(inner)
            case Both(parts):
                return _joined(np.logical_and, list(map(self.mask, parts)), empty=np.ones(len(self._rows), np.bool_))
            case Either(parts):
                return _joined(np.logical_or, list(map(self.mask, parts)), empty=np.zeros(len(self._rows), np.bool_))

    def _column(self, key: str) -> Column:
        column = self._columns.setdefault(key, Column())
        column.read_on(key, self._rows)
        return column


def _joined(join: Callable[[Mask, Mask], Mask], masks: Sequence[Mask], *, empty: Mask) -> Mask:
    return reduce(join, masks) if masks else empty
