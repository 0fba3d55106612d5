"""Marks quoted words inside the text that they were taken from."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from markupsafe import Markup

from reflexio.language.stemmer import stem

MOST_WORDS = 200
_WORD = re.compile(r"[^\W_]+")
_ELLIPSIS = re.compile(r"\[?\(?(?:…|\.{3,})\)?\]?")
_BETWEEN = r"[\W_]{1,12}"
_END = r"[.!?。！？…\"'”’)]*"


@dataclass(frozen=True)
class LinkedQuote:
    """Words that a learning quotes, the page of the learning, and what it says."""

    words: str
    path: str
    title: str


def mark_quotes(text: str, quotes: Sequence[LinkedQuote]) -> Markup:
    """The text with each quote in a `<mark>` that links to its learning. Where quotes overlap, the first one wins.

    >>> str(mark_quotes("Hm. In GERMAN,\\nplease!", [LinkedQuote("in german, please", "/1", "German")]))
    'Hm. <a class="quote" href="/1" title="German"><mark>In GERMAN,\\nplease!</mark></a>'
    """
    places = ((start, end, quote) for quote in quotes for start, end in _places(text, quote.words))
    spans = sorted(places, key=lambda place: place[:2])
    parts, at = list[Markup](), 0
    for start, end, quote in spans:
        if start < at:
            continue
        link = Markup('<a class="quote" href="{}" title="{}"><mark>{}</mark></a>')
        parts += [Markup.escape(text[at:start]), link.format(quote.path, quote.title, text[start:end])]
        at = end
    return Markup("").join([*parts, Markup.escape(text[at:])])


def mark_words(text: str, query: str) -> Markup:
    """The text with the words of a query in `<mark>`, in whatever form they stand there.

    >>> str(mark_words("Refunded yesterday", "refunds"))
    '<mark>Refunded</mark> yesterday'
    """
    parts, at = list[Markup](), 0
    for start, end in word_places(text, query):
        parts += [Markup.escape(text[at:start]), Markup("<mark>{}</mark>").format(text[start:end])]
        at = end
    return Markup("").join([*parts, Markup.escape(text[at:])])


def word_places(text: str, query: str) -> list[tuple[int, int]]:
    """Where words stand that have the stem of a word of the query."""
    stems = {stem(word.lower()) for word in _WORD.findall(query)}
    return [word.span() for word in _WORD.finditer(text) if stem(word[0].lower()) in stems]


def _places(text: str, quote: str) -> Iterator[tuple[int, int]]:
    """Where the parts of a quote stand. Its lines may come from several turns, and ellipses leave words out."""
    for line in quote.splitlines():
        for piece in _ELLIPSIS.split(line):
            pattern = _pattern(piece)
            if pattern and (found := pattern.search(text)):
                yield found.span()


@lru_cache(maxsize=2048)
def _pattern(piece: str) -> re.Pattern[str] | None:
    """Finds the words of a piece in their order, whatever signs stand between them."""
    words = _WORD.findall(piece)[:MOST_WORDS]
    if not words:
        return None
    return re.compile(rf"(?<![^\W_]){_BETWEEN.join(map(re.escape, words))}(?![^\W_]){_END}", re.IGNORECASE)
