"""From two replays to a question, and from a model's opinion to a comparison."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from reflexio.learners.llm.fence import Block, cut, fenced
from reflexio.learners.llm.shapes import Words
from reflexio.models.rollout import Comparison, Message, Scene

MOST_HISTORY = 20
MOST_POINTS = 8


def _points(value: object) -> list[str]:
    """A list of short texts; models write a single one now and then without the list."""
    several = value if isinstance(value, list) else [value]
    said = [each.strip() for each in several if isinstance(each, str) and each.strip()]
    return said[:MOST_POINTS]


Points = Annotated[list[str], BeforeValidator(_points)]


class Opinion(BaseModel):
    """Read strictly: a judge whose mark contradicts its verdict has not been understood."""

    model_config = ConfigDict(extra="forbid")

    verdict: Literal["first", "second", "tie"]
    score: Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
    likert: Annotated[int, Field(ge=1, le=5)]
    rationale: Words = ""
    better_in_first: Points = []
    better_in_second: Points = []
    worse_in_first: Points = []
    worse_in_second: Points = []
    wrong_in_both: Points = []
    missing_instructions: Points = []
    recommended_mutations: Points = []

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        least, most = {"first": (0.0, 0.5), "second": (0.5, 1.0), "tie": (0.25, 0.75)}[self.verdict]
        lowest, highest = {"first": (1, 3), "second": (3, 5), "tie": (2, 4)}[self.verdict]
        if not (least <= self.score <= most and lowest <= self.likert <= highest):
            raise ValueError(f"score and likert are not on the side of the verdict {self.verdict!r}")
        return self


def question(scene: Scene, trigger: str, first: Sequence[Message], second: Sequence[Message]) -> str:
    return fenced(
        [
            *([Block("the situation", cut(trigger))] if trigger else []),
            *([Block("what the user taught", cut(scene.lesson))] if scene.lesson else []),
            *conversation("before", scene.history[-MOST_HISTORY:]),
            *conversation("first replay", first),
            *conversation("second replay", second),
        ]
    )


def conversation(title: str, said: Sequence[Message]) -> Iterator[Block]:
    for number, each in enumerate(said, start=1):
        yield Block(f"{title}, line {number}, {each.role}", cut(each.content))


def comparison(opinion: Opinion) -> Comparison:
    points = {name: tuple(value) for name, value in opinion.model_dump().items() if isinstance(value, list)}
    return Comparison(opinion.verdict, opinion.score, opinion.likert, opinion.rationale, **points)
