import sqlite3

import pytest

from reflexio.language.stemmer import stem

PARAGRAPH = """
    caresses ponies ties cats feed agreed plastered bled motoring sing conflated troubled sized hopping tanned
    falling hissing fizzed failing filing happy sky relational conditional rational digitizer conformably
    radically differently vilely analogously vietnamization predication operator feudalism decisiveness
    hopefulness callousness formality sensitivity sensibility triplicate formative formalize electricity
    electrical hopeful goodness revival allowance inference airliner adjustable defensible irritant
    replacement adjustment dependent adoption communism activate angularity homologous effective bowdlerize
    probate rate cease controlling rolling refunds refunded refunding playlists preferences optimisation
"""


def stems_of_fts5(words: list[str]) -> dict[str, str]:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(word, tokenize='porter unicode61')")
    db.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, instance)")
    db.executemany("INSERT INTO t (rowid, word) VALUES (?, ?)", enumerate(words))
    found = {words[row]: term for term, row in db.execute("SELECT term, doc FROM v")}
    db.close()
    return found


def test_stems_are_those_of_fts5() -> None:
    words = PARAGRAPH.split()
    assert {word: stem(word) for word in words} == stems_of_fts5(words)


@pytest.mark.parametrize("word", ["", "a", "is", "x1", "café", "退款", "2024"])
def test_what_is_no_english_word_is_left_alone(word: str) -> None:
    assert stem(word) == word
