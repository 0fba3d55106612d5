"""Where a learning comes from, as text: the turns, the learner, what it replaced, and its history."""

from typing import TYPE_CHECKING

from reflexio.cli.output import heading, moment, print_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reflexio.models.interaction import Interaction
    from reflexio.models.review import LearningProvenanceResponse, LineageEntry

MOST_SOURCES = 10
"""Sources of an agent playbook that are shown."""


def print_provenance(provenance: "LearningProvenanceResponse") -> None:
    """The parts of it that there are."""
    if provenance.interactions or provenance.source_span:
        heading("\nLearned from")
    if provenance.source_span:
        print_text(f'"{_one_line(provenance.source_span)}"', 2)
    print_turns(provenance.interactions)
    if provenance.source_user_playbooks:
        heading("\nTaught by")
    for source in provenance.source_user_playbooks[:MOST_SOURCES]:
        playbook = source.user_playbook
        words = playbook.source_span or playbook.content
        print_text(f"{playbook.user_id or 'unknown user'} ({playbook.user_playbook_id}): {_one_line(words)}", 2)
    if (more := len(provenance.source_user_playbooks) - MOST_SOURCES) > 0:
        print_text(f"and {more} more", 2)
    if provenance.replaced:
        heading("\nReplaced")
    for former in provenance.replaced:
        print_text(f"{former.id}: {_one_line(former.content)}", 2)
    if provenance.events:
        heading("\nHistory")
        print_history(provenance.events)


def print_turns(turns: "Sequence[Interaction]") -> None:
    """A conversation, one turn a line."""
    for turn in turns:
        words = turn.content or turn.user_action_description or turn.interacted_image_url
        print_text(f"{turn.role}: {_one_line(words)}", 2)
        for tool in turn.tools_used:
            print_text(f"used {tool.tool_name} {_one_line(str(tool.tool_data))} {tool.status}".rstrip(), 4)
        if turn.expert_content:
            print_text(f"an expert: {_one_line(turn.expert_content)}", 4)


def print_history(events: "Sequence[LineageEntry]") -> None:
    """What happened to a learning, oldest first."""
    for event in events:
        change = f"{event.from_status} → {event.to_status}" if event.from_status else event.to_status
        words = (moment(event.at), event.op, event.actor, change, event.reason)
        print_text("  ".join(_one_line(word) for word in words if word), 2)


def _one_line(text: str) -> str:
    return " ".join(text.split())
