"""How much a model reasons about a question of ours: little where it would reason much, and else as it is."""

import pytest
from pydantic_ai.profiles.google import google_model_profile
from pydantic_ai.profiles.openai import openai_model_profile

from reflexio.learners.llm.schemas import ExtractionAnswer
from reflexio.ports.chat import Messages
from reflexio.providers.chat.resolve import ProviderCredentials, reasoning_effort, resolve
from tests.scripted_model import scripted_model


@pytest.mark.parametrize(
    ("model", "effort"), [("gpt-5-mini", "low"), ("o3", "low"), ("gpt-5.1", None), ("gpt-4o-mini", None)]
)
def test_models_of_openai(model: str, effort: str | None) -> None:
    assert reasoning_effort(openai_model_profile(model) or {}) == effort


def test_models_of_google_reason_by_default() -> None:
    assert reasoning_effort(google_model_profile("gemini-2.5-flash") or {}) == "low"
    assert reasoning_effort(google_model_profile("gemini-2.0-flash") or {}) is None
    assert reasoning_effort({}) is None


@pytest.mark.parametrize(("model", "effort"), [("gpt-5-mini", "low"), ("some-local-model", None)])
async def test_a_question_is_sent_strict_and_with_its_effort(model: str, effort: str | None) -> None:
    with scripted_model() as server:
        chat = resolve(f"openai:{model}", keys={"openai": ProviderCredentials("key", server.url)})
        await chat.ask(Messages("Read.", "Case."), ExtractionAnswer)
        await chat.aclose()
    body = server.requests[0].body
    assert body.get("reasoning_effort") == effort
    assert body["tools"][0]["function"]["strict"] is True
