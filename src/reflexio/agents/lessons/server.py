"""Lessons on a Reflexio server: a user playbook each, on the ordinary road to everybody.

What many users' agents learned is aggregated there into an agent playbook; once a person has approved it, every
agent recalls it.
"""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from reflexio.agents.lessons.turns import turn
from reflexio.agents.lessons.worth import is_retired, key, repeats
from reflexio.agents.stores import Recalled, Saved
from reflexio.agents.values import Lesson
from reflexio.client.aio import AsyncReflexioClient
from reflexio.client.sync import ReflexioClient
from reflexio.models.outcome import Outcomes
from reflexio.models.playbook import AgentPlaybook, UserPlaybook
from reflexio.models.search import Explanation, SearchUserPlaybooksResponse, UnifiedSearchResponse

Client: TypeAlias = AsyncReflexioClient | ReflexioClient
KINDS = ("user_playbooks", "agent_playbooks")
USER, AGENT = "user_playbook:", "agent_playbook:"
NEIGHBOURS, RETIRED_ROOM = 5, 5
LONGEST_TRIGGER, LONGEST_QUERY, LONGEST_NAME = 2_000, 10_000, 255


class ReflexioLessons:
    """Lessons as playbooks of a server, over a client of either kind.

    Saved lessons are user playbooks called `playbook_name`; the trigger says when one applies, the rationale holds
    the evaluator's words. Recalled are the user's playbooks of every name and what was approved for everybody. A
    repetition is counted on what is known, and so is what came of a lesson: `outcomes` of a playbook shows it.

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
        found: UnifiedSearchResponse = await _asked(
            self._client.search,
            task.strip()[:LONGEST_QUERY],
            user_id=user_id or self._user_id,
            agent_version=agent_version or self._agent_version or None,
            top_k=k + RETIRED_ROOM,
            entity_types=KINDS,
            explain=True,
        )
        why = {each.id: each for each in found.explanations or []}
        rows = [
            *((_of_agent(each), why[str(each.agent_playbook_id)]) for each in found.agent_playbooks),
            *((_of_user(each), why[str(each.user_playbook_id)]) for each in found.user_playbooks),
        ]
        kept = [(lesson, told) for lesson, told in rows if _is_wanted(lesson, told, min_similarity)]
        kept.sort(key=lambda pair: -pair[1].score)
        return [Recalled(lesson, told.vector_score or 0.0) for lesson, told in kept[:k]]

    async def save(self, lessons: Sequence[Lesson]) -> list[Saved]:
        """Keeps lessons; one answer for each, in order. New ones are stored all or none."""
        async with turn("server", self._user_id):
            return await self._save(lessons)

    async def _save(self, lessons: Sequence[Lesson]) -> list[Saved]:
        known = [await self._known(each) for each in lessons]
        new = [self._playbook(each) for each, same in zip(lessons, known, strict=True) if not same]
        added = iter((await _asked(self._client.add_user_playbook, new)).ids if new else ())
        again = [_number(each) for each in known if each]
        if again:
            await _asked(self._client.record_outcome, "repeated", user_playbook_ids=again)
        return [Saved(same, merged_into=same) if same else Saved(f"{USER}{next(added)}") for same in known]

    async def outcome(self, run_id: str, ids: Sequence[str], passed: bool) -> None:
        """Counts whether the attempt that was shown these lessons passed."""
        await _asked(
            self._client.record_outcome,
            "helped" if passed else "hurt",
            user_playbook_ids=[_number(each) for each in ids if each.startswith(USER)],
            agent_playbook_ids=[_number(each) for each in ids if each.startswith(AGENT)],
        )

    async def _known(self, lesson: Lesson) -> str:
        """The id of the user's lesson that this one repeats, if there is one."""
        found: SearchUserPlaybooksResponse = await _asked(
            self._client.search_user_playbooks,
            key(_shortened(lesson)),
            user_id=lesson.user_id or self._user_id,
            agent_version=lesson.agent_version or self._agent_version or None,
            playbook_name=self._playbook_name,
            top_k=NEIGHBOURS,
            explain=True,
        )
        for playbook, told in zip(found.user_playbooks, found.explanations or [], strict=True):
            if repeats(_shortened(lesson), stored := _of_user(playbook), told.vector_score):
                return stored.id
        return ""

    def _playbook(self, lesson: Lesson) -> dict[str, Any]:
        told = {
            "user_id": lesson.user_id or self._user_id,
            "agent_version": lesson.agent_version or self._agent_version,
            "playbook_name": self._playbook_name,
            "content": lesson.content,
            "trigger": _shortened(lesson).trigger,
            "rationale": lesson.rationale,
            "request_id": lesson.run_id[:LONGEST_NAME],
            "source": lesson.source,
        }
        known = {"attempt": lesson.attempt, "score": lesson.score}
        if lesson.created_at is None:
            return {**told, "metadata": known}
        at = lesson.created_at.timestamp()
        return {**told, "metadata": {**known, "learned_at": at}, "created_at": int(at)}


def _shortened(lesson: Lesson) -> Lesson:
    """A trigger says when a lesson applies; a task of many pages is not that."""
    return replace(lesson, trigger=lesson.trigger[:LONGEST_TRIGGER].strip())


def _is_wanted(lesson: Lesson, told: Explanation, min_similarity: float | None) -> bool:
    is_near = min_similarity is None or (told.vector_score or 0.0) >= min_similarity
    return is_near and not is_retired(lesson.helped, lesson.hurt)


def _of_user(playbook: UserPlaybook) -> Lesson:
    return Lesson(
        playbook.content,
        id=f"{USER}{playbook.user_playbook_id}",
        user_id=playbook.user_id,
        run_id=playbook.request_id,
        attempt=playbook.metadata.get("attempt", 0),
        score=playbook.metadata.get("score", 0.0),
        created_at=datetime.fromtimestamp(_learned_at(playbook), UTC),
        **_common(playbook),
    )


def _learned_at(playbook: UserPlaybook) -> float:
    """The server counts whole seconds. Runs side by side may begin within one, so a lesson says it more exactly."""
    at = playbook.metadata.get("learned_at")
    return at if isinstance(at, float) and int(at) == playbook.created_at else playbook.created_at


def _of_agent(playbook: AgentPlaybook) -> Lesson:
    at = datetime.fromtimestamp(playbook.created_at, UTC)
    name = f"{AGENT}{playbook.agent_playbook_id}"
    return Lesson(playbook.content, id=name, scope="agent", created_at=at, **_common(playbook))


def _common(playbook: UserPlaybook | AgentPlaybook) -> dict[str, Any]:
    counted = playbook.outcomes or Outcomes()
    return {
        "trigger": playbook.trigger or "",
        "rationale": playbook.rationale or "",
        "agent_version": playbook.agent_version,
        "helped": counted.helped,
        "hurt": counted.hurt,
        "source": playbook.source or "",
    }


def _number(name: str) -> int:
    return int(name.partition(":")[2])


async def _asked(call: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What the client answers; a call of the synchronous one waits in a thread."""
    if inspect.iscoroutinefunction(call):
        return await call(*given, **named)
    return await asyncio.to_thread(call, *given, **named)
