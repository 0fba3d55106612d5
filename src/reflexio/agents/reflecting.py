"""From a failed attempt to a lesson: by the evaluator's own words, or by a function that thinks about it."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal

from reflexio.agents.attempt import Attempt, AttemptRecord
from reflexio.agents.bullets import shortened
from reflexio.agents.calling import Called, prepared
from reflexio.agents.values import Lesson

Reflect = Callable[..., Any] | Literal["feedback"] | None
"""`reflect(record)` or `reflect(record, attempt)`, plain or async, that answers with a sentence, a `Lesson` or None.

"feedback" takes the evaluator's words, None learns nothing.
"""


_BLANK = Lesson("")


def reflecting(reflect: Reflect) -> Called | None:
    match reflect:
        case None:
            return None
        case "feedback":
            return _feedback
        case _ if callable(reflect):
            return prepared(reflect)
        case _:
            raise TypeError(f'reflect={reflect!r}: give a function, "feedback" or None.')


async def _feedback(record: AttemptRecord, attempt: Attempt | None) -> str:
    return record.evaluation.feedback


def lesson_of(said: Any, record: AttemptRecord, attempt: Attempt) -> Lesson | None:
    """What the reflector said as a lesson that knows where it comes from. Nothing said is no lesson."""
    if said is None:
        return None
    if not isinstance(said, str | Lesson):
        raise TypeError(f"A reflector answers with a sentence, a Lesson or None, not {said!r}.")
    lesson = _BLANK if isinstance(said, str) else said
    content = shortened((said if isinstance(said, str) else said.content).strip())
    if not content:
        return None
    return Lesson(
        content,
        trigger=lesson.trigger or shortened(str(attempt.task)),
        rationale=lesson.rationale or shortened(record.evaluation.feedback),
        id=lesson.id,
        user_id=attempt.user_id if lesson.user_id is None else lesson.user_id,
        scope=lesson.scope,
        agent_version=lesson.agent_version or attempt.agent_version,
        run_id=attempt.run_id,
        attempt=record.number,
        score=record.score,
        created_at=lesson.created_at or datetime.now(UTC),
        source=lesson.source,
    )
