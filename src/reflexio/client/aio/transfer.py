"""Export and import of the whole organisation, as lines of a file."""

from collections.abc import AsyncIterator, Callable, Iterable

from reflexio.client import routes
from reflexio.client.aio.connection import Connection
from reflexio.client.transfer import ExportFile, ImportFile
from reflexio.models.transfer import ExportPart, ImportReport

PARTS: tuple[ExportPart, ...] = ("configuration", "learnings", "requests", "links", "pools")


class TransferCalls(Connection):
    """Export and import."""

    async def export_organisation(self) -> AsyncIterator[str]:
        """All that the organisation has stored, without secrets, as lines of JSON to write into one file."""
        summary = await self._send(routes.EXPORT_ROWS, part="summary")
        file = ExportFile(summary.counts)
        yield file.header()
        for part in PARTS:
            after: int | None = 0
            while after is not None:
                page = await self._send(routes.EXPORT_ROWS, part=part, after=after)
                for line in file.lines(part, page.rows):
                    yield line
                after = page.next_after
        yield file.end()

    async def import_organisation(
        self, lines: Iterable[str | bytes], *, on_progress: Callable[[ImportReport], None] | None = None
    ) -> ImportReport:
        """Stores the lines of an export; what is there already stays as it is, so it can be repeated.

        `on_progress` is called with the counts so far after each part of the file.
        """
        file = ImportFile()
        for call in file.calls(lines):
            file.note(call, await self._send(routes.IMPORT_ROWS, **call))
            if on_progress is not None:
                on_progress(file.report)
        return file.report
