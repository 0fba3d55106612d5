"""What a person can start from their tool, often as a slash command: answer with memory, save a lesson, review."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from reflexio.errors import InvalidRequest
from reflexio.mcp.access import MemoryAccess
from reflexio.mcp.resources import PROFILE, SCHEME, read
from reflexio.models.access import KeyScope

USER = ("user_id", "Id of the user.", True)


@dataclass(frozen=True)
class PromptDefinition:
    """A prompt, with its arguments: name, description, and whether it is required."""

    name: str
    title: str
    description: str
    scope: KeyScope
    arguments: tuple[tuple[str, str, bool], ...]
    write: Callable[[MemoryAccess, Mapping[str, str]], Awaitable[str]]

    def arguments_for(self, access: MemoryAccess) -> tuple[tuple[str, str, bool], ...]:
        """A session that is bound to a user is not asked for one."""
        return tuple(argument for argument in self.arguments if not (access.user_id and argument == USER))

    async def text(self, access: MemoryAccess, given: Mapping[str, str]) -> str:
        """The text of the prompt. Raises InvalidRequest without a required argument, or with an unknown one."""
        arguments = self.arguments_for(access)
        missing = [name for name, _, is_required in arguments if is_required and not given.get(name, "").strip()]
        if missing:
            raise InvalidRequest(f"{', '.join(missing)}: required.")
        known = {name for name, _, _ in self.arguments}
        if unknown := sorted(set(given) - known):
            raise InvalidRequest(f"{', '.join(unknown)}: this prompt has no such argument.")
        user_id = access.user(given.get("user_id", "").strip())
        return await self.write(access, {**given, "user_id": user_id})


async def _with_memory(access: MemoryAccess, given: Mapping[str, str]) -> str:
    found = await access.client.get_context(
        given["message"], user_id=given["user_id"], agent_version=access.agent_version or None
    )
    known = f"What is known, for you alone:\n{found.context}\n\n" if found.context else ""
    return f"{known}Answer this message:\n{given['message']}"


async def _save_lesson(access: MemoryAccess, given: Mapping[str, str]) -> str:
    user = f" Their user_id is {given['user_id']!r}." if not access.user_id else ""
    return (
        f"Look back over our conversation. What did I correct, and what did I tell you that holds beyond today?{user} "
        "Show me each as one sentence that can be understood alone. Store those that I agree with by the tool "
        "`remember`, as a rule or as a fact. Store no passwords and no keys."
    )


async def _review(access: MemoryAccess, _: Mapping[str, str]) -> str:
    return (
        "Let us review what was learned. List what waits with `review_list`. For each, show me the advice, when it "
        "applies, the evidence and who disagreed (`review_show`), say in one sentence what you would do and why, and "
        "wait for my answer. Then call `review_approve`, `review_reject` or `review_edit` with my reason. "
        "Decide nothing without my word."
    )


async def _what_is_known(access: MemoryAccess, given: Mapping[str, str]) -> str:
    profile = await read(access, f"{SCHEME}users/{quote(given['user_id'], safe='')}/{PROFILE}")
    return f"These facts are stored about the user:\n{profile}\n\nTell me in a few sentences what you know."


PROMPTS = (
    PromptDefinition(
        "answer_with_memory",
        "Answer with memory",
        "Answers a message with what was learned from this user and from others.",
        KeyScope.READ,
        (USER, ("message", "The message to answer.", True)),
        _with_memory,
    ),
    PromptDefinition(
        "what_is_known",
        "What is known",
        "Says what is stored about a user.",
        KeyScope.READ,
        (USER,),
        _what_is_known,
    ),
    PromptDefinition(
        "save_lesson",
        "Save what we learned",
        "Finds what this conversation taught, and stores it after you agree.",
        KeyScope.PUBLISH,
        (USER,),
        _save_lesson,
    ),
    PromptDefinition(
        "review_playbooks",
        "Review what was learned",
        "Goes through the playbooks that wait for your decision, one by one.",
        KeyScope.REVIEW,
        (),
        _review,
    ),
)
