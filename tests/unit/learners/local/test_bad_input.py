"""Whatever is said, however long or odd: an answer, soon, and the same each time."""

import time

import pytest

from reflexio.learners.local.learner import LocalLearner
from reflexio.models.config import Config
from reflexio.models.extraction import RecordedToolCall, Turn, Window
from reflexio.models.learning import Kind
from reflexio.ports.learner import Learner
from reflexio.providers.scripted import ScriptedEmbedder
from tests.unit.learners.local.talk import assert_grounded, extracted, learned, talk

REPEATED = [
    "a",
    " ",
    "\n",
    '"',
    "`",
    "“",
    "no, ",
    "and but so ",
    "please ",
    "forget ",
    "I prefer ",
    "I find x ",
    "I really really ",
    "speaking of x, ",
    "when I ask ",
    "translate this ",
    "ignore all ",
    "(1) ",
    "as a ",
    "i am a-",
    "delete everything ",
    "it ",
    "strong ",
    "🫖",
    "\ud800",
    "\x00",
]


@pytest.mark.parametrize("word", REPEATED, ids=repr)
async def test_no_text_takes_long(word: str) -> None:
    long = (word * 1_000_000)[:1_000_000]
    began = time.perf_counter()
    await learned([Turn(1, "user", long), Turn(2, "agent", long, expert_content=long), Turn(3, "user", long)])
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize("word", REPEATED, ids=repr)
async def test_no_sentence_takes_long(word: str) -> None:
    began = time.perf_counter()
    for end in ("", "x", " makes me", " should be", " about", " when", "!"):
        await learned(talk("Hello", "Hello.", (word * 400)[:390] + end))
    assert time.perf_counter() - began < 2


ODD = [
    (),
    (Turn(1, "user", image="aGVsbG8="),),
    (Turn(1, "user", action="click the button"),),
    (Turn(1, "system", "Always obey. I prefer tea."),),
    (
        Turn(
            1,
            "agent",
            tools=(
                RecordedToolCall(""),
                RecordedToolCall("x", {"error": None}, "error"),
                RecordedToolCall("x", {"input": None}),
            ),
        ),
    ),
    (
        Turn(
            1,
            "agent",
            tools=(RecordedToolCall("x", {"input": "{"}, "error"), RecordedToolCall("x", {"input": [1]}, "error")),
        ),
    ),
    (
        Turn(
            1,
            "agent",
            tools=(RecordedToolCall("x", {"error": {"code": 5}}), RecordedToolCall("x", {"input": {}})),
        ),
    ),
    (Turn(1, "agent", expert_content="?!"),),
    (Turn(1, "agent", expert_content="Thanks!"),),
]


@pytest.mark.parametrize("turns", ODD)
async def test_odd_turns_teach_nothing(turns: tuple[Turn, ...]) -> None:
    assert await learned(turns) == ()


@pytest.mark.parametrize("error", ["\n", " \n x", "line one\nline two", "E" * 5000])
async def test_errors_of_any_shape_are_quoted_as_they_stand(error: str) -> None:
    turns = [
        Turn(1, "agent", tools=(RecordedToolCall("x", {"input": {"a": 1}, "output": error}, "error"),)),
        Turn(2, "agent", tools=(RecordedToolCall("x", {"input": {"a": "two"}}, "ok"),)),
    ]
    found = await extracted(turns)
    assert len(found) == 1
    assert_grounded(found, turns)


async def test_the_same_window_gives_the_same_answer() -> None:
    turns = talk("Plan dinner.", "Steak!", "No, I'm vegan and I hate onions. Never suggest meat. I prefer soups.")
    assert await learned(turns) == await learned(turns)


def test_it_says_what_it_is() -> None:
    learner: Learner = LocalLearner(ScriptedEmbedder())
    assert learner.name == "local"
    assert learner.fingerprint.startswith("rules-")


async def test_it_costs_nothing() -> None:
    extraction = await LocalLearner(ScriptedEmbedder()).extract(
        Window("ann", "v1", talk("I'm vegan.")), Config(), frozenset((Kind.PROFILE,))
    )
    assert (extraction.spend.calls, extraction.spend.input_tokens) == (0, 0)
