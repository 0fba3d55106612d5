import pytest
from pydantic import BaseModel

from reflexio.errors import ProviderRefused, ProviderUnavailable
from reflexio.ports.chat import Messages
from reflexio.providers.scripted import ScriptedChat, ScriptedEmbedder

SKY = Messages("Name the colour.", "The sky.")


class Colour(BaseModel):
    name: str


async def test_a_line_may_depend_on_the_prompt() -> None:
    chat = ScriptedChat([lambda messages: {"name": messages.case}, Colour(name="red")])
    assert (await chat.ask(SKY, Colour)).answer.name == "The sky."
    assert (await chat.ask(SKY, Colour)).answer.name == "red"
    assert chat.asked == [SKY, SKY]


async def test_an_error_of_another_kind_is_raised_unchanged() -> None:
    with pytest.raises(KeyboardInterruptLike):
        await ScriptedChat([KeyboardInterruptLike()]).ask(SKY, Colour)


async def test_a_script_without_lines_left_raises() -> None:
    with pytest.raises(LookupError, match="no line left"):
        await ScriptedChat().ask(SKY, Colour)


class KeyboardInterruptLike(Exception):
    """Not ours."""


async def test_shared_words_make_texts_near() -> None:
    tea, more_tea, rest = await ScriptedEmbedder().embed(["green tea", "Green tea!", "server restart"])
    assert tea @ more_tea == pytest.approx(1)
    assert tea @ rest < 0.5


async def test_failures_come_in_order_and_then_it_works() -> None:
    embedder = ScriptedEmbedder(failures=[ProviderUnavailable(), ProviderRefused()])
    with pytest.raises(ProviderUnavailable):
        await embedder.embed(["tea"])
    with pytest.raises(ProviderRefused):
        await embedder.embed(["tea"])
    assert (await embedder.embed(["tea"])).shape == (1, 64)


async def test_the_embedder_records_its_texts() -> None:
    embedder = ScriptedEmbedder()
    await embedder.embed(["tea", "cup"])
    assert embedder.calls == [("tea", "cup")]
