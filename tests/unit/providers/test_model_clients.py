"""Clients of models are kept for few addresses: every change of a key or a limit makes another one."""

import asyncio

from reflexio.model_choice import MOST_CHATS, ChatModels
from reflexio.models.config import Config
from reflexio.settings import Settings


def config(number: int) -> Config:
    endpoint = {"model": "m", "api_key": f"key-{number}", "api_base": "http://127.0.0.1:9/v1"}
    return Config.model_validate({"api_key_config": {"custom_endpoint": endpoint}})


async def test_clients_that_nobody_uses_any_more_are_closed() -> None:
    chats = ChatModels(Settings())
    first = chats.get(config(0), "custom:m")
    for number in range(1, 3 * MOST_CHATS):
        chats.get(config(number), "custom:m")
    assert len(chats._chats) == MOST_CHATS
    assert chats.get(config(0), "custom:m") is not first
    await asyncio.gather(*chats._closing)


async def test_a_client_in_use_stays() -> None:
    chats = ChatModels(Settings())
    first = chats.get(config(0), "custom:m")
    first._asking += 1
    for number in range(1, 3 * MOST_CHATS):
        chats.get(config(number), "custom:m")
    assert chats.get(config(0), "custom:m") is first
    await asyncio.gather(*chats._closing)
