"""The words of a text that carry meaning, the words that negate, and patterns of words.

Which of them count is decided here once; full-text search has its own list, because its index is stored.
"""

import re
from functools import lru_cache

from reflexio.language.stemmer import stem

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_FIGURE = re.compile(r"\d[\d.,:]*\d|\d")


def word_set(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


NEGATIONS = word_set("""
    not no never nor neither none nobody cannot without nicht kein keine keinen keinem keiner niemals nie ohne nunca
    jamás sin jamais pas ne sans non mai senza não sem
""")
REFUSALS = word_set("""
    avoid avoids avoiding refrain refraining refuse refuses stop stops stopped cease quit skip skipping omit
    omitting exclude abstain forbid forbidden prohibit prohibited disallow prevent prevents preventing eliminate
    minimise minimize dislike dislikes hate hates loathe loathes detest detests despise despises aversion allergic
    intolerant
""")
"""Words that refuse what follows them, and would carry meaning otherwise."""
PREPOSITIONS = word_set("""
    for to with in on at by from about into onto via through per during within under
""")
FUNCTION_WORDS = word_set("""
    a an the and or but if then than as of so it its it's that's there's is are was were be been being am i'm you're
    they're do
    does did doing have has had having will would can could should shall may might must i you he she we they me him
    her us them my your his their our yourself this that these those there here what which who whom when where why
    how while because since although though very just also too please always ever every each any some all really
    simply only own same such instead rather often usually generally typically mostly exactly currently tend tends
    make makes making made use uses used using need needs want wants let get got say says said one ones thing things
    anything something user users user's agent customer customers customer's client clients
""")
"""Grammar, adverbs of degree, verbs that say no more than "do it", and the participants of a conversation."""
_IN_EVERY_REQUEST = word_set("ask asks asked answer more most up out over")
_NOT_STEMMED = word_set("informal political politics publication publications")
"""Porter gives them the stems of "inform", "polite" and "public"."""
_EMPTY = FUNCTION_WORDS | PREPOSITIONS | _IN_EVERY_REQUEST


def words(text: str) -> list[str]:
    return _WORD.findall(text.lower().replace("’", "'"))


def root(word: str) -> str:
    """The stem of a word, of an adverb that of its adjective: Porter keeps the ending of "briefly"."""
    base = word[:-2] if len(word) > 6 and word.endswith("ly") else word
    return base if base in _NOT_STEMMED else stem(base)


@lru_cache(maxsize=4096)
def content_words(text: str) -> frozenset[str]:
    """The stems of the words that carry meaning."""
    return frozenset(root(word) for word in words(text) if not (word in _EMPTY or is_negation(word)))


def figures(text: str) -> frozenset[str]:
    """The numbers of a text: two texts that differ in them say different things."""
    return frozenset(_FIGURE.findall(text))


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """How much of the smaller set is in the other one."""
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0


def is_negation(word: str) -> bool:
    return word in NEGATIONS or word.endswith("n't")


def is_negative(text: list[str]) -> bool:
    """Whether words say no. Two negations cancel each other."""
    return sum(is_negation(word) or word in REFUSALS for word in text) % 2 == 1


def phrase(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """A regular expression that ignores case, in which a space is any space, an apostrophe is either apostrophe, and
    parentheses only group.

    >>> bool(phrase("I don't (really )?like").match("i  don’t really  like"))
    True
    """
    grouped = re.sub(r"(?<!\\)\((?!\?)", "(?:", pattern)
    return re.compile(grouped.replace("'", "['’]").replace(" ", r"\s+"), re.I | flags)
