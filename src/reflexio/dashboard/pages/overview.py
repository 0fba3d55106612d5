"""The first page: what came in, what was learned, what waits, what it cost, and whether learning works."""

from collections.abc import Sequence
from datetime import UTC, datetime

from starlette.responses import Response

from reflexio.dashboard.charts import Series, area_chart, bar_chart
from reflexio.dashboard.routing import Pages
from reflexio.dashboard.visit import Visit
from reflexio.models.access import KeyScope
from reflexio.organisations.overview import Day, overview

pages = Pages()

PERIODS = {"7": "7 days", "28": "4 weeks", "90": "3 months"}
USUAL = "28"
LINKS = {
    "review": "/review",
    "approved": "/learnings?kind=agent_playbook&review=approved",
    "user_playbooks": "/learnings?kind=user_playbook",
    "profiles": "/learnings?kind=profile",
}


@pages.get("/", None)
async def show_overview(visit: Visit) -> Response:
    """Keys without the scope `read` land here too: they see what they may do instead."""
    if not visit.may(KeyScope.READ):
        return visit.page("welcome.html")
    period = visit.asked("days", USUAL)
    period = period if period in PERIODS else USUAL
    seen = await overview(visit.store, visit.now, int(period))
    tabs = [("/" if days == USUAL else f"/?days={days}", words, None) for days, words in PERIODS.items()]
    backlog = visit.parts.index_status.backlog()
    return visit.page(
        "overview.html",
        seen=seen,
        charts=_charts(seen.days),
        tabs=tabs,
        current_tab="/" if period == USUAL else f"/?days={period}",
        period=PERIODS[period],
        links={name: path if visit.has_page(path) else "" for name, path in LINKS.items()},
        index_backlog=backlog,
        model=visit.parts.settings.model,
        url=str(visit.request.base_url).rstrip("/"),
    )


def _charts(days: Sequence[Day]) -> dict[str, str]:
    slots = [datetime.fromtimestamp(day.at, UTC).strftime("%-d %b") for day in days]
    learned = [
        Series("User playbooks", [day.user_playbooks for day in days]),
        Series("Profiles", [day.profiles for day in days]),
        Series("Agent playbooks", [day.agent_playbooks for day in days]),
    ]
    return {
        "turns": area_chart("What came in", slots, [Series("Turns", [day.turns for day in days])], unit="turns a day"),
        "learned": bar_chart("What was learned", slots, learned, unit="learnings a day"),
        "tokens": bar_chart(
            "What it cost", slots, [Series("Tokens", [day.tokens for day in days], 3)], unit="tokens a day"
        ),
    }
