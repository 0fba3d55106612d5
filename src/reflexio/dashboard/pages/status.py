"""Status: what the doctor says about this organisation, in plain words with what to do."""

from dataclasses import dataclass

from starlette.responses import Response

from reflexio.dashboard.routing import Pages
from reflexio.dashboard.visit import Visit
from reflexio.doctor import examine_organisation
from reflexio.models.access import KeyScope

pages = Pages()

BACKLOG = {
    "turns_not_indexed": "Turns that search does not find yet",
    "turns_without_vector": "Turns that search finds by words only",
    "learnings_without_vector": "Learnings that search finds by words only",
}


@dataclass(frozen=True)
class BacklogEntry:
    """What waits to be indexed or embedded, with the age of the oldest in seconds."""

    name: str
    count: int
    oldest: int


@pages.get("/status", KeyScope.READ)
async def status(visit: Visit) -> Response:
    """All findings, broken parts first. No model is asked."""
    findings = await examine_organisation(visit.parts, visit.caller.org_id)
    return visit.page(
        "status.html",
        findings=sorted(findings, key=lambda finding: finding.is_ok),
        broken_count=sum(not finding.is_ok for finding in findings),
        backlog=backlog(visit.parts.index_status.backlog()),
    )


def backlog(counts: dict[str, int]) -> list[BacklogEntry]:
    """What waits, of all organisations of the server together."""
    oldest = {"turns_not_indexed": counts["oldest_not_indexed_seconds"]}
    return [
        BacklogEntry(words, counts[name], oldest.get(name, counts["oldest_without_vector_seconds"]))
        for name, words in BACKLOG.items()
        if counts[name]
    ]
