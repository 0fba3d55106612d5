import asyncio

import pytest

from reflexio.agents.vectors.embedding import Embedder, embedder
from reflexio.errors import InvalidRequest, ProviderRefused
from reflexio.providers.scripted import ScriptedEmbedder
from tests.contract.endpoint import endpoint


async def test_the_local_one_is_the_default_and_there_is_one_of_it() -> None:
    assert embedder() is embedder("local")
    assert isinstance(embedder(), Embedder)
    assert len(await embedder().embed("tea")) == embedder().dimensions == 384


async def test_an_embedder_of_the_server_is_one_for_agents() -> None:
    made = embedder(ScriptedEmbedder())
    assert made.name == "scripted:words"
    assert await made.embed_batch(["tea", "coffee"]) == [await made.embed("tea"), await made.embed("coffee")]
    assert embedder(made) is made


def test_a_remote_one_serves_one_event_loop_after_the_other() -> None:
    with endpoint() as served:
        made = embedder("openai:loopback@64", base_url=served.url)
        assert asyncio.run(made.embed("tea")) == pytest.approx(asyncio.run(made.embed("tea")))


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ProviderRefused, match="OPENAI_API_KEY"):
        embedder("openai:text-embedding-3-small")
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    assert embedder("openai:text-embedding-3-small").dimensions == 1536


@pytest.mark.parametrize("nonsense", ["nothing:like-this", 7, object()])
def test_what_is_no_embedder_is_refused(nonsense: object) -> None:
    with pytest.raises(InvalidRequest):
        embedder(nonsense)  # type: ignore[arg-type]
