"""The lessons of a run: those it was taught before, by a store, and those it learns itself."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from reflexio.agents.attempt import Attempt
from reflexio.agents.events import LessonOutcome, LessonPersisted, LessonsRecalled
from reflexio.agents.plan import Plan
from reflexio.agents.stores import LessonStore
from reflexio.agents.values import Lesson


class Notebook:
    """Belongs to one run. Its methods raise what the store raises."""

    def __init__(self, plan: Plan) -> None:
        self.learned: list[Lesson] = []
        self._plan = plan
        self._began = datetime.now(UTC)
        self._credited: set[str] = set()

    def own(self) -> tuple[Lesson, ...]:
        return _once(self.learned)[-self._plan.top_k :]

    def learned_from(self, attempt: Attempt) -> Lesson | None:
        """The lesson of this attempt, when it is the last that taught one."""
        return self.learned[-1] if self.learned and self.learned[-1].attempt == attempt.number else None

    async def recall(self, store: LessonStore, attempt: Attempt) -> LessonsRecalled:
        """Puts what the store knows about the task into the attempt, before what this run has learned itself."""
        plan, began = self._plan, time.perf_counter()
        found = await store.recall(
            str(plan.task),
            k=plan.top_k,
            user_id=plan.user_id,
            agent_version=plan.agent_version,
            min_similarity=plan.min_similarity,
        )
        found = [each for each in found if self._was_known_before(each.lesson)][: plan.top_k]
        if found:
            # What matters most stands last: the nearest lesson, and behind it those of this run.
            attempt.lessons = _once([*(each.lesson for each in reversed(found)), *attempt.lessons])[-plan.top_k :]
        return LessonsRecalled(attempt.number, tuple(found), (time.perf_counter() - began) * 1000)

    async def keep(self, store: LessonStore, attempt: Attempt, lesson: Lesson) -> LessonPersisted:
        """Saves the lesson that was learned last, which then knows its id."""
        (saved,) = await store.save([lesson])
        kept = saved.merged_into or saved.id
        if kept:
            self.learned[-1] = replace(lesson, id=kept)
        place = str(getattr(store, "place", "lesson_store"))
        return LessonPersisted(attempt.number, place, kept, saved.merged_into is not None)

    def uncredited(self, attempt: Attempt) -> list[str]:
        """Stored lessons that no attempt of this run was shown before."""
        return [each.id for each in attempt.lessons if each.id and each.id not in self._credited]

    async def credit(self, store: LessonStore, ids: Sequence[str], passed: bool) -> list[LessonOutcome]:
        """A lesson helped when the first attempt that was shown it passed."""
        self._credited.update(ids)
        await store.outcome(self._plan.run_id, ids, passed)
        return [LessonOutcome(each, "helped" if passed else "hurt") for each in ids]

    def _was_known_before(self, lesson: Lesson) -> bool:
        """Lessons that other runs save while this one is under way are for the next one."""
        is_new = lesson.created_at is not None and lesson.created_at >= self._began
        return not is_new or lesson.run_id in ("", self._plan.run_id)


def _once(lessons: Sequence[Lesson]) -> tuple[Lesson, ...]:
    """Each content once, where it was said last; what came from a store comes first and knows its id."""
    if len(lessons) < 2:
        return tuple(lessons)
    kept: dict[str, Lesson] = {}
    for lesson in lessons:
        known = kept.pop(lesson.content, lesson)
        kept[lesson.content] = known if known.id else lesson
    return tuple(kept.values())
