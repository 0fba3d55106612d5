"""The agent with its default architecture: messages, tools, memory, limits, events."""

import asyncio
from typing import Any

import pytest

from reflexio.agents import (
    DEFAULT_EVALUATOR_PROMPT,
    Agent,
    AgentSession,
    Attempt,
    AttemptRecord,
    Budget,
    Dependencies,
    Evaluation,
    EventKind,
    InMemoryMemory,
    MemoryBlock,
    Message,
    ModelReply,
    ReAct,
    Reflexion,
    ScriptedModel,
    Tool,
    ToolCall,
    Usage,
    reflexion,
)
from reflexio.errors import InvalidRequest, ProviderRefused, ProviderUnavailable


async def test_an_agent_answers_and_counts() -> None:
    model = ScriptedModel([ModelReply("Hello.", usage=Usage(1, 12, 3, 0.5))])
    result = await Agent("Be brief.", model=model).run("Greet me.", session_id="s-1")
    assert (result.output, result.turns, result.tokens_in, result.tokens_out) == ("Hello.", 1, 12, 3)
    assert (result.cost_usd, result.session_id, result.interrupted) == (0.5, "s-1", False)
    assert result.started_at <= result.finished_at
    assert model.asked == [[Message("system", "Be brief."), Message("user", "Greet me.")]]


def test_an_agent_runs_without_a_loop() -> None:
    assert Agent(model=ScriptedModel(["Hello."])).run_sync("Greet me.").output == "Hello."


async def test_tools_are_plain_typed_functions_and_run_side_by_side() -> None:
    both = asyncio.Barrier(2)

    async def weather(city: str, days: int = 1) -> dict[str, Any]:
        """The weather in a city."""
        await both.wait()
        return {"city": city, "days": days}

    model = ScriptedModel(
        [
            [ToolCall("weather", {"city": "Rome"}, "1"), ToolCall("weather", {"city": "Oslo", "days": "2"}, "2")],
            "Fine.",
        ]
    )
    assert (await Agent(model=model, tools=[weather]).run("How is it?")).output == "Fine."
    assert [message.content for message in model.asked[1] if message.role == "tool"] == [
        '{"city": "Rome", "days": 1}',
        '{"city": "Oslo", "days": 2}',
    ]


def test_a_model_is_told_of_a_tool_by_its_signature_and_docstring() -> None:
    def weather(city: str, days: int = 1) -> str:
        """The weather in a city."""
        return city

    spec = Tool(weather).spec
    assert (spec.name, spec.description) == ("weather", "The weather in a city.")
    assert spec.parameters["required"] == ["city"]
    assert spec.parameters["properties"]["days"]["default"] == 1


async def test_parameters_of_tools_may_have_any_name() -> None:
    def weather(_city: str, schema: str, model_config: int = 1, copy: bool = False) -> str:
        return f"{_city} {schema} {model_config} {copy}"

    tool = Tool(weather)
    assert list(tool.spec.parameters["properties"]) == ["_city", "schema", "model_config", "copy"]
    assert await tool({"_city": "Rome", "schema": "short", "copy": True}) == "Rome short 1 True"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (ToolCall("nothing"), "There is no tool 'nothing'"),
        (ToolCall("divide", {"by": "x"}), "The arguments do not fit: by: "),
        (ToolCall("divide", {"by": 1, "and": 2}), "The arguments do not fit: and: "),
        (ToolCall("divide", {"by": 0}), "ZeroDivisionError: "),
        (ToolCall("leave"), "SystemExit: "),
    ],
)
async def test_a_tool_that_fails_is_the_models_to_deal_with(call: ToolCall, words: str) -> None:
    def divide(by: int) -> float:
        return 1 / by

    async def leave() -> None:
        raise SystemExit(1)

    model = ScriptedModel([call, "I give up."])
    assert (await Agent(model=model, tools=[divide, leave]).run("Divide.")).output == "I give up."
    assert model.asked[1][-1].content.startswith(words)


def test_functions_that_no_model_could_call_are_refused() -> None:
    def untyped(city):  # type: ignore[no-untyped-def]
        return city

    def many(*cities: str) -> str:
        return ""

    with pytest.raises(ValueError, match="needs a type"):
        Tool(untyped)
    with pytest.raises(ValueError, match="no name that a model could use"):
        Tool(many)
    with pytest.raises(ValueError, match="same name"):
        Agent(model=ScriptedModel(), tools=[test_an_agent_runs_without_a_loop, test_an_agent_runs_without_a_loop])


async def test_working_blocks_are_read_before_acting_apart_for_every_user() -> None:
    memory = InMemoryMemory()
    await memory.update_block("notes", "Likes tea.", user_id="ada")
    model = ScriptedModel(otherwise="Yes.")
    agent = Agent(model=model, memory=memory)
    await agent.run("Tea?", user_id="ada")
    await agent.run("Tea?", user_id="bob")
    await agent.run("Tea?")
    assert [len(asked) for asked in model.asked] == [2, 1, 1]
    assert model.asked[0][0].content == "<notes>\nLikes tea.\n</notes>"


async def test_appending_to_a_block_adds_a_line_and_forgetting_forgets_one_user() -> None:
    memory = InMemoryMemory()
    await memory.append_block("notes", "one", user_id="ada")
    await memory.append_block("notes", "two", user_id="ada")
    await memory.append_block("notes", "three")
    assert await memory.working(user_id="ada") == [MemoryBlock("notes", "one\ntwo")]
    await memory.forget(user_id="ada")
    assert await memory.working(user_id="ada") == []
    assert await memory.working() == [MemoryBlock("notes", "three")]


async def test_too_many_turns_interrupt() -> None:
    result = await Agent(model=ScriptedModel(otherwise=ToolCall("none")), max_turns=3).run("Go on.")
    assert (result.turns, result.interrupted, result.interruption_reason) == (3, True, "max_turns_exceeded")
    own = await Agent(model=ScriptedModel(otherwise=ToolCall("none")), architecture=ReAct(max_turns=1)).run("Go on.")
    assert own.turns == 1


async def test_a_spent_budget_interrupts_before_the_next_call() -> None:
    model = ScriptedModel(otherwise=ToolCall("none"))
    agent = Agent(model=model, budget=Budget(calls=2))
    events = [event async for event in agent.stream("Go on.")]
    (exceeded,) = [event for event in events if event.kind is EventKind.BUDGET_EXCEEDED]
    assert exceeded.payload["status"]["limit"] == "calls"
    result = events[-1].payload["result"]
    assert (result["turns"], result["interruption_reason"]) == (2, "budget:calls")


async def test_events_tell_a_run_from_its_start_to_its_end() -> None:
    def ping() -> str:
        return "pong"

    model = ScriptedModel([ToolCall("ping", id="7"), "Well done."])
    events = [event async for event in Agent(model=model, tools=[ping]).stream("Ping!", session_id="s")]
    assert [event.kind.value for event in events] == [
        "started",
        "tool_call",
        "tool_result",
        "model_chunk",
        "model_chunk",
        "completed",
    ]
    assert {event.session_id for event in events} == {"s"}
    assert events[0].payload == {"prompt": "Ping!"}
    assert events[1].payload["call"] == {"name": "ping", "args": {}, "id": "7"}
    assert events[2].payload["result"] == {
        "call_id": "7",
        "name": "ping",
        "args": {},
        "content": "pong",
        "ok": True,
    }
    assert "".join(event.payload["chunk"] for event in events[3:5]) == "Well done."
    assert events[5].to_dict()["payload"]["result"]["output"] == "Well done."


async def test_an_error_is_told_and_raised() -> None:
    agent = Agent(model=ScriptedModel([ProviderUnavailable("busy")]))
    kinds = []

    async def follow() -> None:
        async for event in agent.stream("Go.", session_id="s"):
            kinds.append((event.kind.value, event.session_id))

    with pytest.raises(ProviderUnavailable):
        await follow()
    assert kinds == [("started", "s"), ("error", "s")]


def test_architectures_have_names_and_unknown_ones_are_refused() -> None:
    model = ScriptedModel()
    assert Agent(model=model).architecture.name == "react"
    assert isinstance(Agent(model=model, architecture="reflexion").architecture, Reflexion)
    with pytest.raises(InvalidRequest, match="there are: react, reflexion"):
        Agent(model=model, architecture="magic")
    with pytest.raises(ValueError, match="max_turns"):
        Agent(model=model, max_turns=0)
    with pytest.raises(ValueError, match="max_turns"):
        ReAct(max_turns=0)


def test_a_model_without_its_key_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ProviderRefused, match="set OPENAI_API_KEY"):
        Agent(model="openai:gpt-5-mini")
    with pytest.raises(InvalidRequest, match="There is no model"):
        Agent(model="magic")


async def test_an_agent_may_be_tried_by_the_loop_for_any_callable() -> None:
    model = ScriptedModel(["one", "two"])

    async def evaluate(output: str, attempt: Attempt) -> Evaluation:
        return Evaluation(1.0 if output == "two" else 0.0, feedback="Say two.")

    result = await reflexion(Agent("Count.", model=model), "Count!", evaluate=evaluate)
    assert (result.output, result.usage.calls) == ("two", 2)
    assert model.asked[1][0].content.startswith("Count.\n\n<lessons>")
    assert "- Say two." in model.asked[1][0].content


async def test_an_agent_in_the_loop_keeps_the_budget_of_the_run() -> None:
    model = ScriptedModel(otherwise=ToolCall("none"))
    result = await reflexion(Agent(model=model), "Go on.", evaluate=lambda output: True, budget=Budget(calls=3))
    assert (len(model.asked), result.usage.calls, result.stop_reason) == (3, 3, "budget")
    model = ScriptedModel(otherwise=ToolCall("none"))
    agent = Agent(model=model, budget=Budget(calls=2))
    result = await reflexion(agent, "Go on.", evaluate=lambda output: True, max_attempts=2)
    assert (len(model.asked), result.usage.calls, result.stop_reason) == (4, 4, "max_attempts")
    assert "budget:calls" in result.lessons[0].content


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_model_or_a_tool_that_hangs_is_given_up_when_the_time_is_over(streaming: bool) -> None:
    async def hang() -> str:
        await asyncio.Event().wait()
        return ""

    class Hanging(ScriptedModel):
        async def complete(self, messages: Any, **_: Any) -> Any:
            await hang()

        async def stream(self, messages: Any, **_: Any) -> Any:
            await hang()
            yield ""

    for model in (Hanging(), ScriptedModel([ToolCall("hang")])):
        agent = Agent(model=model, tools=[hang], budget=Budget(seconds=0.05))
        if streaming:
            *_, last = [event async for event in agent.stream("Go.")]
            assert last.payload["result"]["interruption_reason"] == "budget:seconds"
        else:
            assert (await agent.run("Go.")).interruption_reason == "budget:seconds"


async def test_pieces_of_a_stream_make_the_whole() -> None:
    text = "a b a\n  c "
    events = [event async for event in Agent(model=ScriptedModel([text])).stream("Go.")]
    assert "".join(event.payload["chunk"] for event in events if event.kind is EventKind.MODEL_CHUNK) == text


async def test_an_empty_script_says_so() -> None:
    with pytest.raises(LookupError, match="no line left"):
        await Agent(model=ScriptedModel()).run("Go.")


async def test_a_second_prompt_on_a_session_continues_the_conversation() -> None:
    model = ScriptedModel(["Hello Ada.", "You are Ada."])
    session, deps = AgentSession("s", "Be brief."), Dependencies(model)
    for prompt in ("I am Ada.", "Who am I?"):
        _ = [event async for event in ReAct().run(session, deps, prompt)]
    assert [(message.role, message.content) for message in model.asked[1]] == [
        ("system", "Be brief."),
        ("user", "I am Ada."),
        ("assistant", "Hello Ada."),
        ("user", "Who am I?"),
    ]
    assert session.output == "You are Ada."


async def test_a_conversation_continues_with_the_memory_of_now_and_no_open_call() -> None:
    memory = InMemoryMemory()
    await memory.update_block("notes", "Old.")
    model = ScriptedModel([ToolCall("none", id="1"), "Done."])
    session, deps = AgentSession("s", ""), Dependencies(model, memory)
    _ = [event async for event in ReAct(max_turns=1).run(session, deps, "Begin.")]
    del session.messages[-1]  # as a run leaves it that ended during the call
    await memory.update_block("notes", "New.")
    _ = [event async for event in ReAct().run(session, deps, "Go on.")]
    assert [(message.role, message.content) for message in model.asked[1]] == [
        ("system", "<notes>\nNew.\n</notes>"),
        ("user", "Begin."),
        ("assistant", ""),
        ("tool", "The call did not end."),
        ("user", "Go on."),
    ]


async def test_every_attempt_begins_with_the_conversation_before_the_run() -> None:
    model = ScriptedModel(["A", "score: 0", "Be brief.", "B", "score: 1"])
    session = AgentSession("s", "", messages=[Message("user", "I am Ada."), Message("assistant", "Hello.")])
    _ = [event async for event in Reflexion().run(session, Dependencies(model), "Who am I?")]
    for asked in (model.asked[0], model.asked[3]):
        assert [message.content for message in asked][-3:] == ["I am Ada.", "Hello.", "Who am I?"]
    assert "Be brief." in model.asked[3][0].content


async def test_a_result_says_why_it_ended() -> None:
    plain = await Agent(model=ScriptedModel(["A"])).run("Go.")
    assert (plain.passed, plain.score, plain.stop_reason) == (None, None, "answered")
    passed = await Agent(model=ScriptedModel(["A", "score: 0.9"]), architecture="reflexion").run("Go.")
    assert (passed.passed, passed.score, passed.stop_reason) == (True, 0.9, "passed")
    assert passed.to_dict()["stop_reason"] == "passed"
    failed = await Agent(model=ScriptedModel(["A", "score: 0.2"]), architecture=Reflexion(max_attempts=1)).run("Go.")
    assert (failed.passed, failed.score, failed.stop_reason) == (False, 0.2, "max_attempts")
    turns = await Agent(model=ScriptedModel([ToolCall("none")]), max_turns=1).run("Go.")
    assert turns.stop_reason == "max_turns_exceeded"


async def test_another_model_evaluates_with_the_same_prompt() -> None:
    judge = ScriptedModel(["score: 0.9"], name="judge:model")
    agent = Agent(model=ScriptedModel(["A"]), architecture=Reflexion(evaluator_model=judge))
    result = await agent.run("Go.")
    assert (result.passed, result.turns) == (True, 2)
    assert judge.asked[0][0].content == DEFAULT_EVALUATOR_PROMPT


async def test_a_reflector_sees_what_the_agent_did() -> None:
    def find(order: int, note: str) -> str:
        raise LookupError(f"no order {order}")

    calls: list[Any] = [ToolCall("find", {"order": 17, "note": "x" * 500}), "Not found."]
    model = ScriptedModel([*calls, "score: 0", "Ask for the number.", "B", "score: 1"])
    await Agent(model=model, tools=[find], architecture=Reflexion()).run("Where is it?")
    shown = model.asked[3][1].content
    assert 'find({"order": 17, "note": "xxx' in shown
    assert "failed: LookupError: no order 17" in shown
    assert len(shown) < 800


async def test_an_agent_in_the_loop_notes_its_calls_for_the_reflector() -> None:
    def find(order: int) -> str:
        return "late"

    seen: list[tuple[str, ...]] = []

    def reflect(record: AttemptRecord) -> str:
        seen.append(record.steps)
        return "Look again."

    agent = Agent(model=ScriptedModel([ToolCall("find", {"order": 17}), "A", "B"]), tools=[find])
    await reflexion(agent, "Go.", evaluate=lambda output: output == "B", reflect=reflect)
    assert seen == [('- find({"order": 17}) -> late',)]


async def test_the_block_keeps_the_newest_lessons_and_no_corrected_one() -> None:
    async def lessons_after(*learned: str, **options: Any) -> str:
        memory = InMemoryMemory()
        script = [text for lesson in learned for text in ("A", "score: 0", lesson)]
        architecture = Reflexion(max_attempts=len(learned) + 1, **options)
        await Agent(model=ScriptedModel([*script, "B", "score: 1"]), memory=memory, architecture=architecture).run(
            "Go."
        )
        return (await memory.working())[0].content

    assert await lessons_after("One.", "Two.", "Three.", max_lessons=2) == "- Two.\n- Three."
    learned = "Set the timeout to 30 seconds.", "Be brief.", "Set the timeout to 60 seconds."
    assert await lessons_after(*learned) == "- Be brief.\n- Set the timeout to 60 seconds."
