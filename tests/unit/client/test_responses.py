"""An error reads on the client as the server said it, once."""

import pytest

from reflexio import errors
from reflexio.client.responses import HttpReply, failure
from reflexio.server.problems import as_problem

PATH = "/api/delete_interaction"
URL = f"http://127.0.0.1:8081{PATH}?wait=true"


def _as_the_client_reads(error: errors.ReflexioError) -> errors.ReflexioError:
    sent = as_problem(error, "")
    return failure(HttpReply(sent.status_code, sent.headers, bytes(sent.body)), URL)


@pytest.mark.parametrize(
    "error",
    [
        errors.NotFound(what="interaction", id=4),
        errors.NotAuthorised("This key is not valid here."),
        errors.RateLimited(retry_after=3),
        errors.Conflict("The request id is taken."),
        errors.InvalidRequest("body: too short"),
        errors.TooLarge(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_crosses_the_wire_with_its_class_and_its_words(error: errors.ReflexioError) -> None:
    read = _as_the_client_reads(error)
    assert type(read) is type(error)
    assert str(read) == str(error)


def test_a_404_of_something_else_than_reflexio_names_the_path() -> None:
    page = b"<html>nothing here</html>"
    read = failure(HttpReply(404, {"content-type": "text/html"}, page), URL)
    assert isinstance(read, errors.NotFound)
    assert str(read) == f"There is no route '{PATH}'."


def test_the_pause_that_a_rate_limit_asks_for_survives() -> None:
    read = _as_the_client_reads(errors.RateLimited(retry_after=3))
    assert isinstance(read, errors.RateLimited)
    assert read.retry_after == 3
