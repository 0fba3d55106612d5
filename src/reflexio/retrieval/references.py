"""Finds the learnings that turns and citations name by kind and public id."""

from collections.abc import Sequence
from typing import Protocol

from reflexio.models.learning import Kind, Learning
from reflexio.ports.storage import LearningFilter, Tx
from reflexio.retrieval.filters import LARGEST_ID, all_pages


class Reference(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def learning_id(self) -> str: ...


def find_references(tx: Tx, references: Sequence[Reference]) -> dict[tuple[str, str], Learning]:
    """The learnings by kind and public id, whatever their status. Deleted ones are missing."""
    keys = tuple({reference.learning_id for reference in references if reference.kind == Kind.PROFILE})
    numbers = {
        number
        for reference in references
        if reference.kind != Kind.PROFILE and (number := _row_id(reference.learning_id))
    }
    rows = [row for row in tx.learnings.many(sorted(numbers)).values() if row.kind is not Kind.PROFILE]
    if keys:
        rows += all_pages(tx, LearningFilter(Kind.PROFILE, keys=keys, statuses=None))
    return {(row.kind.value, row.public_id): row for row in rows}


def _row_id(text: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= 19 else 0
    return number if number <= LARGEST_ID else 0
