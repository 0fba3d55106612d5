"""Settings are read from environment variables; a wrong value is named."""

from pathlib import Path

import pytest

from reflexio.errors import InvalidRequest
from reflexio.settings import Settings


def test_without_variables_the_defaults_hold() -> None:
    settings = Settings.read({})
    assert (settings.host, settings.port, settings.data) == ("127.0.0.1", 8081, Path.home() / ".reflexio")
    assert (settings.api_key, settings.rate_limits, settings.cors_origins) == ("", (), ())


def test_every_field_has_a_variable() -> None:
    settings = Settings.read(
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
    assert settings.data == Path.home() / "memory"
    assert (settings.port, settings.max_body_bytes, settings.agent_version) == (9000, 10, "v9")
    assert settings.cors_origins == ("https://a.test", "https://b.test")


@pytest.mark.parametrize("name", ["PORT", "MAX_BODY_BYTES"])
@pytest.mark.parametrize("text", ["many", "-1", "1.5", "0x10"])
def test_a_value_that_is_no_number_is_named(name: str, text: str) -> None:
    with pytest.raises(InvalidRequest, match=f"REFLEXIO_{name}"):
        Settings.read({f"REFLEXIO_{name}": text})


@pytest.mark.parametrize(("name", "text"), [("PORT", "65536"), ("LOG_LEVEL", "loud")])
def test_a_value_out_of_range_is_named(name: str, text: str) -> None:
    with pytest.raises(InvalidRequest, match=f"REFLEXIO_{name}: '?{text}"):
        Settings.read({f"REFLEXIO_{name}": text})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("PORT", "99999", "REFLEXIO_PORT: 99999 is more than 65535"),
        ("PORT", "http", "REFLEXIO_PORT: 'http' is not a whole number"),
        ("LOG_LEVEL", "loud", "REFLEXIO_LOG_LEVEL: 'loud' is none of critical, error"),
    ],
)
def test_a_wrong_value_is_named_with_the_reason(name: str, text: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        Settings.read({f"REFLEXIO_{name}": text})


def test_the_log_level_may_be_in_capitals() -> None:
    assert Settings.read({"REFLEXIO_LOG_LEVEL": "WARNING"}).log_level == "warning"
