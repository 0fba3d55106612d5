"""How a quote is compared with a text, and whether it says enough to stand on.

Case, hidden characters, emphasis and the kinds of quotation marks, dashes and blanks do not count; whole words do.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from reflexio.language.words import is_without_meaning, says_nothing_alone
from reflexio.models.wording import without_hidden

FEWEST_LETTERS, FEWEST_WORDS = 6, 2
"""A passage inside a sentence: "my car" says something; "e" and "of the" stand in any conversation."""
FEWEST_LETTERS_OF_ANSWER = 2
"""A whole clause or answer may be shorter: "Vegan.", "Bo", "42"."""
FEWEST_LETTERS_OF_WORD = 4
"""One word out of a sentence counts if the learning repeats it: "vegetarian" of "I'm a vegetarian"."""
MOST_PLACES = 1_000
"""Places that are tried: a quote that stands inside words so often is not looked for any further."""

_DENSE_RANGES = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U000323af"
_DENSE = re.compile(f"[{_DENSE_RANGES}]")
"""Characters that say as much as two letters: Han, kana, hangul."""
_UNSPACED = re.compile(f"[{_DENSE_RANGES}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
"""Scripts without blanks between words, or (Korean) with endings fixed to them: any letter may begin a word."""
_SIMPLE = str.maketrans(
    {**dict.fromkeys("“”„‟«»‹›〝〞＂「」『』", '"'), **dict.fromkeys("‘’‚‛ʼ′`´＇", "'"), "*": "", "\r": "\n"}
)
_HYPHEN = re.compile(r"[‐‑−﹣－]|(?<=\d)[‒–](?=\d)")
_BLANKS = re.compile(r"[^\S\n]+")
_LINE_END = re.compile(r" ?\n[\n ]*")
_DASH = re.compile(r" ?[‒–—―]+ ?| --? ")
_ELLIPSIS = re.compile(r"[\[(]?(?:\.{3,}|\. \. \.)[\])]?")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_EDGES = " \"'.,;:!?()[]。，！？；：、"
_ELIDED = re.compile(r"(?<!\w)(?!n')\w{1,2}'$")


@lru_cache(maxsize=256)
def comparable(text: str) -> str:
    """A text in the form in which texts are compared; its line ends stay."""
    plain = unicodedata.normalize("NFKC", without_hidden(text).translate(_SIMPLE)).casefold()
    # Blanks first: the other patterns begin with one, and would look along every run of them again and again.
    lines = _LINE_END.sub("\n", _BLANKS.sub(" ", plain))
    return _DASH.sub(" - ", _HYPHEN.sub("-", lines)).strip()


def pieces_of(quote: str) -> list[str]:
    """The parts of a quote between ellipses."""
    flat = comparable(quote).replace("\n", " ")
    return [piece for part in _ELLIPSIS.split(flat) if (piece := part.strip(_EDGES))]


def find_pieces(pieces: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Where the pieces stand, in this order and as whole words; empty unless all of them do."""
    flat, start, spans = text.replace("\n", " "), 0, []
    for piece in pieces:
        span = _find(piece, flat, start)
        if span is None:
            return []
        spans.append(span)
        start = span[1]
    return spans


def is_sound(pieces: Sequence[str], *, is_whole: bool, learning: str) -> bool:
    """Whether words say enough to rest a learning on. `is_whole`: they are a whole clause or answer."""
    quote = " ".join(pieces)
    words = _words(quote)
    letters = sum(2 if _DENSE.match(letter) else 1 for letter in quote if _in_word(letter))
    if is_whole and letters >= FEWEST_LETTERS_OF_ANSWER and not all(map(says_nothing_alone, words)):
        return True
    telling = [word for word in words if not is_without_meaning(word)]
    if not telling:
        return False
    if letters >= FEWEST_LETTERS and (len(words) >= FEWEST_WORDS or _UNSPACED.search(quote)):
        return True
    return letters >= FEWEST_LETTERS_OF_WORD and _repeats(telling[0], comparable(learning))


def is_clause(text: str, start: int, end: int) -> bool:
    """Whether a clause or a line begins and ends here."""
    before, after = text[:start].rstrip(" \"'([{_"), text[end:].lstrip(" \"')]}_")
    return all(not edge or edge == "\n" or unicodedata.category(edge) == "Po" for edge in (before[-1:], after[:1]))


def _words(text: str) -> list[str]:
    """The words, with the vowel signs of Indic scripts, which are no letters for a regular expression."""
    lettered = "".join("a" if unicodedata.category(character)[0] == "M" else character for character in text)
    return [text[word.start() : word.end()] for word in _WORD.finditer(lettered)]


def _repeats(word: str, learning: str) -> bool:
    """Whether the learning has a word that begins alike: "vegetarian" and "Vegetarierin"."""
    if _UNSPACED.search(word):
        return word in learning
    beginning = word[: max(FEWEST_LETTERS_OF_WORD, len(word) * 2 // 3)]
    return any(other.startswith(beginning) for other in _words(learning))


def _find(piece: str, text: str, start: int) -> tuple[int, int] | None:
    for _ in range(MOST_PLACES):
        start = text.find(piece, start)
        if start < 0:
            return None
        end = start + len(piece)
        if not (_splits_word(text, start) or _splits_word(text, end)):
            return start, end
        start += 1
    return None


def _splits_word(text: str, place: int) -> bool:
    """Whether a word goes on over this place. Hyphens, apostrophes and decimal points may stand inside words."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if unicodedata.category(after).startswith("M"):
        return True
    if _in_word(before) and _in_word(after):
        return not (_UNSPACED.match(before) or _UNSPACED.match(after))
    if _in_word(before):
        return _links(after, before, text[place + 1 : place + 2])
    # What stands before an apostrophe may be an article: "l'eau"; but "n'" negates.
    is_elided = before == "'" and _ELIDED.search(text, max(0, place - 4), place)
    return not is_elided and _links(before, text[place - 2 : place - 1] if place > 1 else "", after)


def _links(mark: str, before: str, after: str) -> bool:
    if mark in ".,":
        return before.isdigit() and after.isdigit()
    return mark in "'-" and _in_word(before) and _in_word(after)


def _in_word(character: str) -> bool:
    return bool(character) and (character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M")
