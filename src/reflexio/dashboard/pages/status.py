"""Status: what the doctor says about this organisation, in plain words with what to do."""

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.responses import Response

from reflexio.dashboard.routing import Pages
from reflexio.dashboard.visit import Visit
from reflexio.doctor import examine_organisation
from reflexio.models.access import KeyScope

pages = Pages()

BACKLOG = {
    "turns_not_indexed": ("Turns that search does not find yet", "oldest_not_indexed_seconds"),
    "learnings_not_indexed": ("Learnings that search does not find yet", ""),
    "turns_without_vector": ("Turns that search finds by words only", "oldest_without_vector_seconds"),
    "learnings_without_vector": ("Learnings that search finds by words only", "oldest_without_vector_seconds"),
}
"""What may wait: in words, and where the age of the oldest row stands."""

LINKS = {
    "review": ("/review", "Open the review queue"),
    "learning": ("/operations", "Open the operations"),
    "model": ("/settings", "Open the settings"),
}
"""Where something can be done about a part, and how the link is called."""


@dataclass(frozen=True)
class BacklogEntry:
    """What waits to be indexed or embedded, with the age of the oldest in seconds; 0 when it is not known."""

    name: str
    count: int
    oldest: int


@pages.get("/status", KeyScope.READ)
async def status(visit: Visit) -> Response:
    """All findings, broken parts first. No model is asked."""
    counts = visit.parts.index_status.backlog()
    findings = await examine_organisation(visit.parts, visit.caller.org_id)
    return visit.page(
        "status.html",
        findings=sorted(findings, key=lambda finding: finding.is_ok),
        links=LINKS,
        broken_count=sum(not finding.is_ok for finding in findings),
        backlog=backlog(counts),
        seconds_left=counts["embedding_seconds_left"],
    )


def backlog(counts: Mapping[str, int | None]) -> list[BacklogEntry]:
    """What waits, of all organisations of the server together."""
    return [
        BacklogEntry(words, count, counts.get(age) or 0)
        for name, (words, age) in BACKLOG.items()
        if (count := counts.get(name) or 0)
    ]
