"""All learnings within a filter, page after page, newest first."""

from collections.abc import Iterator

from reflexio.models.learning import Learning
from reflexio.models.paging import Page
from reflexio.ports.storage import LearningFilter, Tx

PAGE = 1000


def every(tx: Tx, where: LearningFilter) -> Iterator[Learning]:
    after = None
    while True:
        page = tx.learnings.page(where, Page(PAGE, after))
        yield from page.rows
        if page.end is None:
            return
        after = page.end
