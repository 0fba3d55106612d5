"""What a host can read without calling a tool: a user's profile, a user's playbooks, and what holds for everybody."""

from dataclasses import dataclass
from urllib.parse import quote, unquote

from reflexio.errors import NotFound
from reflexio.mcp.access import MemoryAccess
from reflexio.mcp.tools import learning_line

SCHEME = "reflexio://"
EVERYBODY = f"{SCHEME}playbooks"
PROFILE, PLAYBOOKS = "profile", "playbooks"
MOST = 500
"""Rows of a resource, newest first: it goes into a prompt."""
NONE_YET = "Nothing yet."


@dataclass(frozen=True)
class ResourceDefinition:
    """A resource, or a template of resources when its URI names `{user_id}`."""

    uri: str
    name: str
    title: str
    description: str

    @property
    def is_template(self) -> bool:
        return "{" in self.uri


OF_EVERYBODY = ResourceDefinition(
    EVERYBODY,
    "agent-playbooks",
    "Approved playbooks",
    "The approved advice that holds for every user, with the situations in which it applies.",
)


def resources_for(access: MemoryAccess) -> tuple[ResourceDefinition, ...]:
    """The resources of a session: those of its user, or templates when it is bound to none."""
    user = quote(access.user_id, safe="") or "{user_id}"
    return (
        ResourceDefinition(
            f"{SCHEME}users/{user}/{PROFILE}", "user-profile", "Profile", "What is known about the user: current facts."
        ),
        ResourceDefinition(
            f"{SCHEME}users/{user}/{PLAYBOOKS}",
            "user-playbooks",
            "User's playbooks",
            "How the user wants things done: current rules, with the situations in which they apply.",
        ),
        OF_EVERYBODY,
    )


async def read(access: MemoryAccess, uri: str) -> str:
    """The text of a resource, as Markdown. Raises NotFound for a URI that names none."""
    if uri == EVERYBODY:
        return await _of_everybody(access)
    match uri.removeprefix(SCHEME).split("/") if uri.startswith(SCHEME) else ():
        case ("users", user, kind) if unquote(user).strip() and kind in (PROFILE, PLAYBOOKS):
            user_id = access.user(unquote(user).strip())
            return await (_profile if kind == PROFILE else _playbooks)(access, user_id)
    raise NotFound(what="resource", id=uri[:200])


async def _profile(access: MemoryAccess, user_id: str) -> str:
    page = await access.client.get_profiles(user_id, top_k=MOST, force_refresh=True)
    return _page([f"- {profile.content}" for profile in page.user_profiles], page.next_cursor)


async def _playbooks(access: MemoryAccess, user_id: str) -> str:
    page = await access.client.get_user_playbooks(user_id=user_id, limit=MOST)
    return _page([learning_line(playbook) for playbook in page.user_playbooks], page.next_cursor)


async def _of_everybody(access: MemoryAccess) -> str:
    page = await access.client.get_agent_playbooks(
        playbook_status_filter="approved",
        agent_version=access.agent_version or None,
        limit=MOST,
        force_refresh=True,
    )
    return _page([learning_line(playbook) for playbook in page.agent_playbooks], page.next_cursor)


def _page(lines: list[str], next_cursor: str | None) -> str:
    more = [f"({MOST} rows are shown; there are more.)"] if next_cursor else []
    return "\n".join([*lines, *more]) or NONE_YET
