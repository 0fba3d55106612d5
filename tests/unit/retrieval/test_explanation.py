"""Every learning that competed for a context is explained once, and the reasons agree with the context."""

from reflexio.models.learning import Kind, Learning, Scope
from reflexio.retrieval import context
from reflexio.retrieval.calibration import UNCALIBRATED
from reflexio.retrieval.context import RankedLearning
from reflexio.retrieval.explanation import ContextReason, explain
from reflexio.retrieval.fusion import Hit
from reflexio.retrieval.service import ComposedContext

QUERY = "My parcel is marked delivered but it is not here."


def learning(
    number: int, content: str, kind: Kind = Kind.USER_PLAYBOOK, scope: Scope = Scope.WHEN_RELEVANT
) -> Learning:
    return Learning(kind, content, id=number, user_id="ann", scope=scope)


def ranked(row: Learning, *, cosine: float, words: float = 0.0, case: float | None = None) -> RankedLearning:
    return RankedLearning(row, Hit(row.id, cosine + words, 1 if words else None, words, words, cosine, cosine), case)


def reasons(*entries: RankedLearning, always: tuple[Learning, ...] = (), room: int = 1000) -> dict[int, ContextReason]:
    chosen = context.compose(entries, room, query=QUERY, always=always, always_tokens=room // 3)
    found = explain(ComposedContext(chosen, always, entries, UNCALIBRATED, False), QUERY)
    assert [reason.learning.id for reason in found if reason.is_included] == [row.id for row in chosen.learnings]
    assert len({reason.learning.id for reason in found}) == len(found)
    return {reason.learning.id: reason for reason in found}


NEIGHBOURS = learning(1, "Ask the neighbours when a parcel is missing.")
LAMPS = learning(2, "Say which bulb a lamp needs.")
DEAF = learning(3, "The user is deaf.", Kind.PROFILE, Scope.ALWAYS)


def test_what_bears_on_the_message_says_why_and_the_rest_why_not() -> None:
    found = reasons(ranked(NEIGHBOURS, cosine=0.8, words=3), ranked(LAMPS, cosine=0.05), always=(DEAF,))
    assert found[1].is_included
    assert found[1].shared_words == ("parcel",)
    assert "words" in found[1].why
    assert found[3].is_included
    assert found[3].why == "It holds for this user, whatever is asked."
    assert not found[2].is_included
    assert found[2].why == "It bears too little on the message."
    assert found[2].relevance is not None
    assert found[2].least is not None
    assert found[2].relevance < found[2].least


def test_a_turn_that_taught_it_may_be_nearer_than_the_learning() -> None:
    assert "when this was taught" in reasons(ranked(NEIGHBOURS, cosine=0.2, case=0.9))[1].why


def test_repeats_and_what_has_no_room_are_told_apart() -> None:
    repeat = learning(4, "Ask the neighbours, when a parcel is missing!")
    found = reasons(ranked(NEIGHBOURS, cosine=0.8), ranked(repeat, cosine=0.8))
    assert sorted(reason.why for reason in found.values())[0] == "Another line says the same."
    long = learning(5, "Ask the neighbours about the parcel. " * 40)
    assert reasons(ranked(long, cosine=0.9, words=4), room=60)[5].why == "There is no room left for it."
    standing = learning(6, "The user lives on the fifth floor. " * 40, Kind.PROFILE, Scope.ALWAYS)
    assert "no room left in the layer" in reasons(always=(standing,), room=90)[6].why


def test_what_holds_for_everybody_says_so() -> None:
    rule = learning(7, "Never use emojis.", Kind.AGENT_PLAYBOOK, Scope.ALWAYS)
    assert reasons(always=(rule,))[7].why == "It holds for everybody, whatever is asked."
