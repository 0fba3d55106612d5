"""What mem0 and Zep export becomes rows of an export of ours."""

import json
from typing import Any

import pytest

from reflexio.errors import InvalidRequest
from reflexio.transfer import mem0, zep
from reflexio.transfer.foreign import Translation, read_document

MEMORY = {
    "id": "b5f0",
    "memory": "Is vegetarian",
    "user_id": "amira",
    "hash": "9c1d",
    "metadata": {"channel": "chat"},
    "categories": ["food"],
    "created_at": "2026-03-01T02:00:00-08:00",
    "updated_at": "2026-03-02T10:00:00Z",
    "expiration_date": "2027-01-01",
}
MESSAGES = [
    {"uuid": "m1", "role": "user", "name": "Amira", "content": "Hello", "created_at": "2026-03-01T10:00:00Z"},
    {"uuid": "m2", "role_type": "assistant", "role": "Shop bot", "content": "Hi", "created_at": "2026-03-01T10:00:05Z"},
    {"uuid": "m3", "role": "tool", "content": "{}", "created_at": "2026-03-01T10:00:06Z"},
]
EDGE = {
    "uuid": "e1",
    "name": "LIVES_IN",
    "fact": "Amira lives in Lisbon",
    "created_at": "2026-03-02T00:00:00Z",
    "valid_at": "2026-03-01T00:00:00Z",
    "source_node_uuid": "n1",
    "target_node_uuid": "n2",
}


def texts(result: Translation) -> list[tuple[str, str]]:
    return [(row["user_id"], row["content"]) for row in result.rows if row["type"] == "learning"]


@pytest.mark.parametrize(
    "document",
    [
        [MEMORY],
        {"results": [MEMORY], "relations": []},
        {"count": 1, "next": None, "previous": None, "results": [MEMORY]},
        {"memories": [MEMORY]},
    ],
    ids=["v1", "open source", "pages", "export"],
)
def test_every_shape_of_a_memory_becomes_a_profile_with_its_dates(document: Any) -> None:
    assert mem0.is_mem0(document)
    assert not zep.is_zep(document)
    (row,) = mem0.translate(document).rows
    assert (row["key"], row["user_id"], row["content"], row["tags"]) == (
        "mem0-b5f0",
        "amira",
        "Is vegetarian",
        ["food"],
    )
    assert (row["created_at"], row["modified_at"], row["expires_at"]) == (1772359200, 1772445600, 1798761600)
    assert row["details"]["custom_features"] == {"channel": "chat"}


def test_memories_without_a_user_or_a_text_are_left_out_and_counted() -> None:
    document = [{"id": 1, "memory": "Of an agent", "agent_id": "a"}, {"id": 2, "memory": " "}, {"memory": "No id"}]
    assert texts(mem0.translate(document, "ben")) == [("ben", "Of an agent"), ("ben", "No id")]
    result = mem0.translate(document)
    assert not result.rows
    assert result.skipped == {"memories without a user_id (give --user)": 2, "memories without text": 1}


def test_what_has_no_id_gets_the_same_one_each_time() -> None:
    first, again = (mem0.translate([{"memory": "No id"}], "ben").rows[0]["key"] for _ in range(2))
    other = mem0.translate([{"memory": "No id"}], "cem").rows[0]["key"]
    assert first == again != other


@pytest.mark.parametrize(
    "document",
    [
        {"edges": [EDGE]},
        [EDGE],
        {"relevant_facts": [EDGE], "messages": []},
        {"results": [{"edges": [EDGE]}], "user_id": "amira"},
    ],
)
def test_facts_that_hold_become_profiles(document: Any) -> None:
    assert zep.is_zep(document) or "results" in document
    (row,) = zep.translate(document, "amira").rows
    assert (row["key"], row["user_id"], row["content"]) == ("zep-e1", "amira", "Amira lives in Lisbon")
    assert row["created_at"] == 1772323200


def test_facts_that_no_longer_hold_are_left_out() -> None:
    old = [{**EDGE, "invalid_at": "2026-04-01T00:00:00Z"}, {**EDGE, "expired_at": "2026-04-01T00:00:00Z"}]
    result = zep.translate({"edges": [*old, EDGE], "facts": ["Likes tea"]}, "amira")
    assert texts(result) == [("amira", "Amira lives in Lisbon"), ("amira", "Likes tea")]
    assert result.skipped == {"facts that no longer hold": 2}


def test_messages_become_publishes_that_are_learned_from() -> None:
    document = {"thread_id": "t-1", "user_id": "amira", "messages": [*MESSAGES, {"role": "user", "content": ""}]}
    result = zep.translate(document)
    (row,) = result.rows
    assert (row["user_id"], row["session_id"], row["session_finished"]) == ("amira", "t-1", True)
    assert [(turn["role"], turn["content"]) for turn in row["turns"]] == [
        ("User", "Hello"),
        ("Agent", "Hi"),
        ("Tool", "{}"),
    ]
    assert row["turns"][1]["created_at"] == 1772359205
    assert not any(turn["is_learned"] for turn in row["turns"])
    assert result.skipped == {"messages without text": 1}
    assert zep.translate(document).rows[0]["request_id"] == row["request_id"]


def test_a_long_thread_is_cut_into_publishes_and_ends_once() -> None:
    long = {"messages": [{"uuid": str(number), "role": "user", "content": "Hm"} for number in range(2500)]}
    rows = zep.translate(long, "amira").rows
    assert [len(row["turns"]) for row in rows] == [1000, 1000, 500]
    assert [row["session_finished"] for row in rows] == [False, False, True]
    assert len({row["session_id"] for row in rows}) == 1
    assert len({row["request_id"] for row in rows}) == 3


def test_json_and_json_lines_are_read() -> None:
    lines = "\n".join(map(json.dumps, [MEMORY, {**MEMORY, "id": "2"}]))
    assert len(mem0.translate(read_document(lines)).rows) == 2
    assert read_document("[1]") == [1]
    with pytest.raises(InvalidRequest, match="neither JSON nor JSON lines"):
        read_document("a, b, c")


@pytest.mark.parametrize(
    "document", [None, 5, "x", [], {}, [None], {"results": "many"}, {"edges": 5}, {"messages": {}}]
)
def test_what_is_neither_is_no_row(document: Any) -> None:
    assert not mem0.translate(document, "ben").rows
    assert not zep.translate(document, "ben").rows
