from collections.abc import Iterator

import numpy as np
import pytest
from sqlalchemy import Connection, create_engine

from reflexio.storage.fulltext import index as module
from reflexio.storage.fulltext.fts5 import Fts5Tables
from reflexio.storage.fulltext.index import FulltextIndex, FulltextRow
from reflexio.storage.fulltext.tables import Ids
from reflexio.storage.fulltext.terms import TermScope

INDEX = FulltextIndex("playbook")
ADA = TermScope.of("acme", "playbook", "ada")
BOB = TermScope.of("acme", "playbook", "bob")
ACME = TermScope.of("acme", "playbook")
OTHER = TermScope.of("other", "playbook", "ada")


@pytest.fixture
def tx() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        INDEX.create(connection)
        yield connection
    engine.dispose()


def put(tx: Connection, *texts: str, scope: TermScope = ADA, first: int = 1) -> None:
    INDEX.put(tx, [FulltextRow(row, scope, text) for row, text in enumerate(texts, first)])


def found(tx: Connection, query: str, scope: TermScope = ADA, limit: int = 10) -> list[int]:
    return list(INDEX.match(tx, scope, query, limit).ids)


def test_the_row_with_the_rarer_word_comes_first(tx: Connection) -> None:
    put(tx, "refund the order", "ship the order", "pack the order", "cancel the order")
    assert found(tx, "order refund")[0] == 1


def test_a_user_finds_only_their_own_and_an_org_everyones(tx: Connection) -> None:
    put(tx, "refund policy", scope=ADA)
    put(tx, "refund form", scope=BOB, first=2)
    put(tx, "refund at another org", scope=OTHER, first=3)
    assert found(tx, "refund", ADA) == [1]
    assert sorted(found(tx, "refund", ACME)) == [1, 2]


def test_another_orgs_rows_change_no_score(tx: Connection) -> None:
    put(tx, "refund policy", "shipping policy")
    before = INDEX.match(tx, ACME, "refund policy", 10)
    put(tx, *["refund " * 5] * 50, scope=OTHER, first=100)
    after = INDEX.match(tx, ACME, "refund policy", 10)
    assert after.scores == before.scores
    assert after.coverage == before.coverage


def test_a_replaced_row_is_found_by_its_new_words_only(tx: Connection) -> None:
    put(tx, "apples", "pears")
    put(tx, "plums")
    assert found(tx, "apples") == []
    assert found(tx, "plums") == [1]


def test_a_dropped_row_is_gone_and_leaves_the_statistics(tx: Connection) -> None:
    put(tx, "apples", "pears")
    INDEX.drop(tx, [1, 99])
    assert found(tx, "apples") == []
    put(tx, "cherries", first=3)
    alone = INDEX.match(tx, ADA, "pears", 10).scores
    INDEX.put(tx, [FulltextRow(7, OTHER, "pears"), FulltextRow(8, OTHER, "cherries")])
    assert INDEX.match(tx, OTHER, "pears", 10).scores == alone


def test_the_full_text_table_stays_sound_through_changes(tx: Connection) -> None:
    put(tx, *[f"number {n} of many" for n in range(50)])
    put(tx, *[f"changed {n}" for n in range(20)])
    INDEX.drop(tx, range(10, 30))
    tx.exec_driver_sql("INSERT INTO playbook_words_fts (playbook_words_fts) VALUES ('integrity-check')")
    listed = tx.exec_driver_sql("SELECT count(*) FROM playbook_words_fts").scalar()
    assert listed == tx.exec_driver_sql("SELECT count(*) FROM playbook_words").scalar() == 30


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "'",
        "a AND",
        "NEAR(",
        "*",
        "scope : x",
        "tokens:",
        "-",
        "^",
        "{",
        "NOT",
        "\x00",
        "\ud800",
        "((",
        "😀",
    ],
)
def test_nothing_in_a_query_is_taken_for_an_operator(tx: Connection, query: str) -> None:
    put(tx, "plain row")
    assert found(tx, f"{query} plain") == [1]
    INDEX.match(tx, ADA, query, 10)


def test_a_text_cannot_pose_as_a_scope(tx: Connection) -> None:
    put(tx, f"refund {ACME.everyone} {ADA.user}", scope=OTHER)
    assert found(tx, "refund", ACME) == found(tx, "refund", ADA) == []


@pytest.mark.parametrize("query", ["", "   ", "unheard"])
def test_a_query_without_matches_finds_nothing(tx: Connection, query: str) -> None:
    put(tx, "a row")
    assert found(tx, query) == []


def test_a_megabyte_of_query_is_answered(tx: Connection) -> None:
    put(tx, "needle row")
    assert found(tx, "needle " + "straw " * 170_000) == [1]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我喜欢喝绿茶", "绿茶"),
        ("東京へ行きます", "東京"),
        ("ราคาเท่าไร", "ราคา"),
        ("Привет, мир", "МИР"),
        ("é", "E"),
    ],
)
def test_any_script_is_found(tx: Connection, text: str, query: str) -> None:
    put(tx, "something else", text)
    assert found(tx, query) == [2]


def test_filters_never_shorten_the_answer(tx: Connection) -> None:
    put(tx, *["same words here"] * 200)
    passing = set(range(150, 161))
    kept = INDEX.match(tx, ADA, "same words", 10, passing=passing.intersection)
    assert kept.ids == tuple(range(150, 160))


def test_coverage_tells_how_much_of_the_query_a_row_holds(tx: Connection) -> None:
    put(tx, "refund policy", "shipping policy", "nothing of it")
    found = INDEX.match(tx, ADA, "refund policy", 10)
    assert found.coverage[0] == pytest.approx(1)
    assert 0 < found.coverage[1] < 0.5


def test_equal_rows_come_by_age(tx: Connection) -> None:
    put(tx, "twin", "twin", "twin")
    assert found(tx, "twin") == [1, 2, 3]


@pytest.mark.parametrize("limit", [0, -1])
def test_asking_for_none_gives_none(tx: Connection, limit: int) -> None:
    put(tx, "a row")
    assert found(tx, "row", limit=limit) == []


def test_looking_up_among_many_agrees_with_reading_all(tx: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["refund", "ship", "pack", "cancel", "label", "invoice", "credit"]
    texts = [f"{names[n % 7]} order {names[n % 5]} number{n % 13} of{n % 3}" for n in range(300)]
    put(tx, *texts[:150], scope=ADA)
    put(tx, *texts[150:], scope=BOB, first=151)
    queries = ["refund number3", "cancel label order", "number7 of1", "invoice"]
    for scope in (ADA, ACME):
        read = [INDEX.match(tx, scope, query, 5) for query in queries]
        with monkeypatch.context() as among_many:
            among_many.setattr(module, "SCANNED_ROWS", 0)
            looked_up = [INDEX.match(tx, scope, query, 5) for query in queries]
        assert [matched.ids for matched in looked_up] == [matched.ids for matched in read]


def test_a_word_of_one_import_is_not_taken_for_a_common_one(tx: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCANNED_ROWS", 0)
    put(tx, *["plain order"] * 500, *["migrated order"] * 150, *["plain order again"] * 1_500)
    put(tx, *["migrated order"] * 150, first=10_000)
    best = INDEX.match(tx, ACME, "migrated order", 10)
    assert min(best.coverage) == pytest.approx(1)


def test_a_row_with_all_common_words_of_a_query_is_found_among_many_with_one(
    tx: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SCANNED_ROWS", 0)
    rows = [f"{'customer' if n % 2 else 'order'} apple {n % 97}" for n in range(3_000)]
    rows[700] = rows[2_900] = "customer order combined"
    put(tx, *rows)
    assert found(tx, "customer order", ACME)[:2] == [701, 2_901]


def test_common_words_are_not_followed_when_enough_rows_hold_more(
    tx: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SCANNED_ROWS", 0)
    monkeypatch.setattr(module, "SHORT_LIST", 100)
    followed: list[str] = []
    all_with = Fts5Tables.all_with

    def record(tables: Fts5Tables, term: str, scope: TermScope) -> Ids:
        followed.append(term)
        return all_with(tables, term, scope)

    monkeypatch.setattr(Fts5Tables, "all_with", record)
    put(tx, *["common order"] * 500, *["rare refund order"] * 20)
    assert found(tx, "refund order", ACME, 10) == list(range(501, 511))
    assert followed == ["refund"]


def test_when_words_name_too_many_rows_the_newest_are_read(tx: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCANNED_ROWS", 0)
    monkeypatch.setattr(module, "CANDIDATE_ROWS", 150)
    put(tx, *["plain order"] * 500)
    assert min(found(tx, "order", ACME, 10)) > 350


def test_a_filter_is_asked_about_more_rows_until_there_are_enough(
    tx: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SCANNED_ROWS", 0)
    monkeypatch.setattr(module, "RESCORED_ROWS", 20)
    put(tx, *["plain order"] * 500)
    passing = {3, 77, 200, 321}
    best = INDEX.match(tx, ACME, "order", 10, passing.intersection)
    assert best.ids == tuple(sorted(passing))


def test_the_spread_is_that_of_all_rows_searched(tx: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tx, *[f"order number{n} {'refund' if n % 4 else 'return'}" for n in range(200)])
    read = INDEX.match(tx, ACME, "refund number7", 10)
    everything = INDEX.match(tx, ACME, "refund number7", 200)
    padded = [*everything.scores, *[0.0] * (200 - len(everything.ids))]
    assert read.spread == pytest.approx(float(np.std(padded)))
    monkeypatch.setattr(module, "SCANNED_ROWS", 0)
    assert INDEX.match(tx, ACME, "refund number7", 10).spread == pytest.approx(read.spread, rel=0.5)
