"""The address of the model server is checked when the process starts."""

import pytest

from reflexio.errors import InvalidRequest
from reflexio.settings import Settings


@pytest.mark.parametrize(
    "url",
    ["ftp://x/v1", "api.openai.com/v1", "https://u:p@x/v1", "http://x/v1?a=b", "http://x/v1#a", "http://[", "http://"],
)
def test_an_unusable_address_names_its_variable(url: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^REFLEXIO_GATEWAY_URL: "):
        Settings.read({"REFLEXIO_GATEWAY_URL": url})


def test_settings_do_not_show_the_key_of_the_model_server() -> None:
    settings = Settings.read({"REFLEXIO_GATEWAY_URL": "https://api.openai.com/v1/", "REFLEXIO_GATEWAY_KEY": "sk-1"})
    assert settings.gateway_url == "https://api.openai.com/v1"
    assert settings.gateway_key == "sk-1"
    assert "sk-1" not in repr(settings)
