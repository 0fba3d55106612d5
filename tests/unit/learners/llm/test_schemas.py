"""The schemas as models get them: strict, without words of ours, and in the order in which one thinks."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from reflexio.learners.llm.schemas import (
    ConsolidationAnswer,
    ExtractionAnswer,
    Opinion,
    RewordedPlaybook,
    SummaryAnswer,
)

SCHEMAS = [ExtractionAnswer, ConsolidationAnswer, SummaryAnswer, Opinion, RewordedPlaybook]


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from parts(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from parts(value)


def fields(schema: type[BaseModel], name: str = "") -> list[str]:
    whole = schema.model_json_schema()
    return list((whole["$defs"][name] if name else whole)["properties"])


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_object_is_strict_and_describes_nothing(schema: type[BaseModel]) -> None:
    whole = schema.model_json_schema()
    for part in parts(whole):
        assert not isinstance(part.get("description"), str), part
        if part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])


def test_reasons_come_before_results() -> None:
    for entry in ("ExtractedProfile", "ExtractedPlaybook", "ExtractedForget"):
        assert fields(ExtractionAnswer, entry)[0] == "evidence"
    playbook = fields(ExtractionAnswer, "ExtractedPlaybook")
    assert playbook.index("rationale") < playbook.index("content")
    decision = fields(ConsolidationAnswer, "NoteDecision")
    assert decision.index("reason") < decision.index("action") < decision.index("content")
    assert fields(SummaryAnswer, "SummaryRule")[0] == "rationale"
    assert fields(Opinion)[-1] == "verdict"
    assert fields(RewordedPlaybook) == ["reason", "content"]


def test_all_three_lists_are_required() -> None:
    assert ExtractionAnswer.model_json_schema()["required"] == ["profiles", "playbooks", "forget"]
