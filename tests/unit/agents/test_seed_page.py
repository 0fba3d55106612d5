"""What the page about the Reflexion architecture states, sentence by sentence."""

import inspect
from collections.abc import AsyncIterator
from typing import Any

import pytest

import reflexio
from reflexio.agents import (
    Agent,
    AgentSession,
    Architecture,
    Budget,
    Dependencies,
    Event,
    EventKind,
    InMemoryMemory,
    Lesson,
    Message,
    ModelReply,
    ReAct,
    Reflexion,
    RunContext,
    ScriptedModel,
    ToolCall,
    Usage,
)
from reflexio.agents.reflexion_architecture import DEFAULT_EVALUATOR_PROMPT, DEFAULT_REFLECTOR_PROMPT
from tests.unit.agents.notes import Notes

FAIL_FAIL_PASS = ["A", "score: 0.2\nToo short.", "Lesson one.", "B", "score: 0.5", "Lesson two.", "C", "score: 0.9"]


async def run(reflexion: Reflexion, script: list[Any], **given: Any) -> tuple[list[Event], ScriptedModel, AgentSession]:
    """All events of a run on a session of its own."""
    model = ScriptedModel(script)
    session = AgentSession("s-1", "Be brief.")
    deps = Dependencies(model, given.pop("memory", InMemoryMemory()), context=RunContext(given.pop("user_id", None)))
    events = [event async for event in reflexion.run(session, deps, given.pop("prompt", "The task."))]
    return events, model, session


def names(events: list[Event]) -> list[str]:
    return [event.payload["name"].removeprefix("reflexion.") for event in events]


def payload(events: list[Event], name: str) -> dict[str, Any]:
    return next(event.payload for event in events if event.payload["name"] == f"reflexion.{name}")


# The class


def test_the_constructor_has_the_arguments_and_defaults_of_the_page() -> None:
    parameters = inspect.signature(Reflexion).parameters
    assert {name: each.default for name, each in list(parameters.items())[:8]} == {
        "base": None,
        "max_attempts": 3,
        "threshold": 0.8,
        "evaluator_prompt": None,
        "reflector_prompt": None,
        "lessons_block_name": "reflexion_lessons",
        "lesson_store": None,
        "top_k_lessons": 5,
    }
    assert {each.kind for each in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"max_attempts": 0, "threshold": 2, "top_k_lessons": 0}, "max_attempts must be >= 1"),
        ({"threshold": -0.1, "top_k_lessons": 0}, "threshold must be in [0.0, 1.0]"),
        ({"threshold": float("nan")}, "threshold must be in [0.0, 1.0]"),
        ({"top_k_lessons": 0}, "top_k_lessons must be >= 1"),
        ({"patience": 0}, "patience must be >= 1"),
        ({"keep": "none"}, "keep must be one of 'best', 'last'"),
    ],
)
def test_values_that_make_no_sense_are_value_errors(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match="must be") as raised:
        Reflexion(**given)
    assert str(raised.value) == words


def test_it_is_an_architecture_with_a_name_and_without_workers() -> None:
    assert isinstance(Reflexion(), Architecture)
    assert Reflexion.name == Reflexion().name == "reflexion"
    assert Reflexion().declared_workers() == {}
    assert (isinstance(ReAct(), Architecture), ReAct().name, ReAct().declared_workers()) == (True, "react", {})


def test_workers_of_the_base_are_declared() -> None:
    class Team(ReAct):
        def declared_workers(self) -> dict[str, Agent]:
            return {"writer": Agent(model=ScriptedModel())}

    assert list(Reflexion(base=Team()).declared_workers()) == ["writer"]


def test_the_names_of_the_page_are_imported_from_the_package() -> None:
    for name in ("Agent", "AgentSession", "Architecture", "Dependencies", "Event", "ReAct", "Reflexion"):
        assert getattr(reflexio, name) is getattr(reflexio.agents, name)
    assert reflexio.agents.DEFAULT_EVALUATOR_PROMPT is DEFAULT_EVALUATOR_PROMPT
    assert reflexio.agents.DEFAULT_REFLECTOR_PROMPT is DEFAULT_REFLECTOR_PROMPT


# The prompts


def test_the_evaluator_is_asked_for_reasons_and_then_for_a_calibrated_score() -> None:
    for words in (
        "0.0",
        "1.0",
        "0.7 to 0.9",
        "0.4 to 0.6",
        "0.0 to 0.3",
        "score: <number between 0 and 1>",
        "First say briefly",
        "last line",
    ):
        assert words in DEFAULT_EVALUATOR_PROMPT


def test_the_reflector_is_asked_for_one_concrete_sentence_and_nothing_else() -> None:
    for words in ("ONE sentence", "useless", "useful", "nothing else", "no list"):
        assert words in DEFAULT_REFLECTOR_PROMPT


async def test_both_prompts_can_be_replaced_and_empty_ones_mean_the_defaults() -> None:
    script = ["A", "score: 0.1", "Better.", "B", "score: 1.0"]
    _, model, _ = await run(Reflexion(evaluator_prompt="Judge!", reflector_prompt="Think!"), script)
    assert [asked[0].content for asked in model.asked] == ["Be brief.", "Judge!", "Think!", "Be brief.", "Judge!"]
    _, model, _ = await run(Reflexion(evaluator_prompt="", reflector_prompt=""), script)
    assert model.asked[1][0].content == DEFAULT_EVALUATOR_PROMPT
    assert model.asked[2][0].content == DEFAULT_REFLECTOR_PROMPT


# The pattern


async def test_attempts_are_made_until_the_score_reaches_the_threshold() -> None:
    events, _, session = await run(Reflexion(), FAIL_FAIL_PASS)
    assert session.output == "C"
    assert payload(events, "threshold_met") == {"name": "reflexion.threshold_met", "attempt": 3, "score": 0.9}


async def test_a_score_equal_to_the_threshold_is_enough() -> None:
    _, _, session = await run(Reflexion(threshold=0.5), ["A", "score: 0.5"])
    assert session.output == "A"


async def test_attempts_end_at_their_maximum() -> None:
    events, model, session = await run(Reflexion(max_attempts=2), FAIL_FAIL_PASS)
    assert (session.output, len(model.asked), session.interrupted) == ("B", 5, False)
    reached = payload(events, "max_attempts_reached")
    assert (reached["final_score"], reached["attempts"]) == (0.5, 2)


async def test_the_events_come_in_the_order_of_the_pattern() -> None:
    events, _, _ = await run(Reflexion(), FAIL_FAIL_PASS)
    failed = ["attempt_started", "evaluated", "lesson_produced", "lesson_persisted", "attempt_discarded"]
    assert names(events) == [*failed, *failed, "attempt_started", "evaluated", "threshold_met", "stopped"]
    assert {event.kind for event in events} == {EventKind.ARCHITECTURE_EVENT}
    assert {event.session_id for event in events} == {"s-1"}


async def test_the_events_carry_what_the_page_promises() -> None:
    events, _, _ = await run(Reflexion(), FAIL_FAIL_PASS)
    started, evaluated = payload(events, "attempt_started"), payload(events, "evaluated")
    produced, persisted = payload(events, "lesson_produced"), payload(events, "lesson_persisted")
    assert (started["attempt"], started["max_attempts"]) == (1, 3)
    assert (evaluated["attempt"], evaluated["score"], evaluated["feedback"]) == (1, 0.2, "Too short.")
    assert (produced["attempt"], produced["lesson"]) == (1, "Lesson one.")
    assert (persisted["attempt"], persisted["block"], persisted["merged"]) == (1, "reflexion_lessons", False)


async def test_an_agent_frames_the_run_with_started_and_completed() -> None:
    agent = Agent("Be brief.", model=ScriptedModel(FAIL_FAIL_PASS), architecture=Reflexion())
    kinds = [event.kind.value async for event in agent.stream("The task.")]
    assert (kinds[0], kinds[-1]) == ("started", "completed")
    assert kinds.count("model_chunk") == 3


async def test_the_evaluator_is_a_text_only_call_about_the_task_and_the_output() -> None:
    _, model, _ = await run(Reflexion(), FAIL_FAIL_PASS)
    system, user = model.asked[1]
    assert system == Message("system", DEFAULT_EVALUATOR_PROMPT)
    assert user == Message("user", "Task:\nThe task.\n\nAgent output (attempt 1):\nA")


async def test_the_reflector_is_a_text_only_call_about_the_failed_attempt() -> None:
    _, model, _ = await run(Reflexion(), FAIL_FAIL_PASS)
    assert model.asked[2][0] == Message("system", DEFAULT_REFLECTOR_PROMPT)
    assert model.asked[2][1].content.startswith("Task:\nThe task.\n\nFailed attempt (score 0.20):\nA\n\n")


async def test_a_failed_attempt_costs_one_evaluator_and_one_reflector_call() -> None:
    _, model, session = await run(Reflexion(), FAIL_FAIL_PASS)
    assert len(model.asked) == session.turns == 8


async def test_usage_and_turns_carry_across_attempts() -> None:
    replies = [ModelReply(text, usage=Usage(1, 10, 5, 0.01)) for text in FAIL_FAIL_PASS]
    result = await Agent(model=ScriptedModel(replies), architecture=Reflexion()).run("The task.")
    assert (result.turns, result.tokens_in, result.tokens_out) == (8, 80, 40)
    assert result.cost_usd == pytest.approx(0.08)


async def test_messages_are_cleared_so_that_the_base_starts_afresh() -> None:
    _, model, session = await run(Reflexion(), FAIL_FAIL_PASS)
    assert [message.role for message in model.asked[3]] == ["system", "system", "user"]
    assert [message.content for message in session.messages][-2:] == ["The task.", "C"]


async def test_a_score_that_cannot_be_read_counts_as_zero_and_as_a_failed_attempt() -> None:
    events, _, session = await run(Reflexion(), ["A", "Lovely!", "Be clear.", "B", "score: 1"])
    evaluated = payload(events, "evaluated")
    assert (evaluated["score"], session.output) == (0.0, "B")
    assert "no score" in evaluated["error"]


async def test_it_wraps_any_base() -> None:
    class Shouting:
        name = "shouting"
        reads_memory = True

        def declared_workers(self) -> dict[str, Agent]:
            return {}

        async def run(self, session: AgentSession, deps: Dependencies, prompt: str) -> AsyncIterator[Event]:
            blocks = await deps.memory.working()
            session.output = "".join(block.content for block in blocks).upper() or "NOTHING"
            yield Event(EventKind.ARCHITECTURE_EVENT, session.id, {"name": "shouted"})

    events, _, session = await run(Reflexion(base=Shouting()), ["score: 0", "Loud.", "score: 1"])
    assert session.output == "- LOUD."
    assert [event.payload["name"] for event in events].count("shouted") == 2


async def test_reflexion_wraps_reflexion() -> None:
    inner = ["A", "score: 0", "In one.", "B", "score: 0"]
    script = [*inner, "score: 0", "Out.", *inner, "score: 0"]
    _, model, _ = await run(Reflexion(base=Reflexion(max_attempts=2), max_attempts=2), script)
    assert len(model.asked) == 13


async def test_one_instance_serves_many_runs() -> None:
    reflexion = Reflexion()
    for _ in range(2):
        _, model, _ = await run(reflexion, FAIL_FAIL_PASS)
        assert len(model.asked) == 8


# Lessons in a block


async def test_every_lesson_is_appended_to_the_block_and_shown_on_every_later_attempt() -> None:
    memory = InMemoryMemory()
    _, model, _ = await run(Reflexion(), FAIL_FAIL_PASS, memory=memory)
    (block,) = await memory.working()
    assert (block.name, block.content) == ("reflexion_lessons", "- Lesson one.\n- Lesson two.")
    assert model.asked[3][1].content == "<reflexion_lessons>\n- Lesson one.\n</reflexion_lessons>"
    assert model.asked[6][1].content == "<reflexion_lessons>\n- Lesson one.\n- Lesson two.\n</reflexion_lessons>"


async def test_a_later_run_on_the_same_memory_starts_with_the_lessons() -> None:
    memory = InMemoryMemory()
    await run(Reflexion(), FAIL_FAIL_PASS, memory=memory)
    _, model, _ = await run(Reflexion(), ["D", "score: 1"], memory=memory)
    assert "- Lesson one.\n- Lesson two." in model.asked[0][1].content


async def test_two_wrapped_agents_on_one_memory_choose_different_blocks() -> None:
    memory = InMemoryMemory()
    script = ["A", "score: 0", "Lesson.", "B", "score: 1"]
    events, _, _ = await run(Reflexion(lessons_block_name="drafts"), script, memory=memory)
    await run(Reflexion(lessons_block_name="reviews"), script, memory=memory)
    assert [block.name for block in await memory.working()] == ["drafts", "reviews"]
    assert payload(events, "lesson_persisted")["block"] == "drafts"


# Lessons in a store


async def test_before_each_attempt_the_store_is_asked_with_the_prompt_for_the_top_k() -> None:
    notes = Notes(*(Lesson(f"Old {number}.", id=str(number)) for number in range(9)))
    events, model, _ = await run(
        Reflexion(lesson_store=notes, top_k_lessons=2), ["A", "score: 0", "New.", "B", "score: 1"]
    )
    assert notes.asked == [("The task.", 2, None)] * 2
    assert model.asked[0][1].content.splitlines()[1:-1] == ["- Old 7.", "- Old 8."]
    assert payload(events, "lessons_recalled")["n_recalled"] == 2
    assert [event.payload["n_recalled"] for event in events if event.payload["name"].endswith("recalled")] == [2, 2]


async def test_a_lesson_goes_to_the_store_and_not_to_the_block() -> None:
    notes, memory = Notes(), InMemoryMemory()
    events, model, _ = await run(Reflexion(lesson_store=notes), FAIL_FAIL_PASS, memory=memory)
    assert [(each.content, each.trigger, each.attempt, each.score) for each in notes.saved] == [
        ("Lesson one.", "The task.", 1, 0.2),
        ("Lesson two.", "The task.", 2, 0.5),
    ]
    assert payload(events, "lesson_persisted")["block"] == "lesson_store"
    assert await memory.working() == []
    assert "- Lesson one." in model.asked[3][1].content


# The base is interrupted


async def test_an_attempt_that_runs_out_of_turns_has_failed_and_the_next_one_follows() -> None:
    script = [ToolCall("none"), ToolCall("none"), "Stop calling it.", "B", "score: 1"]
    events, model, session = await run(Reflexion(base=ReAct(max_turns=2)), script)
    assert payload([event for event in events if "name" in event.payload], "evaluated")["passed"] is False
    assert "none({}) failed: There is no tool 'none'" in model.asked[2][1].content
    assert "used up its turns" in model.asked[2][1].content
    assert "Stop calling it." in model.asked[3][1].content
    assert (session.output, session.interrupted, session.passed, session.stop_reason) == ("B", False, True, "passed")


async def test_a_run_in_which_every_attempt_runs_out_of_turns_says_so() -> None:
    script = [ToolCall("none"), "Stop.", ToolCall("none")]
    _, model, session = await run(Reflexion(base=ReAct(max_turns=1), max_attempts=2), script)
    assert (len(model.asked), session.output, session.interruption_reason) == (3, "", "max_turns_exceeded")
    assert (session.passed, session.score, session.stop_reason) == (False, 0.0, "max_attempts")


async def test_a_base_that_spends_the_budget_ends_the_run() -> None:
    model = ScriptedModel([ToolCall("none"), "Never asked."])
    result = await Agent(model=model, budget=Budget(calls=1), architecture=Reflexion()).run("The task.")
    assert (result.turns, result.interruption_reason, result.stop_reason) == (1, "budget:calls", "budget")
    assert result.passed is False


async def test_another_interruption_of_the_base_ends_the_run_at_once() -> None:
    class Declined(ReAct):
        async def run(self, session: AgentSession, deps: Dependencies, prompt: str) -> AsyncIterator[Event]:
            session.interrupt("approval_denied")
            yield Event(EventKind.ARCHITECTURE_EVENT, session.id, {"name": "declined"})

    _, model, session = await run(Reflexion(base=Declined()), [])
    assert (len(model.asked), session.interruption_reason) == (0, "approval_denied")
