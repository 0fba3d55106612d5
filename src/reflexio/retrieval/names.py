"""Whom a question asks about, taken out of what it asks.

A name draws a vector to all rows that hold it, whatever they say: of a conversation between Ada and Bob those in
which they greet each other. The words know the name better, so vectors are asked without it wherever words are
asked too. Only names of those who do or own something, as English puts it: a place or a thing is what is asked.
"""

import re

_NAME = "[A-ZÀ-ÖØ-Þ][a-zß-ÿ]+(?:[-'’]?[A-ZÀ-ÖØ-Þ][a-zß-ÿ]+)*"
_VERB = "(?i:do|does|did|is|are|was|were|has|have|had|will|would|can|could|shall|should|may|might|must)"
_DOING = re.compile(rf"\b({_VERB})\s+{_NAME}(?:\s+(?:and\s+)?{_NAME}){{0,3}}(?=[\s?.!,;:]|$)")
_OWNING = re.compile(rf"(?<=\w ){_NAME}['’]s\s+")
_LEAST = 3


def without_names(question: str) -> str:
    """The question about nobody in particular; as it is where too little would be left.

    >>> without_names("When did Ada and Bob go to Paris?")
    'When did go to Paris?'
    >>> without_names("What is Ada's favourite dish?")
    'What is favourite dish?'
    """
    words = question.split()
    if sum(word[0].isupper() for word in words) * 2 > len(words):
        return question
    about = _OWNING.sub("", _DOING.sub(r"\1", question))
    return about if len(about.split()) >= _LEAST else question
