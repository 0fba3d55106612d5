import pytest

from reflexio.errors import ProviderRefused, ProviderUnavailable
from reflexio.providers.embedding.scripted import ScriptedEmbedder


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


async def test_what_was_asked_is_kept() -> None:
    embedder = ScriptedEmbedder()
    await embedder.embed(["tea", "cup"])
    assert embedder.calls == [("tea", "cup")]
