"""Writes the conversations of the demo: who writes when to which agent about what. A seed decides everything."""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from reflexio.models.interaction import InteractionData, RetrievedLearning, ToolUsed

DAYS = 28
SHOP, NEXT_SHOP, STAY = "shop-1", "shop-2", "stay-1"
TRIAL_DAYS = range(10, 18)
"""Days on which both versions of the shop's agent run side by side."""
CONVERSATIONS_A_DAY, WEEKEND_SHARE, GROWTH = 11.0, 0.6, 0.3
OTHER_LANGUAGES = {"de": 0.09, "es": 0.08}
FACT_SHARE, EXPERT_SHARE = 0.22, 0.3
FACT_STEPS = (0, 7)
HOURS = range(7, 21)
SECONDS_BETWEEN_TURNS, FIRST_ANSWER = 35, 1

_DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_name("conversations.toml").read_text(encoding="utf-8"))
REVIEW: dict[str, Any] = _DATA["review"]
ADDITIONS: list[dict[str, str]] = _DATA["additions"]


@dataclass(frozen=True)
class DemoTopic:
    """What people write about, and how the conversation goes on. Without lessons nobody corrects the agent."""

    name: str
    agent: str
    weight: int
    openers: list[str]
    good: list[str]
    thanks: list[str]
    language: str = "en"
    from_day: int = 0
    wrong: list[str] = field(default_factory=list)
    lessons: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    expert: str = ""
    tool: dict[str, str] = field(default_factory=dict)


TOPICS = [DemoTopic(**topic) for topic in _DATA["topics"]]


@dataclass(frozen=True)
class DemoConversation:
    """One conversation, with all sentences that it may take. What the agent knows decides which of them it takes."""

    topic: str
    user_id: str
    agent_version: str
    source: str
    session_id: str
    started_at: int
    opener: str
    good: str
    thanks: str
    wrong: str = ""
    lesson: str = ""
    answer: str = ""
    expert: str = ""
    tools: tuple[ToolUsed, ...] = ()

    def turns(self, *, is_known: bool, retrieved: Sequence[RetrievedLearning]) -> list[InteractionData]:
        """The turns. `is_known` is whether the context held a lesson; then the agent answers well at once."""
        first = self.good if is_known or not self.wrong else self.wrong
        lines = [("User", self.opener), ("Agent", first)]
        if first == self.wrong and self.lesson:
            lines += [("User", self.lesson), ("Agent", self.answer)]
        lines.append(("User", self.thanks))
        return [
            InteractionData(
                role=role,
                content=text,
                created_at=self.started_at + number * SECONDS_BETWEEN_TURNS,
                expert_content=self.expert if text == self.wrong and not self.lesson else "",
                tools_used=list(self.tools) if number == FIRST_ANSWER else [],
                retrieved_learnings=list(retrieved) if number == FIRST_ANSWER else [],
            )
            for number, (role, text) in enumerate(lines)
        ]


def write_conversations(seed: int, end: datetime) -> list[DemoConversation]:
    """The conversations of the four weeks before `end`, oldest first."""
    random, first_day = Random(seed), end.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first_day -= timedelta(days=DAYS - 1)
    written = [
        conversation
        for day in range(DAYS)
        for conversation in _of_day(random, day, first_day + timedelta(days=day), end)
    ]
    return sorted(written, key=lambda conversation: (conversation.started_at, conversation.session_id))


def _of_day(random: Random, day: int, date: datetime, end: datetime) -> Iterator[DemoConversation]:
    expected = CONVERSATIONS_A_DAY * (1 + GROWTH * day / DAYS * 2)
    expected *= WEEKEND_SHARE if date.weekday() >= 5 else 1.0
    for number in range(round(random.gauss(expected, 1.5))):
        moment = date + timedelta(hours=random.choice(HOURS), seconds=random.randrange(3600))
        if moment < end - timedelta(minutes=30):
            yield _conversation(random, day, int(moment.timestamp()), f"{date:%m%d}-{number:02}")
        else:
            _conversation(random, day, 0, "")  # draws as much, so that the time of day changes nothing that follows


def _conversation(random: Random, day: int, started_at: int, number: str) -> DemoConversation:
    language = _language(random)
    topics = [topic for topic in TOPICS if topic.language == language and topic.from_day <= day]
    topic = random.choices(topics, [topic.weight for topic in topics])[0]
    user = random.choice(_DATA["people"][language])
    values = {
        "order": str(random.randrange(20_000, 90_000)),
        "product": random.choice(_DATA["products"]),
        "city": random.choice(_DATA["cities"]),
    }
    texts = {
        name: random.choice(sentences).format(**values) if sentences else ""
        for name, sentences in (
            ("opener", topic.openers), ("good", topic.good), ("thanks", topic.thanks), ("wrong", topic.wrong),
            ("lesson", topic.lessons), ("answer", topic.answers),
        )
    }  # fmt: skip
    fact = _fact(random, language, user).format(**values)
    if random.random() < FACT_SHARE:
        texts["thanks"] = f"{texts['thanks']} {fact}"
    if topic.expert and random.random() < EXPERT_SHARE:
        texts |= {"lesson": "", "expert": topic.expert}
    return DemoConversation(
        topic.name,
        user,
        _agent_version(random, topic, day),
        random.choice(_DATA["sources"]),
        f"{topic.name.replace(' ', '-')}-{number}",
        started_at,
        tools=_tools(topic, values["order"]),
        **texts,
    )


def _fact(random: Random, language: str, user: str) -> str:
    """One of the facts that are true of a user."""
    facts, place = _DATA["facts"][language], _DATA["people"][language].index(user)
    return str(facts[(random.choice(FACT_STEPS) + 3 * place) % len(facts)])


def _language(random: Random) -> str:
    draw = random.random()
    for language, share in OTHER_LANGUAGES.items():
        if draw < share:
            return language
        draw -= share
    return "en"


def _agent_version(random: Random, topic: DemoTopic, day: int) -> str:
    draw = random.random()
    if topic.agent == "stay":
        return STAY
    if day in TRIAL_DAYS:
        return NEXT_SHOP if draw < 0.5 else SHOP
    return SHOP if day < TRIAL_DAYS.start else NEXT_SHOP


def _tools(topic: DemoTopic, order: str) -> tuple[ToolUsed, ...]:
    if not topic.tool:
        return ()
    worked = ToolUsed(tool_name=topic.tool["name"], tool_data={"id": int(order)}, status="ok")
    if "wrong" not in topic.tool:
        return (worked,)
    return ToolUsed(tool_name=topic.tool["name"], tool_data={"id": order}, status=topic.tool["wrong"]), worked
