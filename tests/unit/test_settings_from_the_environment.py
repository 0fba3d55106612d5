import pytest

from reflexio.errors import InvalidRequest
from reflexio.settings import Settings


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("PORT", "99999", "REFLEXIO_PORT: 99999 is more than 65535"),
        ("PORT", "http", "REFLEXIO_PORT: 'http' is not a whole number"),
        ("LOG_LEVEL", "loud", "REFLEXIO_LOG_LEVEL: 'loud' is none of critical, error"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(name: str, text: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        Settings.read({f"REFLEXIO_{name}": text})


def test_the_log_level_may_be_written_large() -> None:
    assert Settings.read({"REFLEXIO_LOG_LEVEL": "WARNING"}).log_level == "warning"
