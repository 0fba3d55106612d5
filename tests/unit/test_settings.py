"""The environment, read once."""

from pathlib import Path

import pytest

from reflexio.errors import InvalidRequest
from reflexio.settings import Settings


def test_without_variables_the_defaults_hold() -> None:
    found = Settings.read({})
    assert (found.host, found.port, found.data) == ("127.0.0.1", 8081, Path.home() / ".reflexio")
    assert (found.api_key, found.rate_limits, found.cors_origins) == ("", (), ())


def test_every_field_has_a_variable() -> None:
    found = Settings.read(
        {
            "REFLEXIO_DATA": "~/memory",
            "REFLEXIO_HOST": "0.0.0.0",  # noqa: S104  read, not listened on
            "REFLEXIO_PORT": " 9000 ",
            "REFLEXIO_API_KEY": "k",
            "REFLEXIO_MAX_BODY_BYTES": "10",
            "REFLEXIO_CORS_ORIGINS": "https://a.test, https://b.test,",
            "REFLEXIO_AGENT_VERSION": "v9",
            "REFLEXIO_LOG_LEVEL": "debug",
        }
    )
    assert found.data == Path.home() / "memory"
    assert (found.port, found.max_body_bytes, found.agent_version) == (9000, 10, "v9")
    assert found.cors_origins == ("https://a.test", "https://b.test")


@pytest.mark.parametrize("name", ["PORT", "MAX_BODY_BYTES"])
@pytest.mark.parametrize("text", ["many", "-1", "1.5", "0x10"])
def test_a_number_that_is_none_is_named(name: str, text: str) -> None:
    with pytest.raises(InvalidRequest, match=f"REFLEXIO_{name}"):
        Settings.read({f"REFLEXIO_{name}": text})


@pytest.mark.parametrize(("name", "text"), [("PORT", "65536"), ("LOG_LEVEL", "loud")])
def test_a_value_out_of_range_is_named(name: str, text: str) -> None:
    with pytest.raises(InvalidRequest, match=f"REFLEXIO_{name}: '?{text}"):
        Settings.read({f"REFLEXIO_{name}": text})
