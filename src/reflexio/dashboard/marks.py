"""Marks words inside a text, so that a reader sees why it was found, and commands, so that they can be copied."""

import re
from collections.abc import Collection

from markupsafe import Markup


def mark_words(text: str, words: Collection[str]) -> Markup:
    """The text with `<mark>` around each of these words, whatever its case.

    >>> str(mark_words("Ask <the> neighbours.", ["neighbours", "ask"]))
    '<mark>Ask</mark> &lt;the&gt; <mark>neighbours</mark>.'
    """
    if not words:
        return Markup.escape(text)
    pattern = re.compile("|".join(map(_pattern, sorted(words, key=lambda word: (-len(word), word)))), re.IGNORECASE)
    parts, end = list[Markup](), 0
    for match in pattern.finditer(text):
        parts += [Markup.escape(text[end : match.start()]), Markup("<mark>{}</mark>").format(match.group())]
        end = match.end()
    return Markup("").join([*parts, Markup.escape(text[end:])])


def _pattern(word: str) -> str:
    """Whole words only, but for Chinese and Japanese, which have no spaces."""
    escaped = re.escape(word).replace("'", "['’]")
    return rf"(?<!\w){escaped}(?!\w)" if word.isascii() or word[0] < "\u3040" else escaped


def mark_code(text: str) -> Markup:
    """The text with what stands between backticks as code.

    >>> str(mark_code("Run `reflexio review` <now>."))
    'Run <code>reflexio review</code> &lt;now&gt;.'
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick without a partner
        return Markup.escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else Markup.escape(part) for place, part in enumerate(parts)
    )
