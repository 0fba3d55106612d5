from typing import Any

import pytest

from reflexio.errors import UnreadableAnswer
from reflexio.learners.llm.learner import LlmLearner
from reflexio.learning.evidence import grounded
from reflexio.models.config import Config
from reflexio.models.extraction import ExtractedLearning, Extraction, Quote, Turn
from reflexio.models.learning import Kind, ProfileTimeToLive
from reflexio.providers.scripted import ChatLine, ScriptedChat
from tests.unit.learners.llm.windows import BOTH, quote, three_types, window

TALK = window("I drink green tea.", "Black tea is on its way.", "No, always green, please.")


async def extract(*lines: ChatLine, config: Config | None = None, kinds: frozenset[Kind] = BOTH) -> Extraction:
    return await LlmLearner(ScriptedChat(lines)).extract(TALK, config or Config(), kinds)


async def found(**answer: Any) -> tuple[ExtractedLearning, ...]:
    return (await extract(answer)).candidates


async def test_one_call_finds_profiles_playbooks_and_requests_to_forget() -> None:
    extraction = await extract(
        {
            "profiles": [
                {
                    "type": "profile",
                    "content": "The user drinks green tea.",
                    "time_to_live": "one_year",
                    "evidence": [quote(1, "I drink green tea.")],
                }
            ],
            "playbooks": [
                {
                    "type": "playbook",
                    "trigger": "The user orders tea",
                    "content": "Bring green tea.",
                    "rationale": "Black tea was refused.",
                    "metadata": {"mood": "cross"},
                    "evidence": [quote(3, "always green"), quote(2, "Black tea")],
                }
            ],
            "forget": [{"kind": "profile", "content": "The user drinks coffee.", "evidence": [quote(3, "No")]}],
        }
    )
    assert extraction.candidates == (
        ExtractedLearning(
            Kind.PROFILE,
            "profile",
            "The user drinks green tea.",
            evidence=(Quote(101, "I drink green tea."),),
            time_to_live=ProfileTimeToLive.ONE_YEAR,
        ),
        ExtractedLearning(
            Kind.USER_PLAYBOOK,
            "playbook",
            "Bring green tea.",
            trigger="The user orders tea",
            rationale="Black tea was refused.",
            evidence=(Quote(103, "always green"), Quote(102, "Black tea")),
            metadata={"mood": "cross"},
        ),
        ExtractedLearning(
            Kind.PROFILE, "profile", "The user drinks coffee.", evidence=(Quote(103, "No"),), forget=True
        ),
    )
    assert extraction.unusable == 0
    assert extraction.spend.calls == 1


async def test_nothing_found_is_an_answer() -> None:
    assert (await extract({"profiles": [], "playbooks": [], "forget": []})).candidates == ()
    assert (await extract({"profiles": []})).candidates == ()


async def test_an_answer_without_any_of_the_lists_is_asked_for_again() -> None:
    assert (await extract({}, {"profiles": [], "playbooks": [], "forget": []})).spend.calls == 2


async def test_metadata_are_pairs_or_an_object() -> None:
    pairs = [{"name": "score", "value": 4}, {"name": "issues", "value": ["slow"]}, {"value": 1}, "odd"]
    for metadata in (pairs, {"score": 4, "issues": ["slow"]}, '{"score": 4, "issues": ["slow"]}'):
        [candidate] = await found(playbooks=[{"type": "playbook", "content": "x", "metadata": metadata}])
        assert candidate.metadata == {"score": 4, "issues": ["slow"]}


@pytest.mark.parametrize(
    ("label", "turn_id"),
    [(3, 103), ("3", 103), ("[3]", 103), ("turn 3", 103), (3.0, 103), ("Turn three", 103), ("#3", 103)],
)
async def test_numbers_of_turns_become_their_ids(label: Any, turn_id: int) -> None:
    [candidate] = await found(profiles=[{"type": "profile", "content": "x", "evidence": [quote(label, "green")]}])
    assert candidate.evidence == (Quote(turn_id, "green"),)


@pytest.mark.parametrize("label", [0, 2, 99, -1, 1.5, True, None, "the last", "-1", "1 or 2", [], {"n": 3}])
async def test_a_quote_with_a_wrong_number_is_looked_for(label: Any) -> None:
    quotes = [quote(label, "No,  always green"), quote(99, "never said")]
    candidates = await found(profiles=[{"type": "profile", "content": "x", "evidence": quotes}])
    [candidate], _ = grounded(TALK, candidates)
    assert candidate.evidence == (Quote(103, "No,  always green"),)


async def test_a_quote_that_stands_nowhere_is_left_to_the_check_above() -> None:
    [candidate] = await found(profiles=[{"type": "profile", "content": "x", "evidence": [quote(2, "never said")]}])
    assert candidate.evidence == (Quote(102, "never said"),)


@pytest.mark.parametrize(
    "evidence",
    [
        None,
        "always green",
        ["always green"],
        [quote(3, "always green"), None, 7, {}, quote(1, " ")],
        [{"turn": 3, "quote": "always green"}],
        quote(3, "always green"),
    ],
)
async def test_evidence_in_any_form_is_read(evidence: Any) -> None:
    [candidate] = await found(profiles=[{"type": "profile", "content": "x", "evidence": evidence}])
    assert [quote.text for quote in candidate.evidence] == (["always green"] if evidence else [])


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "response_quality", "content": ""},
        {"type": "response_quality", "content": "  \n"},
        {"type": "response_quality", "content": None},
        {"type": "response_quality", "content": ["Bring", "tea"]},
        {"type": "response_quality"},
        {"type": "weather", "content": "Bring an umbrella."},
        {"content": "Bring an umbrella."},
        {},
        None,
        "Bring tea.",
        7,
        [],
    ],
    ids=str,
)
async def test_a_finding_that_cannot_be_used_is_counted_and_costs_no_other(broken: Any) -> None:
    whole = {"type": "task_completion", "content": "Bring green tea.", "trigger": "tea", "rationale": "said so"}
    extraction = await extract({"playbooks": [whole, broken, whole]}, config=three_types())
    assert [each.content for each in extraction.candidates] == ["Bring green tea."] * 2
    assert extraction.unusable == 1
    assert extraction.spend.calls == 1


@pytest.mark.parametrize("name", ["task_completion", "Task Completion", "task-completion", " TASK_COMPLETION "])
async def test_names_of_types_are_recognised(name: str) -> None:
    extraction = await extract({"playbooks": [{"type": name, "content": "x"}]}, config=three_types())
    assert [each.name for each in extraction.candidates] == ["task_completion"]


async def test_with_one_type_every_finding_belongs_to_it() -> None:
    assert [each.name for each in await found(playbooks=[{"type": "tea", "content": "x"}])] == ["playbook"]


@pytest.mark.parametrize("lifetime", ["one_week", "1 week", "One Week", "a week", "week", "1-weeks"])
async def test_a_lifetime_is_read_in_any_spelling(lifetime: str) -> None:
    [candidate] = await found(profiles=[{"type": "profile", "content": "x", "time_to_live": lifetime}])
    assert candidate.time_to_live is ProfileTimeToLive.ONE_WEEK


@pytest.mark.parametrize("lifetime", ["forever", None, 7, "", {}])
async def test_an_unknown_lifetime_is_endless(lifetime: Any) -> None:
    [candidate] = await found(profiles=[{"type": "profile", "content": "x", "time_to_live": lifetime}])
    assert candidate.time_to_live is ProfileTimeToLive.INFINITY


@pytest.mark.parametrize(
    ("metadata", "expected"), [('{"score": 3}', {"score": 3}), ("not json", {}), (None, {}), ([1], {}), ({}, {})]
)
async def test_metadata_that_cannot_be_read_is_left_out(metadata: Any, expected: dict[str, Any]) -> None:
    [candidate] = await found(playbooks=[{"type": "playbook", "content": "x", "metadata": metadata}])
    assert candidate.metadata == expected


@pytest.mark.parametrize("nonsense", ["", "Certainly!", '{"playbooks": [', '{"learnings": []}', "[]"], ids=str)
async def test_an_answer_to_another_question_is_repaired(nonsense: str) -> None:
    extraction = await extract(nonsense, {"profiles": [{"type": "profile", "content": "The user drinks tea."}]})
    assert [each.content for each in extraction.candidates] == ["The user drinks tea."]
    assert extraction.spend.calls == 2


async def test_nonsense_twice_is_unreadable() -> None:
    with pytest.raises(UnreadableAnswer):
        await extract("nonsense", "more of it")


async def test_learnings_in_any_language_are_kept_as_they_are() -> None:
    [candidate] = await found(profiles=[{"type": "profile", "content": "ユーザーは緑茶を飲む。"}])
    assert candidate.content == "ユーザーは緑茶を飲む。"


@pytest.mark.parametrize(("kind", "other"), [(Kind.PROFILE, "playbooks"), (Kind.USER_PLAYBOOK, "profiles")], ids=str)
async def test_kinds_that_are_not_wanted_are_not_taken(kind: Kind, other: str) -> None:
    entry = {"content": "Tea, always.", "evidence": [quote(3, "always")]}
    answer = {"profiles": [entry], "playbooks": [entry]}
    extraction = await extract(answer, kinds=frozenset({kind}))
    assert [each.kind for each in extraction.candidates] == [kind]
    assert (await extract({other: [entry]}, kinds=frozenset({kind}))).unusable == 1


async def test_without_anything_wanted_or_new_nobody_is_asked() -> None:
    silent = LlmLearner(ScriptedChat())
    nothing_wanted = Config(playbook_configs=[], profile_extractor_configs=[])
    seen = window(Turn(1, "user", "I drink tea.", is_new=False))
    assert await silent.extract(TALK, nothing_wanted, BOTH) == Extraction()
    assert await silent.extract(TALK, Config(), frozenset()) == Extraction()
    assert await silent.extract(seen, Config(), BOTH) == Extraction()
    assert await silent.extract(window(), Config(), BOTH) == Extraction()


def test_the_learner_has_the_name_of_its_model_and_a_fingerprint_of_its_prompts() -> None:
    learner = LlmLearner(ScriptedChat(name="openai:gpt-5"))
    assert learner.name == "openai:gpt-5"
    assert len(learner.fingerprint) == 12
