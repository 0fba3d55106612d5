"""Reads what models write in place of JSON: JSON5, the repr of Python, and JSON with small mistakes.

Single or typographic quotes, bare keys, comments, trailing and missing commas, wrong escapes, quotation marks inside of
a string, `None` and `NaN`. What is unclear is refused: a guess could turn half of an instruction into a whole one.
"""

import re
from typing import Any

DEEPEST = 30
MOST_STEPS = 200_000
"""Values and marks that are read for one text, so that no text keeps the event loop."""

_FILLER = re.compile(r"(?:\s|//[^\n]{0,500}|/\*.{0,200}?\*/|#[^\n]{0,500})+", re.DOTALL)
_LOOSE_NUMBER = re.compile(r"[-+]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,3})?(?![\w.])")
_BARE_WORD = re.compile(r"[A-Za-z_$][\w$-]{0,63}")
_CONSTANTS = {"true": True, "false": False, **dict.fromkeys(("null", "none", "nan", "undefined", "infinity"))}
_LOW_SURROGATE = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_CLOSERS = {'"': '"', "'": "'", "`": "`", "“": "“”", "”": "“”", "„": "“”", "‘": "‘’", "’": "‘’", "«": "»"}
_PLAIN = {quote: re.compile(rf"[^{re.escape(closers)}\\]+") for quote, closers in _CLOSERS.items()}
_QUOTES = "".join(_CLOSERS)
_NEXT_KEY = re.compile(rf"[{_QUOTES}][\w $-]{{1,64}}[{_QUOTES}]:")


class Unreadable(ValueError):
    """The text is no such object, or does not end."""


class LooseDecoder:
    """Decodes values out of one text; all of them share one bound on the work."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._steps = 0

    def decode(self, place: int) -> tuple[Any, int]:
        """The value that begins at a place, and where it ends. Raises Unreadable."""
        return self._value(place, 0)

    def _value(self, place: int, depth: int) -> tuple[Any, int]:
        self._steps += 1
        if self._steps > MOST_STEPS or depth > DEEPEST:
            raise Unreadable
        match self._at(place):
            case "{":
                return self._object(place + 1, depth + 1)
            case "[" | "(":
                return self._list(place + 1, depth + 1)
            case quote if quote in _CLOSERS:
                return self._string(place)
            case _:
                return self._scalar(place)

    def _object(self, place: int, depth: int) -> tuple[dict[str, Any], int]:
        members: dict[str, Any] = {}
        while self._at(place := self._next(place)) != "}":
            key, place = self._key(place)
            if self._at(place := self._next(place)) != ":":
                raise Unreadable
            members[key], place = self._value(self._next(place + 1), depth)
            place = self._behind_comma(place, "}")
        return members, place + 1

    def _list(self, place: int, depth: int) -> tuple[list[Any], int]:
        closer, entries = "]" if self._text[place - 1] == "[" else ")", list[Any]()
        while self._at(place := self._next(place)) != closer:
            entry, place = self._value(place, depth)
            entries.append(entry)
            place = self._behind_comma(place, closer)
        return entries, place + 1

    def _behind_comma(self, place: int, closer: str) -> int:
        """Behind one comma, which may be missing only where something else begins."""
        begin, place = place, self._next(place)
        if self._at(place) == ",":
            return place + 1
        if self._at(place) == closer or place > begin or self._text[begin - 1] in "}]":
            return place
        raise Unreadable

    def _key(self, place: int) -> tuple[str, int]:
        if self._at(place) in _CLOSERS:
            return self._string(place)
        if word := _BARE_WORD.match(self._text, place):
            return word[0], word.end()
        raise Unreadable

    def _string(self, place: int) -> tuple[str, int]:
        text, quote, parts = self._text, self._text[place], list[str]()
        place += 1
        while place < len(text):
            self._steps += 1
            if plain := _PLAIN[quote].match(text, place):
                parts.append(plain[0])
                place = plain.end()
            elif text[place] == "\\":
                part, place = self._escape(place + 1)
                parts.append(part)
            elif self._ends_here(place + 1):
                return "".join(parts), place + 1
            else:
                parts.append(text[place])
                place += 1
            if self._steps > MOST_STEPS:
                break
        raise Unreadable

    def _escape(self, place: int) -> tuple[str, int]:
        """The character behind a backslash; an unknown escape stands for itself."""
        letter = self._at(place)
        digits = {"u": 4, "x": 2}.get(letter, 0)
        code = self._text[place + 1 : place + 1 + digits]
        if digits and re.fullmatch(r"[0-9a-fA-F]+", code) and len(code) == digits:
            high, end = int(code, 16), place + 1 + digits
            low = _LOW_SURROGATE.match(self._text, end)
            if 0xD800 <= high < 0xDC00 and low:
                return chr(0x10000 + ((high - 0xD800) << 10) + int(low[1], 16) - 0xDC00), low.end()
            return chr(high), end
        return _ESCAPES.get(letter, letter), place + 1

    def _scalar(self, place: int) -> tuple[Any, int]:
        if number := _LOOSE_NUMBER.match(self._text, place):
            digits = number[0]
            return (float(digits) if re.search(r"[.eE]", digits) else int(digits)), number.end()
        word = _BARE_WORD.match(self._text, place)
        if word is None or not self._ends_here(word.end()):
            raise Unreadable
        return _CONSTANTS.get(word[0].lower(), word[0]), word.end()

    def _ends_here(self, place: int) -> bool:
        """Whether a value may end here: a quotation mark before something else belongs to its string."""
        following = self._next(place)
        if self._at(following) in ("", ",", ":", "}", "]", ")"):
            return True
        is_new_line = "\n" in self._text[place:following]
        return (is_new_line and self._at(following) in _QUOTES) or bool(_NEXT_KEY.match(self._text, following))

    def _next(self, place: int) -> int:
        """The place of the next character that is neither blank nor part of a comment."""
        blank = _FILLER.match(self._text, place)
        return blank.end() if blank else place

    def _at(self, place: int) -> str:
        return self._text[place : place + 1]
