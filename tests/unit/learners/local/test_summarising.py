"""One rule out of many by rules: the clearest wording, what others add, and nothing that only one of them knows."""

import dataclasses

import pytest

from reflexio.learners.local.summarising import LONGEST, summarise
from reflexio.models.extraction import ClusterToSummarise, PlaybookText
from reflexio.models.learning import Kind, Learning

TRIGGER = "A parcel is marked delivered but is not there"
ASK = "Ask the neighbours before you start a refund."


def gathered(*said: str | tuple[str, str], before: str = "", known: str = "") -> ClusterToSummarise:
    pairs = [(each, TRIGGER) if isinstance(each, str) else each for each in said]
    members = tuple(
        Learning(Kind.USER_PLAYBOOK, content, id=number, trigger=trigger, user_id=f"u{number}")
        for number, (content, trigger) in enumerate(pairs, start=1)
    )
    return ClusterToSummarise("x", members, len(members), _rule(before), tuple(filter(None, [_rule(known)])))


def _rule(content: str) -> Learning | None:
    return Learning(Kind.AGENT_PLAYBOOK, content, trigger=TRIGGER) if content else None


def made(*said: str | tuple[str, str], **more: str) -> PlaybookText:
    rule = summarise(gathered(*said, **more))
    assert rule is not None
    return rule


def test_the_clearest_wording_is_taken() -> None:
    found = made(ASK, "Always ask the neighbours first, then refund.")
    assert found == PlaybookText(ASK, TRIGGER, "Several users taught this.")


def test_what_one_user_taught_is_not_said_to_be_of_several() -> None:
    cluster = gathered(ASK, "Always ask the neighbours first, then refund.")
    of_one = tuple(dataclasses.replace(member, user_id="ann") for member in cluster.members)
    rule = summarise(dataclasses.replace(cluster, members=of_one))
    assert rule == PlaybookText(ASK, TRIGGER, "One user taught this.")


def test_what_others_add_is_added_once() -> None:
    photo = "Look at the photo that the driver took."
    found = made(ASK, f"Ask the neighbours before a refund. {photo}", f"Ask the neighbours first. {photo}")
    assert found.content == f"{ASK} {photo}"


def test_what_is_added_behind_the_same_beginning_is_found() -> None:
    found = made(ASK, "Ask the neighbours before you start a refund, and look at the photo that the driver took.")
    assert found.content == f"{ASK} Look at the photo that the driver took."


@pytest.mark.parametrize(
    "said",
    [
        "Check with the user before sending a pricier substitute.",
        "Print the label in colour.",
        "Tell people to come with an empty stomach.",
    ],
)
def test_another_matter_is_not_added(said: str) -> None:
    assert made("Ask whether the user would like it replaced first.", said).content == (
        "Ask whether the user would like it replaced first."
    )


@pytest.mark.parametrize(
    "private",
    [
        "Write to maria.lopez@example.org about it.",
        "Call them at +49 30 1234567 first.",
        "The order is #12345 as always.",
        "They live at 12 Main Street in Springfield.",
        "Remember that Bo wants it so.",
        "The label is at https://example.org/label/77 for printing.",
    ],
)
def test_what_only_one_member_knows_is_left_out(private: str) -> None:
    assert made(f"{ASK} {private}", f"{ASK} Be kind.", ASK).content == f"{ASK} Be kind."
    assert made((ASK, private), (ASK, TRIGGER)).trigger == TRIGGER


def test_a_detail_in_the_midst_of_the_only_sentence_is_cut_out() -> None:
    found = made("Call Bob at 555 1234 before a refund.", "Call Anna at 555 9876 before a refund.")
    assert found.content == "Call … at … before a refund."


def test_what_several_know_is_common() -> None:
    said = "Lamps can be returned for 100 days in Berlin."
    assert made(said, f"{said} Print the label.").content == f"{said} Print the label."


def test_what_stands_already_is_not_said_again() -> None:
    assert summarise(gathered(ASK, "Ask the neighbours first.", before=f"{ASK} Be kind.")) is None
    assert summarise(gathered(ASK, "Ask the neighbours first.", known=f"{ASK} Be kind.")) is None
    assert summarise(gathered(ASK, "Ask the neighbours first.", known="Send invoices as PDF.")) is not None


def test_what_stands_is_said_anew_when_it_knows_too_much() -> None:
    assert summarise(gathered(ASK, "Ask the neighbours first.", before=f"{ASK} The order is 12345.")) is not None


def test_a_rule_names_another_case_that_it_was_taught_for() -> None:
    found = made(
        ("Ask whether they want a refund or a replacement.", "Something is missing"),
        ("Ask whether they want a replacement or a refund.", "The user says: the yoghurt is not in the bag"),
    )
    assert found.trigger == "Something is missing, or the user says: the yoghurt is not in the bag"


def test_german_nouns_are_no_names() -> None:
    said = "Frage zuerst die Nachbarn, bevor du eine Erstattung beginnst."
    trigger = "Das Paket ist nicht da"
    assert made((said, trigger), ("Bitte zuerst bei den Nachbarn fragen.", trigger)).content == said


@pytest.mark.parametrize("said", ["先问邻居再退款。", "Спросите соседей о посылке.", "x", "?!", "اسأل الجيران أولا"])
def test_any_language_and_any_text_will_do(said: str) -> None:
    assert made((said, ""), (said, "")).content == said


def test_an_enormous_text_becomes_a_rule_that_fits_a_prompt() -> None:
    assert len(made("Ask. " * 20_000, "word" * 20_000).content) <= LONGEST
