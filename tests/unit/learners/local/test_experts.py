"""What an expert's answer adds, in substance."""

from collections.abc import AsyncIterator

import pytest

from reflexio.models.extraction import Turn
from reflexio.ports.embedding import Embedder
from reflexio.providers.embedding.local import LocalEmbedder
from tests.unit.learners.local.talk import assert_grounded, learned


@pytest.fixture
async def embedder() -> AsyncIterator[Embedder]:
    embedder = LocalEmbedder()
    yield embedder
    await embedder.aclose()


def reviewed(asked: str, answer: str, expert: str) -> tuple[Turn, ...]:
    return Turn(1, "user", asked), Turn(2, "agent", answer, expert_content=expert)


ADDS = [
    (
        "How do I reset my password?",
        "Go to Settings and click Reset Password.",
        "To reset your password: 1) Go to Settings > Security > Reset Password. 2) Enter your current password for "
        "verification. "
        "3) Choose a new password (minimum 12 characters, must include uppercase, lowercase, number, and special "
        "character). "
        "4) You'll receive a confirmation email. If you've forgotten your current password, use the 'Forgot "
        "Password' link on "
        "the login page instead.",
        ["minimum 12 characters", "confirmation email", "Forgot Password"],
    ),
    (
        "Can I take ibuprofen with my blood thinner?",
        "Yes, ibuprofen is fine for pain.",
        "No, ibuprofen raises the risk of bleeding with a blood thinner. Paracetamol is usually safer. Ask your "
        "pharmacist first.",
        ["risk of bleeding", "Paracetamol", "pharmacist"],
    ),
    (
        "How long do I have to return shoes?",
        "You have 30 days to return your shoes.",
        "You have 60 days to return your shoes.",
        ["60 days"],
    ),
    (
        "Why does my build fail?",
        "",
        "Delete the stale lock file and run the installer again with a clean cache.",
        ["stale lock file"],
    ),
]


@pytest.mark.parametrize(("asked", "answer", "expert", "points"), ADDS, ids=[case[0] for case in ADDS])
async def test_missing_substance_becomes_a_playbook(
    asked: str, answer: str, expert: str, points: list[str], embedder: Embedder
) -> None:
    turns = reviewed(asked, answer, expert)
    (found,) = await learned(turns, embedder=embedder)
    assert all(point in found.content for point in points)
    assert found.trigger.startswith("The user asks")
    assert_grounded([found], turns)


SAME = [
    ("Go to Settings and click Reset Password.", "Go to Settings and click Reset Password."),
    ("Go to Settings and click Reset Password.", "Please go to Settings, then click on Reset Password. Happy to help!"),
    (
        "The store opens at 9 and closes at 18.",
        "Great question! The store opens at 9 and closes at 18. Let me know if I can help.",
    ),
    (
        "Restart the router and wait two minutes.",
        "Thanks for asking. You should restart the router, then wait two minutes.",
    ),
]


@pytest.mark.parametrize(("answer", "expert"), SAME)
async def test_style_is_no_substance(answer: str, expert: str, embedder: Embedder) -> None:
    assert await learned(reviewed("What do I do?", answer, expert), embedder=embedder) == ()


async def test_ordinary_turns_beside_an_expert_are_still_mined(embedder: Embedder) -> None:
    turns = (
        *reviewed("Suggest a lunch. I'm vegan.", "Try a steak.", "Suggest lentil soup with bread and a green salad."),
        Turn(3, "user", "No, never suggest meat."),
    )
    found = await learned(turns, embedder=embedder)
    assert {"expert", "instruction", "identity"} == {each.metadata["signal"] for each in found}


async def test_expert_content_that_was_learned_from_is_context(embedder: Embedder) -> None:
    turn = Turn(2, "agent", "Go to Settings.", expert_content="Call the bank first, they must unlock it.", is_new=False)
    assert await learned([turn, Turn(3, "user", "Thanks")], embedder=embedder) == ()


async def test_the_answer_of_an_expert_is_what_the_agent_is_to_tell(embedder: Embedder) -> None:
    turns = reviewed(
        "How can I skip two weeks in August?",
        "I am afraid that boxes can only be cancelled.",
        "Pause the subscription under Account > Plan > Pause. Shall I do it for the 3rd of August?",
    )
    (found,) = await learned(turns, embedder=embedder)
    assert found.content == "Tell the user: Pause the subscription under Account > Plan > Pause."
