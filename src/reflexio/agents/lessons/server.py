"""Lessons on a Reflexio server, each as a user playbook.

The server aggregates the lessons of many users' agents into an agent playbook; once a person has approved it, every
agent recalls it.
"""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from typing import Any, TypeAlias

from reflexio.agents.attempt import Lesson, shorten
from reflexio.agents.lessons.correction import correction
from reflexio.agents.lessons.store import (
    Recalled,
    Saved,
    is_retired,
    is_same_occasion,
    repeats,
    save_lock,
    search_text,
)
from reflexio.client.aio import AsyncReflexioClient
from reflexio.client.sync import ReflexioClient
from reflexio.models.playbook import AgentPlaybook, Outcomes, UserPlaybook
from reflexio.models.search import SearchUserPlaybooksResponse, UnifiedSearchResponse

Client: TypeAlias = AsyncReflexioClient | ReflexioClient
USER, AGENT = "user_playbook:", "agent_playbook:"
NEIGHBOURS, RETIRED_ROOM = 5, 5
LONGEST_TRIGGER, LONGEST_QUERY, LONGEST_NAME = 2_000, 10_000, 255


class ReflexioLessons:
    """Lessons as playbooks of a server, over an async or a sync client.

    Lessons are saved as user playbooks named `playbook_name`; the trigger says when one applies, the rationale holds
    the evaluator's feedback. Recalled are the user's playbooks of every name and the approved agent playbooks. The
    server counts repetitions and outcomes of a lesson: see `outcomes` of a playbook.

    >>> lessons = ReflexioLessons(AsyncReflexioClient(), user_id="ada", agent_version="v1")  # doctest: +SKIP
    """

    place = "reflexio"

    def __init__(
        self, client: Client, *, user_id: str, agent_version: str = "", playbook_name: str = "reflexion_lessons"
    ) -> None:
        self._client = client
        self._user_id = user_id
        self._agent_version = agent_version
        self._playbook_name = playbook_name

    async def recall(
        self,
        task: str,
        *,
        k: int = 5,
        user_id: str | None = None,
        agent_version: str = "",
        min_similarity: float | None = None,
    ) -> list[Recalled]:
        """At most `k` lessons: the user's playbooks and approved agent playbooks, the most relevant first."""
        if not task.strip():
            return []
        response: UnifiedSearchResponse = await _call(
            self._client.search,
            task.strip()[:LONGEST_QUERY],
            user_id=user_id or self._user_id,
            agent_version=agent_version or self._agent_version or None,
            top_k=k + RETIRED_ROOM,
            entity_types=("user_playbooks", "agent_playbooks"),
            explain=True,
        )
        explanations = {explanation.id: explanation for explanation in response.explanations or []}
        hits = [
            *((_from_agent(hit), explanations[str(hit.agent_playbook_id)]) for hit in response.agent_playbooks),
            *((_from_user(hit), explanations[str(hit.user_playbook_id)]) for hit in response.user_playbooks),
        ]
        hits.sort(key=lambda hit: -hit[1].score)
        least = -inf if min_similarity is None else min_similarity
        recalled = [Recalled(lesson, why.vector_score or 0.0) for lesson, why in hits if not is_retired(lesson)]
        return [hit for hit in recalled if hit.similarity >= least][:k]

    async def save(self, lessons: Sequence[Lesson]) -> list[Saved]:
        """Saves lessons; one answer for each, in order. New lessons are stored all or none."""
        async with save_lock("server", self._user_id):
            corrected = [await self._correct(lesson) for lesson in lessons]
            known = [
                fixed or await self._find_repeated(lesson) for lesson, fixed in zip(lessons, corrected, strict=True)
            ]
            new = [self._to_playbook(lesson) for lesson, same in zip(lessons, known, strict=True) if not same]
            added = iter((await _call(self._client.add_user_playbook, new)).ids if new else ())
            if repeated := [_number(same) for same in known if same and same not in corrected]:
                await _call(self._client.record_outcome, "repeated", user_playbook_ids=repeated)
            return [Saved(same, merged_into=same) if same else Saved(f"{USER}{next(added)}") for same in known]

    async def outcome(self, run_id: str, ids: Sequence[str], passed: bool) -> None:
        """Counts whether the attempt that was shown these lessons passed."""
        await _call(
            self._client.record_outcome,
            "helped" if passed else "hurt",
            user_playbook_ids=[_number(lesson_id) for lesson_id in ids if lesson_id.startswith(USER)],
            agent_playbook_ids=[_number(lesson_id) for lesson_id in ids if lesson_id.startswith(AGENT)],
        )

    async def _correct(self, lesson: Lesson) -> str:
        """Rewrites the nearest stored lesson that this one corrects, and returns its id; empty if there is none.

        The wording before stays in the rationale, where a reviewer sees it.
        """
        for stored, similarity in await self._neighbours(lesson):
            reason = correction(lesson.content, stored.content)
            if reason and is_same_occasion(_with_short_trigger(lesson), stored, similarity):
                before = shorten(f"{lesson.rationale}\nBefore: {stored.content} ({reason})".strip())
                rewritten = {"content": lesson.content, "rationale": before}
                await _call(self._client.update_user_playbook, _number(stored.id), **rewritten)
                return stored.id
        return ""

    async def _find_repeated(self, lesson: Lesson) -> str:
        """The id of the user's stored lesson that this one repeats; empty if there is none."""
        for stored, similarity in await self._neighbours(lesson):
            if repeats(_with_short_trigger(lesson), stored, similarity):
                return stored.id
        return ""

    async def _neighbours(self, lesson: Lesson) -> list[tuple[Lesson, float | None]]:
        lesson = _with_short_trigger(lesson)
        response: SearchUserPlaybooksResponse = await _call(
            self._client.search_user_playbooks,
            search_text(lesson),
            user_id=lesson.user_id or self._user_id,
            agent_version=lesson.agent_version or self._agent_version or None,
            playbook_name=self._playbook_name,
            top_k=NEIGHBOURS,
            explain=True,
        )
        hits = zip(response.user_playbooks, response.explanations or [], strict=True)
        return [(_from_user(playbook), explanation.vector_score) for playbook, explanation in hits]

    def _to_playbook(self, lesson: Lesson) -> dict[str, Any]:
        metadata: dict[str, Any] = {"attempt": lesson.attempt, "score": lesson.score}
        playbook: dict[str, Any] = {
            "user_id": lesson.user_id or self._user_id,
            "agent_version": lesson.agent_version or self._agent_version,
            "playbook_name": self._playbook_name,
            "content": lesson.content,
            "trigger": _with_short_trigger(lesson).trigger,
            "rationale": lesson.rationale,
            "request_id": lesson.run_id[:LONGEST_NAME],
            "source": lesson.source,
            "metadata": metadata,
        }
        if lesson.created_at is not None:
            metadata["learned_at"] = lesson.created_at.timestamp()
            playbook["created_at"] = int(metadata["learned_at"])
        return playbook


def _with_short_trigger(lesson: Lesson) -> Lesson:
    """A trigger says when a lesson applies; a task of many pages does not."""
    return replace(lesson, trigger=lesson.trigger[:LONGEST_TRIGGER].strip())


def _from_user(playbook: UserPlaybook) -> Lesson:
    # The server stores whole seconds. Concurrent runs may start within one, so the metadata holds the exact time.
    exact = playbook.metadata.get("learned_at")
    created_at = exact if isinstance(exact, float) and int(exact) == playbook.created_at else playbook.created_at
    return replace(
        _from_playbook(playbook, f"{USER}{playbook.user_playbook_id}", created_at),
        user_id=playbook.user_id,
        run_id=playbook.request_id,
        attempt=playbook.metadata.get("attempt", 0),
        score=playbook.metadata.get("score", 0.0),
    )


def _from_agent(playbook: AgentPlaybook) -> Lesson:
    lesson = _from_playbook(playbook, f"{AGENT}{playbook.agent_playbook_id}", playbook.created_at)
    return replace(lesson, scope="agent")


def _from_playbook(playbook: UserPlaybook | AgentPlaybook, lesson_id: str, created_at: float) -> Lesson:
    counts = playbook.outcomes or Outcomes()
    return Lesson(
        playbook.content,
        trigger=playbook.trigger or "",
        rationale=playbook.rationale or "",
        id=lesson_id,
        agent_version=playbook.agent_version,
        created_at=datetime.fromtimestamp(created_at, UTC),
        helped=counts.helped,
        hurt=counts.hurt,
        source=playbook.source or "",
    )


def _number(lesson_id: str) -> int:
    return int(lesson_id.partition(":")[2])


async def _call(method: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Calls a client's method; a method of the synchronous client runs in a thread."""
    if inspect.iscoroutinefunction(method):
        return await method(*args, **options)
    return await asyncio.to_thread(method, *args, **options)
