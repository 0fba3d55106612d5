"""The tools around a conversation: read what is known, publish what happened, remember what was said."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from reflexio.mcp.access import MemoryAccess
from reflexio.mcp.tool import ToolAnswer, ToolDefinition, ToolInput
from reflexio.models.access import KeyScope
from reflexio.models.playbook import AgentPlaybook, UserPlaybook

SOURCE = "mcp"
"""The source of what this server publishes and remembers: filters and the dashboard show it."""
ROLES = {"user": "User", "assistant": "Agent"}
LONGEST_NEEDLE = 1000
NOTHING = "Nothing has been learned that bears on this."
Version = Annotated[
    str, Field(max_length=1000, description="Version of the agent, such as shop-2. Leave it out if there is only one.")
]


class GetContextInput(ToolInput):
    """Arguments of `get_context`."""

    message: Annotated[
        str,
        Field(
            max_length=1_000_000,
            description="The user's message that you are about to answer, in full. Empty: only what always holds.",
        ),
    ] = ""
    agent_version: Version = ""
    max_tokens: Annotated[int, Field(ge=1, le=100_000, description="How long the text may be.")] = 1000


class SearchInput(ToolInput):
    """Arguments of `search`."""

    query: Annotated[str, Field(min_length=1, max_length=100_000, description="What you want to know, in plain words.")]
    agent_version: Version = ""
    limit: Annotated[int, Field(ge=1, le=100, description="Most results of each kind.")] = 5


class LearningUsed(ToolInput):
    """A learning that was in the prompt."""

    kind: Literal["profile", "user_playbook", "agent_playbook"]
    id: Annotated[str, Field(min_length=1, max_length=1000)]


class CalledTool(ToolInput):
    """A call of a tool during a message."""

    tool_name: Annotated[str, Field(min_length=1, max_length=1000)]
    tool_data: Annotated[dict[str, Any], Field(description='Such as {"input": {...}, "output": "..."}.')] = {}
    status: Annotated[str, Field(max_length=1000, description="ok or error.")] = ""


class PublishedMessage(ToolInput):
    """A message of the conversation."""

    role: Literal["user", "assistant"]
    content: Annotated[str, Field(max_length=1_000_000)] = ""
    tools_used: Annotated[list[CalledTool], Field(max_length=1000, description="Tools that the assistant called.")] = []


class PublishInput(ToolInput):
    """Arguments of `publish`."""

    messages: Annotated[
        list[PublishedMessage],
        Field(min_length=1, max_length=1000, description="The new messages since the last publish, oldest first."),
    ]
    session_id: Annotated[
        str, Field(max_length=255, description="Id of the conversation: the one that the last publish answered with.")
    ] = ""
    agent_version: Version = ""
    learnings_used: Annotated[
        list[LearningUsed],
        Field(max_length=1000, description="The items that get_context returned, if you used its text."),
    ] = []
    session_finished: Annotated[bool, Field(description="True with the last messages of the conversation.")] = False


class RememberInput(ToolInput):
    """Arguments of `remember`."""

    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=10_000,
            description="One sentence that can be understood alone, such as: Is vegan. Or: Answer in German.",
        ),
    ]
    kind: Annotated[
        Literal["fact", "rule"], Field(description="fact: about the user. rule: how to work for this user.")
    ] = "fact"
    when: Annotated[
        str, Field(max_length=10_000, description="For a rule: the situation in which it applies. Empty: any.")
    ] = ""
    always: Annotated[
        bool, Field(description="True if it must be in every prompt, false if only where it bears on the message.")
    ] = False
    agent_version: Version = ""


def learning_line(playbook: UserPlaybook | AgentPlaybook) -> str:
    """A playbook in one line.

    >>> learning_line(UserPlaybook(user_playbook_id=7, content="Ask first.", trigger="a parcel is late"))
    '- [user_playbook 7] When: a parcel is late. Ask first.'
    """
    kind = "user_playbook" if isinstance(playbook, UserPlaybook) else "agent_playbook"
    when = f"When: {playbook.trigger.rstrip('.')}. " if playbook.trigger else ""
    return f"- [{kind} {_number(playbook)}] {when}{playbook.content}"


def _number(playbook: UserPlaybook | AgentPlaybook) -> int:
    return playbook.user_playbook_id if isinstance(playbook, UserPlaybook) else playbook.agent_playbook_id


def _playbook_data(playbook: UserPlaybook | AgentPlaybook) -> dict[str, Any]:
    return {"id": str(_number(playbook)), "content": playbook.content, "trigger": playbook.trigger or ""}


async def _get_context(access: MemoryAccess, user_id: str, arguments: GetContextInput) -> ToolAnswer:
    found = await access.client.get_context(
        arguments.message or None,
        user_id=user_id or None,
        agent_version=arguments.agent_version or access.agent_version or None,
        max_tokens=arguments.max_tokens,
    )
    items = [{"kind": item.kind, "id": item.id} for item in found.items]
    return ToolAnswer(found.context or NOTHING, {"context": found.context, "items": items})


async def _search(access: MemoryAccess, user_id: str, arguments: SearchInput) -> ToolAnswer:
    found = await access.client.search(
        arguments.query,
        user_id=user_id or None,
        agent_version=arguments.agent_version or access.agent_version or None,
        top_k=arguments.limit,
    )
    profiles = [f"- [profile {profile.profile_id}] {profile.content}" for profile in found.profiles]
    playbooks: Sequence[UserPlaybook | AgentPlaybook] = [*found.user_playbooks, *found.agent_playbooks]
    lines = [*profiles, *map(learning_line, playbooks)]
    content = {
        "profiles": [{"id": profile.profile_id, "content": profile.content} for profile in found.profiles],
        "user_playbooks": [_playbook_data(playbook) for playbook in found.user_playbooks],
        "agent_playbooks": [_playbook_data(playbook) for playbook in found.agent_playbooks],
    }
    return ToolAnswer("\n".join(lines) or NOTHING, content)


async def _publish(access: MemoryAccess, user_id: str, arguments: PublishInput) -> ToolAnswer:
    turns = [
        {
            "role": ROLES[message.role],
            "content": message.content,
            "tools_used": [call.model_dump() for call in message.tools_used],
        }
        for message in arguments.messages
    ]
    answers = [turn for turn in turns if turn["role"] == ROLES["assistant"]]
    (answers or turns)[-1]["retrieved_learnings"] = [used.model_dump() for used in arguments.learnings_used]
    stored = await access.client.publish_interaction(
        user_id,
        turns,
        source=SOURCE,
        agent_version=arguments.agent_version or access.agent_version,
        session_id=arguments.session_id or None,
        session_finished=arguments.session_finished,
    )
    content = {"request_id": stored.request_id, "session_id": stored.session_id, "warnings": stored.warnings}
    text = " ".join([f"Published. For the next messages: session_id {stored.session_id}.", *stored.warnings])
    return ToolAnswer(text, content)


async def _remember(access: MemoryAccess, user_id: str, arguments: RememberInput) -> ToolAnswer:
    kind = "profile" if arguments.kind == "fact" else "user_playbook"
    if known := await _known(access, user_id, arguments):
        return ToolAnswer(f"Remembered already, as {kind} {known}.", {"kind": kind, "id": known})
    learning: dict[str, Any] = {"user_id": user_id, "content": arguments.text, "source": SOURCE}
    if arguments.always:
        learning["scope"] = "always"
    if arguments.kind == "fact":
        added = await access.client.add_user_profile([learning])
    else:
        learning |= {"trigger": arguments.when, "agent_version": arguments.agent_version or access.agent_version}
        added = await access.client.add_user_playbook([learning])
    return ToolAnswer(f"Remembered as {kind} {added.ids[0]}.", {"kind": kind, "id": added.ids[0]})


async def _known(access: MemoryAccess, user_id: str, arguments: RememberInput) -> str:
    """The id of what says the same already: models repeat themselves. Empty for a key that may not look."""
    if KeyScope.READ not in await access.scopes():
        return ""
    text, needle = arguments.text.strip(), arguments.text.strip()[:LONGEST_NEEDLE]
    if arguments.kind == "fact":
        profiles = (await access.client.get_profiles(user_id, query=needle, force_refresh=True)).user_profiles
        return next((profile.profile_id for profile in profiles if profile.content == text), "")
    playbooks = (await access.client.get_user_playbooks(user_id=user_id, query=needle)).user_playbooks
    same = (playbook for playbook in playbooks if (playbook.content, playbook.trigger or "") == (text, arguments.when))
    return next((str(playbook.user_playbook_id) for playbook in same), "")


TOOLS = (
    ToolDefinition(
        "get_context",
        "What is known for this message",
        "Call this before you answer a user's message. It returns text for your own prompt: facts about the user, how "
        "they want things done, and what your team has approved for everybody. Follow it. It is never to be shown to "
        "the user as it is. When nothing is known it says so; then answer as usual.",
        KeyScope.READ,
        GetContextInput,
        _get_context,
        user="optional",
    ),
    ToolDefinition(
        "search",
        "Search what was learned",
        "Searches facts about the user, rules that the user taught, and approved rules for everybody, by words and by "
        "meaning. Call it when you want to know something in particular; before an answer, get_context is enough. "
        "Returns the best of each kind, with ids.",
        KeyScope.READ,
        SearchInput,
        _search,
        user="optional",
    ),
    ToolDefinition(
        "publish",
        "Publish what was said",
        "Call this after you have answered: it stores the new messages of the conversation, from which Reflexio learns "
        "in the background. Publish every message once, the user's and yours, in their own words, with the tools that "
        "you called. Returns the session_id for the next publish.",
        KeyScope.PUBLISH,
        PublishInput,
        _publish,
        user="required",
    ),
    ToolDefinition(
        "remember",
        "Remember one thing",
        "Stores one fact about the user, or one rule of theirs, at once. Call it when the user asks you to remember "
        "something. What is said in passing is learned from publish; do not store it here as well. Never store "
        "passwords or keys. Returns its id.",
        KeyScope.PUBLISH,
        RememberInput,
        _remember,
        user="required",
    ),
)
