"""One rule out of many by a model: what it is shown, and how its answer is read."""

from typing import Any

import pytest

from reflexio.errors import UnreadableAnswer
from reflexio.learners.llm.consolidation import LONGEST_CLUSTER
from reflexio.learners.llm.learner import LlmLearner
from reflexio.models.config import Config
from reflexio.models.extraction import ClusterToSummarise, PlaybookText
from reflexio.models.learning import Kind, Learning
from reflexio.providers.scripted import ScriptedChat

RULE = {"trigger": "A parcel is missing", "content": "Ask the neighbours.", "rationale": "Many say so."}


def gathered(*said: str, name: str = "playbook", **more: Any) -> ClusterToSummarise:
    members = tuple(Learning(Kind.USER_PLAYBOOK, each, trigger="when") for each in said or ("Ask.", "Do ask."))
    return ClusterToSummarise(name, members, len(members), **more)


async def made(
    answer: Any, asked: ClusterToSummarise | None = None, config: Config | None = None
) -> tuple[PlaybookText | None, str, str]:
    chat = ScriptedChat([answer])
    found = await LlmLearner(chat).summarise(asked or gathered(), config or Config())
    (messages,) = chat.asked
    assert found.spend.calls == 1
    return found.rule, messages.instructions, messages.case


async def test_a_rule_is_read() -> None:
    assert (await made({"rule": RULE}))[0] == PlaybookText(RULE["content"], RULE["trigger"], RULE["rationale"])


@pytest.mark.parametrize("nothing", [None, {}, [], {"content": "  "}, {"trigger": "only"}])
async def test_no_rule_means_that_it_is_known(nothing: Any) -> None:
    assert (await made({"rule": nothing}))[0] is None


async def test_an_answer_to_another_question_is_unreadable() -> None:
    chat = ScriptedChat([{"decisions": []}, {"decisions": []}])
    with pytest.raises(UnreadableAnswer):
        await LlmLearner(chat).summarise(gathered(), Config())


async def test_it_is_shown_all_notes_the_rule_before_and_those_near() -> None:
    before, known = (Learning(Kind.AGENT_PLAYBOOK, each) for each in ("Earlier.", "Near."))
    _, _, case = await made({"rule": None}, gathered("One.", "Two.", before=before, known=(known,)))
    lines = case.splitlines()
    assert [line for line in lines if line.startswith("content:")] == ["content: One.", "content: Two."]
    assert lines[lines.index("Earlier.") - 1].endswith("the rule made earlier of these notes")
    assert lines[lines.index("Near.") - 1].endswith("known rule 1")


async def test_it_is_told_what_the_type_is_for_and_no_other() -> None:
    types = [{"playbook_name": each, "playbook_definition_prompt": f"About {each}."} for each in ("tone", "facts")]
    config = Config.model_validate({"playbook_configs": types, "agent_context_prompt": "A shop."})
    _, instructions, _ = await made({"rule": None}, gathered(name="tone"), config)
    assert "About tone." in instructions
    assert "A shop." in instructions
    assert "About facts." not in instructions


async def test_an_enormous_cluster_is_asked_about_within_bounds() -> None:
    _, _, case = await made({"rule": None}, gathered(*(f"{number} " + "x" * 90_000 for number in range(60))))
    assert len(case) < LONGEST_CLUSTER * 1.2
