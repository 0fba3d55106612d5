"""What the text of a learning may hold, and how long it may be.

A reader of a learning sees what a model sees: characters that show nothing are left out of what is stored and of every
prompt. They carry hidden orders (tags, variation selectors), turn text around (bidi), or forge lines (controls).
"""

import re
import unicodedata
from typing import Any

LONGEST_CONTENT, LONGEST_TRIGGER, LONGEST_RATIONALE = 2_000, 500, 1_000
LONGEST_QUOTE, MOST_QUOTES = 1_000, 8
LONGEST_METADATA = 8_000
"""Characters of a field of a learned row; of metadata, as JSON. A row added by a caller has the limits of the wire."""

_HIDDEN = re.compile(
    "["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls, without tab and line feeds
    "\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb"
    "\u3164\uffa0"  # letters that show nothing
    "\ufe00-\ufe0f"  # variation selectors; more of them are in the block of tags
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "]+"
)
_LINE_END = re.compile(r"[\r\n]+")
_LINE_ENDS, _BLANKS = frozenset("\x85\u2028\u2029"), frozenset("\x0b\x0c\x1c\x1d\x1e\x1f")
_JOINERS = "\u200c\u200d"
_JOINING = re.compile(
    "[\u0600-\u0dff\u0f00-\u109f\u1780-\u18af\ua840-\uabff\ufb50-\ufdff\ufe70-\ufefe\U00010a00-\U00011fff]"
)
"""Scripts in which a joiner decides how letters are written: Arabic, Indic, Mongolian and their neighbours."""
_MONGOLIAN = re.compile("[\u1820-\u18af]")
_IDEOGRAPH = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_FLAGS = frozenset(
    "".join(chr(0xE0000 + ord(letter)) for letter in name) + "\U000e007f" for name in ("gbeng", "gbsct", "gbwls")
)
_SENTENCE_END = re.compile(r"[.!?…](?=\s|$)|[。！？।؟](?!$)|\n")


def without_hidden(text: str) -> str:
    """The text without control, bidi, zero-width, tag and other format characters.

    Joiners stay between letters of scripts that need them and inside emoji, and a variation selector stays behind
    the one character that it changes.

    >>> without_hidden("Be\\u200b brief.\\u202e \\U000e0041")
    'Be brief. '
    """
    return _HIDDEN.sub(_visible_part, text)


def escape_hidden(text: str) -> str:
    """The text in one line: line ends and hidden characters are shown as escapes, for logs.

    >>> escape_hidden("ann\\nERROR \\x1b[31m")
    'ann\\\\nERROR \\\\x1b[31m'
    """
    return _LINE_END.sub(_escape, _HIDDEN.sub(_escape, text))


def _escape(characters: re.Match[str]) -> str:
    return characters.group().encode("unicode_escape").decode()


def without_hidden_in(value: Any) -> Any:
    """The same for all texts in JSON-like data."""
    match value:
        case str():
            return without_hidden(value)
        case dict():
            return {without_hidden(str(key)): without_hidden_in(entry) for key, entry in value.items()}
        case list() | tuple():
            return [without_hidden_in(entry) for entry in value]
        case _:
            return value


def _visible_part(hidden: re.Match[str]) -> str:
    run, text = hidden.group(), hidden.string
    before, after = text[hidden.start() - 1 : hidden.start()], text[hidden.end() : hidden.end() + 1]
    if not _LINE_ENDS.isdisjoint(run):
        return "\n"
    if not _BLANKS.isdisjoint(run):
        return " "
    if before == "\U0001f3f4" and run in _FLAGS:
        return run
    selector = run[0] if _is_selected(run[0], before) else ""
    joiner = next((character for character in run if character in _JOINERS), "")
    return selector + (joiner if joiner and _is_joined(joiner, before, after, bool(selector)) else "")


def _is_selected(selector: str, before: str) -> bool:
    """Whether a variation selector stands behind a character that has variants."""
    if "\ufe00" <= selector <= "\ufe0f":
        return bool(before) and not (before.isspace() or (before.isascii() and before.isalpha()))
    if "\U000e0100" <= selector <= "\U000e01ef":
        return bool(_IDEOGRAPH.match(before))
    return "\u180b" <= selector <= "\u180f" and bool(_MONGOLIAN.match(before))


def _is_joined(joiner: str, before: str, after: str, is_selected: bool) -> bool:
    if _JOINING.match(before):
        return True
    is_emoji = is_selected or unicodedata.category(before or " ") in ("So", "Sk")
    return joiner == "\u200d" and is_emoji and unicodedata.category(after or " ") in ("So", "Sm")


def cut_at_sentence(text: str, most: int) -> str:
    """The sentences that fit; empty when not even the first one does.

    >>> cut_at_sentence("Check twice. Then send it to everybody.", 20)
    'Check twice.'
    """
    if len(text) <= most:
        return text
    ends = [end.end() for end in _SENTENCE_END.finditer(text, 0, most + 1) if end.end() <= most]
    return text[: ends[-1]].rstrip() if ends else ""
