"""No body keeps the server busy for long, and every reasonable one passes."""

import json
import time
from collections.abc import Callable

import pytest
from starlette.exceptions import HTTPException

from reflexio.server.body_limits import MOST_UNKNOWN, MOST_VALUES, check_fields, check_values, known_fields

SIZE = 16 * 1024 * 1024


def repeated(part: bytes, between: bytes = b",", around: tuple[bytes, bytes] = (b"[", b"]")) -> bytes:
    return around[0] + between.join([part] * (SIZE // len(part + between))) + around[1]


FLOODS: dict[str, Callable[[], bytes]] = {
    "numbers": lambda: repeated(b"1"),
    "objects": lambda: repeated(b"{}"),
    "lists": lambda: repeated(b"[]"),
    "texts": lambda: repeated(b'""'),
    "fields": lambda: repeated(b'"a":1', around=(b"{", b"}")),
    "quotes alone": lambda: b'"' * SIZE,
    "escaped quotes": lambda: repeated(b'"\\"",1'),
    "backslashes": lambda: repeated(b'"\\\\",1'),
    "open text of escapes": lambda: b"[" + b"1," * (MOST_VALUES + 1) + b'"' + b'\\"' * (SIZE // 2),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_of_values_is_refused_before_it_is_parsed(flood: str) -> None:
    body = FLOODS[flood]()
    started = time.process_time()
    refused = False
    try:
        check_values(body)
    except HTTPException:
        refused = True
    # Generous: parsing it takes many seconds.
    assert time.process_time() - started < 1
    assert refused or flood == "quotes alone"  # which is no JSON and ends the parser at once


@pytest.mark.parametrize(
    "value",
    [
        [{"role": "User", "content": 'Hello, there: it is {odd} [and] "quoted\\" ' * 20, "n": n} for n in range(1000)],
        "a,b:c[{" * 1_000_000,
        '\\",' * 1_000_000,
        "\\" * 1_000_000,
        [1] * (MOST_VALUES - 1),
    ],
    ids=["turns", "punctuation", "quotes", "backslashes", "as many as allowed"],
)
def test_texts_may_hold_what_they_like(value: object) -> None:
    check_values(json.dumps(value).encode())


def test_unknown_fields_are_counted_at_every_depth() -> None:
    def check(value: object) -> None:
        check_fields(json.dumps(value).encode(), value)

    assert {"user_id", "interaction_data_list", "content"} <= known_fields()
    check({f"k{n}": 1 for n in range(MOST_UNKNOWN)})
    check([{"content": "x", "role": "User"}] * 50_000)
    for flood in ({f"k{n}": 1 for n in range(MOST_UNKNOWN + 1)}, [{"a": {"b": 1}}] * (MOST_UNKNOWN // 2 + 1)):
        with pytest.raises(HTTPException, match="unknown fields"):
            check(flood)
