import subprocess
import sys

import pytest

from reflexio.errors import InvalidRequest, ProviderRefused
from reflexio.providers.embedding.resolve import resolve


@pytest.mark.parametrize("name", ["local", "local:all-MiniLM-L6-v2", "local/all-MiniLM-L6-v2"])
def test_local_is_the_model_in_the_package(name: str) -> None:
    embedder = resolve(name)
    assert (embedder.name, embedder.dimensions) == ("local:all-MiniLM-L6-v2", 384)


@pytest.mark.parametrize(
    ("name", "expected", "dimensions"),
    [
        ("openai:text-embedding-3-small", "openai:text-embedding-3-small", 1536),
        ("openai/text-embedding-3-large", "openai:text-embedding-3-large", 3072),
        ("openai:text-embedding-3-small@1536", "openai:text-embedding-3-small", 1536),
        ("openai:text-embedding-3-small@512", "openai:text-embedding-3-small@512", 512),
        ("openai:my/model:0.6b@768", "openai:my/model:0.6b@768", 768),
    ],
)
def test_endpoints_are_named_after_their_model(name: str, expected: str, dimensions: int) -> None:
    embedder = resolve(name, api_key="k")
    assert (embedder.name, embedder.dimensions) == (expected, dimensions)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("", "use 'local' or 'openai:<model>'"),
        ("word2vec", "use 'local' or 'openai:<model>'"),
        ("local:other", "use 'local' or 'openai:<model>'"),
        ("openai:", "write 'openai:<model>'"),
        ("openai:my-model@many", "write 'openai:<model>'"),
        ("openai:my-model@0", "write 'openai:<model>'"),
        ("openai:my-model", "openai:my-model@768"),
        ("openai:text-embedding-ada-002@64", "have 1536 numbers"),
    ],
)
def test_a_name_that_cannot_be_used_says_what_to_write(name: str, remedy: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        resolve(name, api_key="k")
    assert remedy in str(raised.value)


def test_an_endpoint_without_key_names_the_variable() -> None:
    with pytest.raises(ProviderRefused, match="OPENAI_API_KEY"):
        resolve("openai:text-embedding-3-small")


def test_a_local_server_needs_no_key_but_a_whole_url() -> None:
    assert resolve("openai:nomic-embed-text", base_url="http://127.0.0.1:11434/v1").dimensions == 768
    with pytest.raises(InvalidRequest, match="http://"):
        resolve("openai:nomic-embed-text", base_url="127.0.0.1:11434/v1")


def test_naming_an_embedder_imports_neither_numpy_nor_httpx() -> None:
    code = "import sys, reflexio.providers.embedding.resolve; print({'numpy', 'httpx'} & set(sys.modules))"
    process = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert process.stdout.strip() == "set()"
