"""What a publish leaves out when the client fails open, and what it never touches."""

from datetime import date
from typing import Any

import pytest

from reflexio.client.salvage import MOST_WARNINGS, without_faults
from reflexio.models.interaction import InteractionData, PublishRequest, ToolUsed

GOOD = {"kind": "profile", "learning_id": "p-1"}
SURROGATE = "\ud800"


def published(turn: Any, **more: Any) -> tuple[PublishRequest, list[str]]:
    fields, warnings = without_faults({"user_id": "ann", "interaction_data_list": [turn], **more})
    return PublishRequest.model_validate(fields), warnings


def test_a_valid_publish_is_the_callers_own() -> None:
    turns = [InteractionData(content="hello"), {"content": "hi", "retrieved_learnings": [GOOD]}]
    fields, warnings = without_faults({"user_id": "ann", "interaction_data_list": turns, "session_id": None})
    assert fields["interaction_data_list"] is turns
    assert warnings == []


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"retrieved_learnings": "p-1"}, "interactions.0.retrieved_learnings was left out"),
        ({"retrieved_learnings": None}, "interactions.0.retrieved_learnings was left out"),
        ({"retrieved_learnings": [{"kind": "rumour", "id": "1"}]}, "interactions.0.retrieved_learnings.0 was left out"),
        ({"retrieved_learnings": [{"id": "1"}]}, "interactions.0.retrieved_learnings.0 was left out"),
        ({"retrieved_learnings": [GOOD] * 1001}, "interactions.0.retrieved_learnings was left out"),
        ({"citations": [{"kind": "profile"}]}, "interactions.0.citations.0 was left out"),
        ({"citations": [7]}, "interactions.0.citations.0 was left out"),
        ({"citations": [None]}, "interactions.0.citations.0 was left out"),
        ({"tools_used": [{"tool_data": {}}]}, "interactions.0.tools_used.0 was left out"),
        ({"tools_used": [{"tool_name": "look", "tool_data": [1]}]}, "interactions.0.tools_used.0.tool_data was left"),
        ({"tools_used": [{"tool_name": "a", "tool_data": {"n": 2**70}}]}, "tools_used.0.tool_data was left out"),
        ({"tools_used": [{"tool_name": "a", "tool_data": {"n": float("nan")}}]}, "tools_used.0.tool_data was left out"),
        ({"tools_used": [{"tool_name": "a", "tool_data": {"n": object()}}]}, "tools_used.0.tool_data was left out"),
        ({"tools_used": [{"tool_name": "a", "tool_data": {"n": "\0"}}]}, "tools_used.0.tool_data was left out"),
        ({"tools_used": [{"tool_name": "a", "tool_data": {"n": SURROGATE}}]}, "tools_used.0.tool_data was left out"),
        ({"tools_used": [{"tool_name": "a", "colour": "red"}]}, "tools_used.0.colour was left out"),
        ({"mood": "good"}, "interactions.0.mood was left out"),
        ({"created_at": "yesterday"}, "interactions.0.created_at was left out"),
        ({"user_action": "jump"}, "interactions.0.user_action was left out"),
        ({"user_action": "click"}, "interactions.0.user_action_description was left out"),
        ({"interacted_image_url": "file:///etc/passwd"}, "interactions.0.interacted_image_url was left out"),
        ({"interacted_image_url": "https://a/b.png", "image_encoding": "aGk="}, "interactions.0.image_encoding was"),
        ({"expert_content": ["no", "text"]}, "interactions.0.expert_content was left out"),
        ({"shadow_content": "\0"}, "interactions.0.shadow_content was left out"),
        ({"role": 3}, "interactions.0.role was taken for 'system'"),
    ],
)
def test_a_bad_optional_field_of_a_turn_is_left_out_and_named(bad: dict[str, Any], named: str) -> None:
    request, warnings = published({"content": "Where is my parcel?", **bad})
    assert [turn.content for turn in request.interaction_data_list] == ["Where is my parcel?"]
    assert any(named in warning for warning in warnings), warnings
    assert SURROGATE not in "".join(warnings)


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"source": "Support Chat"}, "source was left out"),
        ({"session_id": "x" * 300}, "session_id was left out"),
        ({"agent_version": 7}, "agent_version was left out"),
        ({"agent_version": "v\0"}, "agent_version was left out"),
        ({"retrieval_experiment_arm": "third"}, "retrieval_experiment_arm was left out"),
        ({"force_extraction": True, "evaluation_only": True}, "force_extraction was left out"),
        ({"evaluation_only": "perhaps"}, "evaluation_only was taken for True"),
    ],
)
def test_a_bad_optional_field_of_the_publish_is_left_out_and_named(bad: dict[str, Any], named: str) -> None:
    request, warnings = published({"content": "hello"}, **bad)
    assert request.interaction_data_list[0].content == "hello"
    assert any(named in warning for warning in warnings), warnings


def test_good_entries_beside_bad_ones_stay() -> None:
    learnings = [{"kind": "x", "id": "1"}, GOOD, {}, {"kind": "profile", "learning_id": "p-2", "exposure_receipt": 5}]
    tools = [{"tool_name": "look", "tool_data": object(), "status": "ok"}, ToolUsed(tool_name="send")]
    request, warnings = published({"content": "x", "retrieved_learnings": learnings, "tools_used": tools})
    (turn,) = request.interaction_data_list
    assert [learning.learning_id for learning in turn.retrieved_learnings] == ["p-1", "p-2"]
    assert [(tool.tool_name, tool.status) for tool in turn.tools_used] == [("look", "ok"), ("send", "")]
    assert len(warnings) == 4


def test_a_turn_that_is_none_does_not_take_the_others_along() -> None:
    turns = [{"content": "one"}, "two", {"content": None, "tools_used": [{"tool_name": "look"}]}]
    fields, warnings = without_faults({"user_id": "ann", "interaction_data_list": turns})
    request = PublishRequest.model_validate(fields)
    assert [turn.content for turn in request.interaction_data_list] == ["one", ""]
    assert len(warnings) == 2


def test_a_model_with_what_cannot_be_sent_is_repaired_too() -> None:
    turn = InteractionData(content="x", tools_used=[ToolUsed(tool_name="a", tool_data={"when": date, "n": 1})])
    request, warnings = published(turn)
    assert request.interaction_data_list[0].tools_used == [ToolUsed(tool_name="a")]
    assert warnings == ["interactions.0.tools_used.0.tool_data was left out: it cannot be sent as JSON"]


def test_what_the_caller_passed_in_is_not_changed() -> None:
    turn = {"content": "x", "citations": [{"kind": "rumour"}], "mood": "good"}
    published(turn)
    assert turn == {"content": "x", "citations": [{"kind": "rumour"}], "mood": "good"}


def test_deep_and_endless_values_end() -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    deep: Any = "leaf"
    for _ in range(100_000):
        deep = [deep]
    tools = [{"tool_name": "a", "tool_data": endless}, {"tool_name": "b", "tool_data": {"deep": deep}}]
    request, warnings = published({"content": "x", "tools_used": tools})
    assert [tool.tool_data for tool in request.interaction_data_list[0].tools_used] == [{}, {}]
    assert len(warnings) == 2


def test_a_text_that_only_looks_like_an_escaped_nul_stays() -> None:
    request, warnings = published({"content": "x", "shadow_content": "\\u0000"})
    assert request.interaction_data_list[0].shadow_content == "\\u0000"
    assert warnings == []


@pytest.mark.parametrize(
    "fields",
    [
        {"user_id": "", "interaction_data_list": [{"content": "x"}]},
        {"user_id": "ann", "interaction_data_list": "hello"},
        {"user_id": "ann", "interaction_data_list": []},
        {"user_id": "ann", "interaction_data_list": [{"content": ""}]},
        {"interaction_data_list": [{"content": "x"}]},
    ],
)
def test_what_cannot_be_repaired_stays_as_it_is(fields: dict[str, Any]) -> None:
    assert without_faults(fields) == (fields, [])


def test_many_faults_are_counted() -> None:
    _, warnings = published({"content": "x", "citations": [{}] * 500})
    assert len(warnings) == MOST_WARNINGS + 1
    assert warnings[-1] == "480 more were left out"
