"""The words by which advice is turned into its opposite, and those that carry no meaning in it."""

import re

_NEGATIONS = """
    not no never don't doesn't didn't isn't aren't won't can't cannot shouldn't mustn't needn't without
    avoid avoids avoiding refrain refraining refuse stop cease skip skipping omit omitting exclude abstain
    forbid forbidden prohibit prohibited disallow prevent prevents preventing eliminate minimise minimize
    neither nor none nobody dislike dislikes hate hates aversion
    nicht kein keine keinen keinem keiner niemals nie ohne nunca jamás sin jamais pas ne sans non mai senza não sem
"""
_EMPTY = """
    a an the and or of as it its is are was were be been being am do does did doing have has had having will would can
    could should shall may might must i you he she we they me him her us them my your his their our this that these
    those there here so very just also too please always ever every each any some all make makes making sure ensure
    try need needs needed want remember instead rather yourself simply only explicitly strongly really
    customer user customers users agent client clients customer's user's person people someone
    prefer prefers preferred preferring favour favor choose pick enjoy enjoys enjoying like likes love
    der die das den dem ein eine einen el la los las un une le les il lo
"""
_LIGHT = "use uses used using put keep keeping give gives giving provide write add maximise maximize"
_PREPOSITIONS = "for to with in on at by from about into onto via through per during within under"
_PAIRS = """
    more less, more fewer, many few, short long, short detailed, brief detailed, brief long, brief lengthy,
    concise detailed, concise long, concise verbose, brief verbose, short verbose, formal informal, formal casual,
    formally casually, include exclude, include omit, enable disable, allow deny, accept reject, accept decline,
    approve reject, approve deny, increase decrease, raise lower, high low, higher lower, add remove, show hide,
    start end, open close, early late, earlier later, fast slow, first last, public private, manually automatically,
    manual automatic, online offline, minimum maximum, simple complex,
    immediately later, plural singular, uppercase lowercase, ascending descending, strict lenient,
    encourage discourage, newest oldest, up down, left right, on off, keep delete, keep remove, keep discard,
    tell hide, polite rude, synchronous asynchronous, sync async, metric imperial, technical plain, serial parallel
"""
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ied", "edly", "ed", "ers", "er", "ly", "es", "s", "e")


def stem(word: str) -> str:
    """A form that survives inflection; never a word to show."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def _opposites() -> dict[str, frozenset[str]]:
    known: dict[str, set[str]] = {}
    for pair in re.split(r",\s*", _PAIRS.strip()):
        one, other = map(stem, pair.split())
        known.setdefault(one, set()).add(other)
        known.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in known.items()}


NEGATIONS = frozenset(_NEGATIONS.split())
EMPTY = frozenset(_EMPTY.split())
LIGHT = frozenset(_LIGHT.split())
"""Verbs that say no more than "do it": "use emojis" is about emojis."""
PREPOSITIONS = frozenset(_PREPOSITIONS.split())
OPPOSITE = _opposites()
"""By stem: the stems that say the opposite."""
