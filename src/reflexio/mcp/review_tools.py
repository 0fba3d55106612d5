"""The review tools: a person decides, by way of the model, which agent playbooks reach everybody's prompts."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import Field

from reflexio.mcp.access import MemoryAccess
from reflexio.mcp.tool import ToolAnswer, ToolDefinition, ToolInput
from reflexio.mcp.tools import learning_line
from reflexio.models.access import KeyScope
from reflexio.models.learning import PlaybookStatus
from reflexio.models.review import LineageEntry, ReviewItem, ReviewResponse, SupportingQuote

PlaybookId = Annotated[int, Field(ge=1, le=2**63 - 1, description="Number of the agent playbook.")]
PlaybookIds = Annotated[list[PlaybookId], Field(min_length=1, max_length=100, description="Their numbers.")]
Reason = Annotated[str, Field(max_length=10_000, description="Why, in the person's words; kept with the decision.")]
ASK = "Only on the word of a person who has seen the playbook; never decide by yourself."
NO_DECISION = "No agent playbook waits for a decision."


class ReviewListInput(ToolInput):
    """Arguments of `review_list`."""

    agent_version: Annotated[str, Field(max_length=1000, description="Only this version of the agent.")] = ""
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    cursor: Annotated[str, Field(max_length=1000, description="next_cursor of the page before.")] = ""


class ReviewShowInput(ToolInput):
    """Arguments of `review_show`."""

    agent_playbook_id: PlaybookId


class ReviewDecisionInput(ToolInput):
    """Arguments of the decisions."""

    agent_playbook_ids: PlaybookIds
    reason: Reason = ""


class ReviewEditInput(ToolInput):
    """Arguments of `review_edit`."""

    agent_playbook_id: PlaybookId
    content: Annotated[str, Field(max_length=100_000, description="The new advice. Empty: as it is.")] = ""
    trigger: Annotated[str, Field(max_length=100_000, description="The new situation. Empty: as it is.")] = ""
    reason: Reason = ""


def describe(item: ReviewItem) -> str:
    """A playbook with all that a person needs to decide about it."""
    return "\n".join(_description(item))


def _description(item: ReviewItem) -> Iterator[str]:
    playbook = item.agent_playbook
    yield f"Agent playbook {playbook.agent_playbook_id}, {playbook.playbook_status.value}, {item.taught_by}."
    if playbook.agent_version:
        yield f"Agent version: {playbook.agent_version}"
    if playbook.trigger:
        yield f"When: {playbook.trigger}"
    yield f"Advice: {playbook.content}"
    if playbook.rationale:
        yield f"Why: {playbook.rationale}"
    yield from _quotes(f"Evidence ({item.evidence_count}):", item.evidence)
    yield from _quotes("Some users said otherwise:", item.disagreement)
    yield from _section("It would replace:", [learning_line(other) for other in item.replaces])
    yield from _section("Changes:", item.difference.splitlines())
    near = [
        f"{learning_line(other.agent_playbook)} ({other.agent_playbook.playbook_status.value}"
        f"{', says the opposite' if other.contradicts else ''})"
        for other in item.near_duplicates
    ]
    yield from _section("Nearly the same:", near)
    yield from _section("History:", [_event(entry) for entry in item.history])


def _event(entry: LineageEntry) -> str:
    parts = (entry.op, entry.to_status, f"by {entry.actor}" if entry.actor else "", entry.reason)
    return "- " + ", ".join(part for part in parts if part)


def _quotes(title: str, quotes: Sequence[SupportingQuote]) -> Iterator[str]:
    yield from _section(title, [f'- "{quote.source_span or quote.content}"' for quote in quotes])


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield title
        yield from lines


def _data(item: ReviewItem) -> dict[str, Any]:
    playbook = item.agent_playbook
    return {
        "id": playbook.agent_playbook_id,
        "status": playbook.playbook_status.value,
        "content": playbook.content,
        "trigger": playbook.trigger or "",
        "support": item.support,
        "taught_by": item.taught_by,
        "disagreements": len(item.disagreement),
        "replaces": [other.agent_playbook_id for other in item.replaces],
    }


async def _list(access: MemoryAccess, _: str, arguments: ReviewListInput) -> ToolAnswer:
    page = await access.client.get_review_queue(
        agent_version=arguments.agent_version or access.agent_version or None,
        limit=arguments.limit,
        cursor=arguments.cursor or None,
    )
    lines = [f"{learning_line(item.agent_playbook)} ({item.taught_by})" for item in page.items]
    more = [f"More: cursor {page.next_cursor}"] if page.next_cursor else []
    content = {"items": [_data(item) for item in page.items], "pending_count": page.pending_count}
    if page.next_cursor:
        content["next_cursor"] = page.next_cursor
    return ToolAnswer("\n".join([*lines, *more]) or NO_DECISION, content)


async def _show(access: MemoryAccess, _: str, arguments: ReviewShowInput) -> ToolAnswer:
    (item,) = (await access.client.get_review_queue(agent_playbook_id=arguments.agent_playbook_id)).items
    return ToolAnswer(describe(item), _data(item))


async def _decide(access: MemoryAccess, arguments: ReviewDecisionInput, status: PlaybookStatus) -> ToolAnswer:
    done = await access.client.review_agent_playbooks(
        arguments.agent_playbook_ids, playbook_status=status, reason=arguments.reason, reviewer=access.reviewer
    )
    return _outcome(status.value.capitalize(), arguments.agent_playbook_ids, done)


async def _approve(access: MemoryAccess, _: str, arguments: ReviewDecisionInput) -> ToolAnswer:
    return await _decide(access, arguments, PlaybookStatus.APPROVED)


async def _reject(access: MemoryAccess, _: str, arguments: ReviewDecisionInput) -> ToolAnswer:
    return await _decide(access, arguments, PlaybookStatus.REJECTED)


async def _undo(access: MemoryAccess, _: str, arguments: ReviewDecisionInput) -> ToolAnswer:
    done = await access.client.undo_review(
        arguments.agent_playbook_ids, reason=arguments.reason, reviewer=access.reviewer
    )
    return _outcome("Undone", arguments.agent_playbook_ids, done)


def _outcome(what: str, ids: Sequence[int], done: ReviewResponse) -> ToolAnswer:
    text = f"{what}: {', '.join(map(str, ids))}."
    if done.retired_ids:
        text += f" Retired, because they are replaced: {', '.join(map(str, done.retired_ids))}."
    if done.restored_ids:
        text += f" In force again: {', '.join(map(str, done.restored_ids))}."
    return ToolAnswer(text, {"changed": done.changed_count, "retired": done.retired_ids, "restored": done.restored_ids})


async def _edit(access: MemoryAccess, _: str, arguments: ReviewEditInput) -> ToolAnswer:
    texts = {"content": arguments.content, "trigger": arguments.trigger}
    wording = {name: text for name, text in texts.items() if text}
    await access.client.update_agent_playbook(
        arguments.agent_playbook_id, reason=arguments.reason, reviewer=access.reviewer, **wording
    )
    (item,) = (await access.client.get_review_queue(agent_playbook_id=arguments.agent_playbook_id)).items
    return ToolAnswer(f"Changed.\n{describe(item)}", _data(item))


REVIEW_TOOLS = (
    ToolDefinition(
        "review_list",
        "Playbooks that wait for review",
        "Lists the agent playbooks that wait for a person's decision, newest first: number, when it applies, advice, "
        "and how many users taught it. Call it when the person wants to review what was learned.",
        KeyScope.READ,
        ReviewListInput,
        _list,
    ),
    ToolDefinition(
        "review_show",
        "One playbook with its evidence",
        "Shows one agent playbook with what a person needs to decide: the sentences it was learned from, who "
        "disagreed, what it would replace, what says nearly the same, and earlier decisions.",
        KeyScope.READ,
        ReviewShowInput,
        _show,
    ),
    ToolDefinition(
        "review_approve",
        "Approve playbooks",
        f"Approves agent playbooks: from then on they reach the prompts of all users. {ASK} Returns what it replaced.",
        KeyScope.REVIEW,
        ReviewDecisionInput,
        _approve,
        is_destructive=True,
    ),
    ToolDefinition(
        "review_reject",
        "Reject playbooks",
        f"Rejects agent playbooks: they reach no prompt. {ASK}",
        KeyScope.REVIEW,
        ReviewDecisionInput,
        _reject,
        is_destructive=True,
    ),
    ToolDefinition(
        "review_edit",
        "Change the wording of a playbook",
        "Changes the advice of an agent playbook, the situation in which it applies, or both, and keeps the old "
        "wording in its history. It decides nothing: a pending one still waits for approval. Returns the playbook as "
        f"it is now. {ASK}",
        KeyScope.REVIEW,
        ReviewEditInput,
        _edit,
        is_destructive=True,
    ),
    ToolDefinition(
        "review_undo",
        "Undo a decision",
        "Takes back the last decision about agent playbooks, with the edit that came with it; what it had replaced is "
        "in force again. Call it when the person changes their mind.",
        KeyScope.REVIEW,
        ReviewDecisionInput,
        _undo,
        is_destructive=True,
    ),
)
