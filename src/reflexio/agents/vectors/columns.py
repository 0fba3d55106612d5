"""Metadata by key, so that a filter over very many chunks costs no look at each of them.

A key becomes a column when a filter first names it: the number of its value for each slot. Slots are only ever
added, so a column reads on from where it stopped.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexio.agents.vectors.filters import Both, Condition, Either, Neither, OneOf, Ordered, Present, identity, stands

Mask = NDArray[np.bool_]
MISSING = 0


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
        fresh = [self._number(row[key]) if key in row else MISSING for row in islice(rows, self.read, None)]
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
        return np.isin(self.numbers[: self.read], wanted)

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
                return self._column(key).where(lambda _: True)
            case Neither(inner):
                return ~self.mask(inner)
            case Both(parts):
                return reduce(np.logical_and, map(self.mask, parts), np.ones(len(self._rows), np.bool_))
            case Either(parts):
                return reduce(np.logical_or, map(self.mask, parts), np.zeros(len(self._rows), np.bool_))

    def _column(self, key: str) -> Column:
        column = self._columns.setdefault(key, Column())
        column.read_on(key, self._rows)
        return column
