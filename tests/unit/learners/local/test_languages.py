"""What the local learner learns from other languages, and what it leaves alone."""

import pytest

from reflexio.learners.local.consolidation import decide
from reflexio.learners.local.learner import LocalLearner
from reflexio.models.config import Config
from reflexio.models.extraction import ExtractedLearning, Neighbour, Neighbourhood, Turn, Window
from reflexio.models.learning import Kind, Learning, Scope
from reflexio.providers.scripted import ScriptedEmbedder
from tests.bench.languages import NAMES, Talk, talks
from tests.unit.learners.local.talk import BOTH, assert_grounded, learned, talk

PLAIN = [one for language in NAMES for one in talks(language) if one.part != "trap"]
TRAPS = [one for language in NAMES for one in talks(language) if one.part == "trap"]
ISSUE = [
    ("Nein, bitte erst die Nachbarn fragen.", "Erst die Nachbarn fragen."),
    ("No, primero pregunta a los vecinos.", "Primero pregunta a los vecinos."),
    ("Non, demandez d'abord aux voisins.", "Demandez d'abord aux voisins."),
    ("Não, pergunte primeiro aos vizinhos.", "Pergunte primeiro aos vizinhos."),
    ("不对，请先问邻居。", "请先问邻居。"),
]


async def is_learned(one: Talk) -> bool:
    found = await learned(one.window.turns)
    assert_grounded(found, one.window.turns)
    return any(one.gist.casefold() in candidate.content.casefold() for candidate in found)


@pytest.mark.parametrize("language", NAMES)
async def test_four_of_five_plain_sentences_that_were_held_out_are_learned(language: str) -> None:
    results = [await is_learned(one) for one in PLAIN if one.language == language and one.is_held_out]
    assert sum(results) >= 0.8 * len(results)


@pytest.mark.parametrize("part", ["correction", "order", "fact", "changed"])
async def test_of_each_kind_of_statement_four_of_five_are_learned(part: str) -> None:
    results = [await is_learned(one) for one in PLAIN if one.part == part]
    assert sum(results) >= 0.8 * len(results)


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: f"{trap.language}: {trap.turns[-1][:40]}")
async def test_requests_questions_and_quotations_teach_nothing(trap: Talk) -> None:
    assert not await learned(trap.window.turns)


@pytest.mark.parametrize(("said", "rule"), ISSUE)
async def test_a_correction_keeps_the_users_words(said: str, rule: str) -> None:
    (candidate,) = await learned(talk("Order 1857.", "I have started a refund.", said))
    assert (candidate.kind, candidate.content, candidate.scope) == (Kind.USER_PLAYBOOK, rule, Scope.WHEN_RELEVANT)


@pytest.mark.parametrize(
    ("said", "kind", "content"),
    [
        ("Ich bin Vegetarier", Kind.PROFILE, "Der Nutzer sagt: „Ich bin Vegetarier.“"),
        ("Vivo en Sevilla", Kind.PROFILE, "El usuario dice: «Vivo en Sevilla.»"),
        ("J'ai deux enfants", Kind.PROFILE, "L'utilisateur dit : « J'ai deux enfants. »"),
        ("Moro em Recife.", Kind.PROFILE, "O usuário diz: “Moro em Recife.”"),
        ("我住在上海", Kind.PROFILE, "用户说：“我住在上海。”"),
        ("Bitte immer duzen", Kind.USER_PLAYBOOK, "Immer duzen."),
        ("Nunca uses emojis", Kind.USER_PLAYBOOK, "Nunca uses emojis."),
        ("Réponds toujours en français", Kind.USER_PLAYBOOK, "Réponds toujours en français."),
        ("Responda sempre em português", Kind.USER_PLAYBOOK, "Responda sempre em português."),
        ("用中文回答", Kind.USER_PLAYBOOK, "用中文回答。"),
        ("ANTWORTE MIR IMMER AUF DEUTSCH", Kind.USER_PLAYBOOK, "Der Nutzer sagt: „ANTWORTE MIR IMMER AUF DEUTSCH.“"),
    ],
)
async def test_facts_and_standing_orders_hold_always(said: str, kind: Kind, content: str) -> None:
    (candidate,) = await learned(talk(said))
    assert (candidate.kind, candidate.content) == (kind, content)
    assert (candidate.scope, candidate.trigger) == (Scope.ALWAYS, "")


@pytest.mark.parametrize(
    ("said", "gist"),
    [
        ("Das geht kürzer. Antworte mir bitte immer in höchstens zwei Sätzen.", "Sätzen"),
        ("Más corto. Respóndeme siempre en dos frases como mucho.", "dos frases"),
        ("Tu peux faire plus court. Réponds-moi toujours en deux phrases maximum.", "phrases"),
        ("Dá pra ser mais curto. Me responda sempre em no máximo duas frases.", "duas frases"),
        ("可以再短一点。以后都请用最多两句话回答我。", "两句话"),
    ],
)
async def test_how_to_answer_has_no_trigger_after_an_answer(said: str, gist: str) -> None:
    found = await learned(talk("Order 1857.", "Here is a long answer.", said))
    (order,) = (candidate for candidate in found if gist in candidate.content)
    assert (order.trigger, order.scope) == ("", Scope.ALWAYS)


async def test_two_facts_of_one_sentence_are_kept() -> None:
    found = await learned(talk("Ich fliege nicht, ich reise nur mit der Bahn."))
    assert len(found) == 2


async def test_a_preference_bears_on_its_own_subject_only() -> None:
    (candidate,) = await learned(talk("Ich hasse Koriander."))
    assert candidate.scope is Scope.WHEN_RELEVANT


async def test_numbers_of_one_case_do_not_stand_in_a_trigger() -> None:
    said = "Meine Bestellung 48213 ist nicht da.", "Ich habe sie erstattet.", "Nein, erst die Nachbarn fragen."
    (candidate,) = await learned(talk(*said))
    assert candidate.trigger == "Der Nutzer sagt: „Meine Bestellung … ist nicht da.“"


@pytest.mark.parametrize(
    ("language", "older", "newer"),
    [
        ("de", "Ich bin Vegetarier.", "Ich bin kein Vegetarier mehr."),
        ("de", "Ich wohne in Köln.", "Ich bin nach Bremen gezogen."),
        ("es", "Soy vegetariano.", "Ya no soy vegetariano."),
        ("es", "Tengo 30 años.", "Tengo 31 años."),
        ("fr", "Je suis végétarien.", "Je ne suis plus végétarien."),
        ("pt", "Moro em Lisboa.", "Mudei-me para Braga."),
        ("zh", "我吃素。", "我不再吃素了。"),
        ("zh", "我叫张伟。", "我叫李明。"),
    ],
)
async def test_the_newer_statement_replaces_the_older(language: str, older: str, newer: str) -> None:
    (stored,), (candidate,) = await learned(talk(older)), await learned(talk(newer))
    decision = decide(Neighbourhood(candidate, (neighbour(stored),)))
    assert (decision.action, decision.targets) == ("replace", (7,))
    assert decision.reason.startswith("It contradicts what was stored: ")


@pytest.mark.parametrize(
    ("older", "newer", "action"),
    [
        ("Ich wohne in Köln.", "Ich habe einen Hund.", "add"),
        ("Ich esse kein Fleisch.", "Ich vertrage keine Nüsse.", "add"),
        ("Vivo en Sevilla.", "Vivo en Sevilla.", "drop"),
        ("Soy vegetariano.", "Soy vegetariana.", "drop"),
        ("我有两个孩子", "我有一只狗", "add"),
        ("我不喝酒。", "我不吃肉。", "add"),
    ],
)
async def test_other_statements_stand_beside_each_other(older: str, newer: str, action: str) -> None:
    (stored,), (candidate,) = await learned(talk(older)), await learned(talk(newer))
    assert decide(Neighbourhood(candidate, (neighbour(stored),))).action == action


async def test_a_request_made_again_is_learned_in_its_language() -> None:
    question = "Wie kann ich meine Rechnung herunterladen?"
    (candidate,) = await learned(talk(question, "Ihre Rechnung ist bezahlt.", question))
    assert candidate.content.startswith("Genau auf das antworten")
    assert question in candidate.content


@pytest.mark.parametrize(
    "said", ["Bitte vergiss, dass ich Vegetarier bin.", "Olvida que soy vegetariano.", "忘掉我住在上海。"]
)
async def test_a_request_to_forget_is_understood(said: str) -> None:
    assert {candidate.forget for candidate in await learned(talk(said))} == {True}


async def test_a_turn_in_a_language_without_rules_is_told() -> None:
    said = "私は菜食主義者です。", "Wie spät ist es?", "I like tea."
    turns = tuple(Turn(number, "user", words) for number, words in enumerate(said, start=1))
    extraction = await LocalLearner(ScriptedEmbedder()).extract(Window("ann", "v1", turns), Config(), BOTH)
    assert extraction.unread == (1,)


def neighbour(stored: ExtractedLearning) -> Neighbour:
    learning = Learning(stored.kind, stored.content, id=7, user_id="ann", trigger=stored.trigger)
    return Neighbour(learning, 0.9)
