import pytest
from pydantic import BaseModel

from reflexio.ports.chat import Messages
from reflexio.providers.chat.scripted import ScriptedChat

SKY = Messages("Name the colour.", "The sky.")


class Colour(BaseModel):
    name: str


async def test_a_line_may_depend_on_what_is_asked() -> None:
    chat = ScriptedChat([lambda messages: {"name": messages.case}, Colour(name="red")])
    assert (await chat.ask(SKY, Colour)).answer.name == "The sky."
    assert (await chat.ask(SKY, Colour)).answer.name == "red"
    assert chat.asked == [SKY, SKY]


async def test_an_error_of_another_kind_is_raised_as_it_is() -> None:
    with pytest.raises(KeyboardInterruptLike):
        await ScriptedChat([KeyboardInterruptLike()]).ask(SKY, Colour)


async def test_a_script_that_has_ended_says_so() -> None:
    with pytest.raises(LookupError, match="no line left"):
        await ScriptedChat().ask(SKY, Colour)


class KeyboardInterruptLike(Exception):
    """Not ours."""
