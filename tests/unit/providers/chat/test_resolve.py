import subprocess
import sys

import pytest

from reflexio.errors import InvalidRequest, ProviderRefused
from reflexio.providers.chat.resolve import PROVIDERS, ProviderCredentials, address, resolve
from reflexio.providers.chat.session import ChatSession

KEYS = {name: ProviderCredentials("secret-key") for name in PROVIDERS}
LOCAL = {"openai": ProviderCredentials(base_url="http://127.0.0.1:8000/v1")}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("openai:gpt-5-mini", "openai:gpt-5-mini"),
        ("openai/gpt-5-mini", "openai:gpt-5-mini"),
        (" OpenAI:gpt-5-mini ", "openai:gpt-5-mini"),
        ("anthropic/claude-haiku-4-5", "anthropic:claude-haiku-4-5"),
        ("google:gemini-2.5-flash", "google:gemini-2.5-flash"),
        ("gemini/gemini-2.5-flash", "google:gemini-2.5-flash"),
        ("openrouter/openai/gpt-5:free", "openrouter:openai/gpt-5:free"),
        ("ollama:qwen3:8b", "ollama:qwen3:8b"),
    ],
)
def test_both_spellings_name_provider_and_model(name: str, expected: str) -> None:
    assert resolve(name, keys=KEYS).name == expected


@pytest.mark.parametrize("end", ["", "/", "/chat/completions", "/chat/completions/", "/embeddings", "/models", " "])
def test_a_base_url_may_be_the_address_of_an_endpoint(end: str) -> None:
    credentials = {"openai": ProviderCredentials(base_url=f"http://127.0.0.1:8000/v1{end}")}
    assert address("openai:qwen3", keys=credentials).base_url == "http://127.0.0.1:8000/v1"


@pytest.mark.parametrize("written", ["sk-12345678", " sk-12345678\n", "Bearer sk-12345678", "bearer  sk-12345678 "])
def test_a_key_is_read_as_it_was_copied(written: str) -> None:
    assert address("openai:gpt-5", keys={"openai": ProviderCredentials(written)}).api_key == "sk-12345678"


@pytest.mark.parametrize("written", ["“sk-12345678”", "sk-1234\n5678", "sk-1234 5678", "ключ-12345678"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(written: str) -> None:
    with pytest.raises(ProviderRefused, match="copy it again") as raised:
        address("openai:gpt-5", keys={"openai": ProviderCredentials(written)})
    assert "5678" not in str(raised.value)


@pytest.mark.parametrize("end", ["?api-version=2024-10-21", "/chat/completions?key=secret", "#v1"])
def test_a_base_url_with_a_query_is_refused(end: str) -> None:
    credentials = {"openai": ProviderCredentials(base_url=f"http://127.0.0.1:8000/v1{end}")}
    with pytest.raises(InvalidRequest, match="leave it out") as raised:
        address("openai:qwen3", keys=credentials)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("name", ["", ":", "gpt-5", "openai:", "openai/", "nobody:model", ":gpt-5"])
def test_a_name_that_cannot_be_used_says_what_to_write(name: str) -> None:
    with pytest.raises(InvalidRequest, match="write 'openai:<model>'"):
        resolve(name, keys=KEYS)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-2.5-flash", "GOOGLE_API_KEY"),
        ("xai:grok-4", "XAI_API_KEY"),
    ],
)
def test_a_missing_key_names_the_variable(name: str, variable: str) -> None:
    with pytest.raises(ProviderRefused, match=variable) as raised:
        resolve(name, keys={})
    assert raised.value.reason == "auth"


def test_a_private_server_needs_no_key_but_a_whole_url() -> None:
    assert address("openai/qwen3", keys=LOCAL).base_url == "http://127.0.0.1:8000/v1"
    assert address("ollama:qwen3", keys={}).base_url == "http://127.0.0.1:11434/v1"
    with pytest.raises(InvalidRequest, match="http://"):
        resolve("openai:qwen3", keys={"openai": ProviderCredentials(base_url="127.0.0.1:8000/v1")})
    with pytest.raises(InvalidRequest, match="http://"):
        resolve("custom:qwen3", keys={})


def test_credentials_of_google_may_be_named_gemini() -> None:
    assert (
        address("gemini:gemini-2.5-flash", keys={"gemini": ProviderCredentials("secret-key")}).api_key == "secret-key"
    )


def test_a_key_is_not_shown() -> None:
    resolved = address("openai:gpt-5", keys=KEYS)
    assert "secret-key" not in repr(resolved) + repr(KEYS)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.slow
async def test_every_provider_can_be_opened(provider: str) -> None:
    keys = {**KEYS, "custom": ProviderCredentials("secret-key", "http://127.0.0.1:8000/v1")}
    session = ChatSession(address(f"{provider}:some/model", keys=keys))
    await session.aclose()


def test_a_model_that_a_provider_cannot_have_is_refused_with_the_reason() -> None:
    with pytest.raises(ProviderRefused, match="prefixed with the upstream provider"):
        ChatSession(address("openrouter:gpt-5", keys=KEYS))


def test_naming_a_model_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from reflexio.providers.chat.resolve import ProviderCredentials, resolve\n"
        "resolve('openai:gpt-5', keys={'openai': ProviderCredentials('k')})\n"
        "print({'pydantic_ai', 'openai', 'httpx', 'httpx2', 'anthropic', 'numpy'} & set(sys.modules))"
    )
    process = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert process.stdout.strip() == "set()"


@pytest.mark.slow
def test_openai_models_do_not_import_other_clients() -> None:
    code = (
        "import sys\n"
        "from reflexio.providers.chat.resolve import ProviderCredentials, address\n"
        "from reflexio.providers.chat.session import ChatSession\n"
        "ChatSession(address('openai:gpt-5', keys={'openai': ProviderCredentials('k')}))\n"
        "print({'anthropic', 'google.genai', 'logfire', 'tiktoken'} & set(sys.modules))"
    )
    process = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert process.stdout.strip() == "set()"
