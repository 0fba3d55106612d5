"""What models write in place of JSON is read; what could mean two things is not."""

import time

import pytest

from reflexio.providers.chat.loose_json import LooseDecoder, Unreadable

HOSTILE = [
    '{"a": "' + '" ',
    '{"a": "' + '"#',
    '{"a": "' + '"/*',
    "{",
    '{"a":',
    "[ ",
    '{"a":"\\',
    '[{"a":"b"},',
    "{a:'\n",
]


def decode(text: str) -> object:
    value, _ = LooseDecoder(text).decode(0)
    return value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 'x', \"b\": [1, 2,], }", {"a": "x", "b": [1, 2]}),
        (
            "{'a': None, 'b': True, 'c': NaN, 'd': (1, .5, -2e3)}",
            {"a": None, "b": True, "c": None, "d": [1, 0.5, -2e3]},
        ),
        ("{“a”: “x”, ”b”: ”y”}", {"a": "x", "b": "y"}),
        ("{a: 1, // one\n b: 2 /* two */, # three\n}", {"a": 1, "b": 2}),
        ('{"a": "x"\n "b": "y"}', {"a": "x", "b": "y"}),
        ('[{"x": 1}{"y": 2}]', [{"x": 1}, {"y": 2}]),
        (r'{"a": "don\'t \u00e9 \ud83d\ude00 \_"}', {"a": "don't é 😀 _"}),
        ('{"a": "I said "no" to it.", "b": "x"}', {"a": 'I said "no" to it.', "b": "x"}),
        ("{'a': 'don't', 'b': 'it's'}", {"a": "don't", "b": "it's"}),
        ("{kind: profile, on: false}", {"kind": "profile", "on": False}),
    ],
)
def test_near_misses_of_json_are_read(text: str, value: object) -> None:
    assert decode(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "{name}",
        "{profiles: …}",
        '{"a": "cut',
        '{"a": 1',
        '{"a": b c}',
        '{"a": Never say, "no": 1}',
        "{1: 2}",
        "",
        "{a 1}",
    ],
)
def test_what_is_unclear_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        decode(text)


@pytest.mark.parametrize("unit", HOSTILE)
def test_no_text_takes_long(unit: str) -> None:
    begun = time.process_time()
    with pytest.raises(Unreadable):
        decode(unit[:7] + unit[7:] * 100_000 if len(unit) > 7 else unit * 100_000)
    assert time.process_time() - begun < 2
