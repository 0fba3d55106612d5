"""Windows, types and notes that the tests of this learner are made of."""

from typing import Any

from reflexio.models.config import Config, PlaybookConfig
from reflexio.models.extraction import ExtractedLearning, Neighbour, Neighbourhood, Turn, Window
from reflexio.models.learning import Kind, Learning

BOTH = frozenset({Kind.PROFILE, Kind.USER_PLAYBOOK})

TYPES = [
    {
        "playbook_name": "response_quality",
        "playbook_definition_prompt": """
        Evaluate the quality of the agent's responses:
        - Accuracy: Was the information provided correct?
        - Completeness: Did it fully address the user's question?
        - Clarity: Was the response easy to understand?
        - Relevance: Was the response on-topic?
        """,
        "metadata_definition_prompt": """
        Extract metadata:
        - quality_score: 1-5 rating
        - issues_found: list of specific problems
        - strengths: list of positive aspects
        """,
    },
    {
        "playbook_name": "task_completion",
        "playbook_definition_prompt": """
        Determine if the agent successfully helped the user complete their intended task:
        - Did the user achieve their goal?
        - Were there any blockers or failures?
        - How many attempts were needed?
        """,
        "metadata_definition_prompt": """
        Extract metadata:
        - task_completed: boolean
        - attempts_required: number
        - blocking_issues: list of issues that prevented completion
        """,
    },
    {
        "playbook_name": "user_sentiment",
        "playbook_definition_prompt": """
        Analyze the user's emotional state throughout the conversation:
        - Starting sentiment (neutral, positive, negative, frustrated)
        - Ending sentiment
        - Key moments that changed sentiment
        """,
        "metadata_definition_prompt": """
        Extract metadata:
        - initial_sentiment: string
        - final_sentiment: string
        - sentiment_change: improved/unchanged/worsened
        """,
    },
]


def three_types() -> Config:
    """The three playbook types that the documentation shows."""
    return Config(playbook_configs=[PlaybookConfig.model_validate(each) for each in TYPES])


def window(*turns: Turn | str) -> Window:
    """Turns with the ids 101, 102 …; bare words are the user's and the agent's by turns."""
    made = [
        each if isinstance(each, Turn) else Turn(101 + place, "agent" if place % 2 else "user", each)
        for place, each in enumerate(turns)
    ]
    return Window("ann", "v1", tuple(made))


def quote(turn: Any, text: str) -> dict[str, Any]:
    return {"turn": turn, "text": text}


def profile(content: str, **more: Any) -> ExtractedLearning:
    return ExtractedLearning(Kind.PROFILE, "profile", content, **more)


def playbook(content: str, **more: Any) -> ExtractedLearning:
    return ExtractedLearning(Kind.USER_PLAYBOOK, "playbook", content, **more)


def near(candidate: ExtractedLearning, *stored: tuple[int, str]) -> Neighbourhood:
    learnings = (Learning(candidate.kind, content, id=number) for number, content in stored)
    return Neighbourhood(candidate, tuple(Neighbour(each, 0.9) for each in learnings))
