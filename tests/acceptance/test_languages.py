"""Other languages on a real server without a model: what is said plainly is learned, and reaches the next prompt."""

import pytest

from reflexio.client.sync import ReflexioClient
from tests.builders import turns

Said = tuple[str, ...]

CORRECTIONS: dict[str, tuple[Said, str, str]] = {
    "German": (
        ("Mein Paket ist laut Verfolgung da, aber hier ist nichts.", "Ich habe eine Erstattung gestartet.",
         "Nein, bitte erst die Nachbarn fragen."),
        "Nachbarn", "Mein Paket wurde zugestellt, ich finde es aber nicht.",
    ),
    "Spanish": (
        ("Mi paquete figura como entregado, pero aquí no hay nada.", "He iniciado un reembolso.",
         "No, primero pregunta a los vecinos."),
        "vecinos", "El paquete figura como entregado y no lo encuentro.",
    ),
    "French": (
        ("Mon colis est marqué livré, mais il n'y a rien ici.", "J'ai lancé un remboursement.",
         "Non, demandez d'abord aux voisins."),
        "voisins", "Mon colis est indiqué comme livré mais je ne le trouve pas.",
    ),
    "Portuguese": (
        ("Meu pacote consta como entregue, mas não tem nada aqui.", "Iniciei um reembolso.",
         "Não, pergunte primeiro aos vizinhos."),
        "vizinhos", "O pacote consta como entregue e não o encontro.",
    ),
    "Chinese": (
        ("我的包裹显示已送达，但是这里什么都没有。", "我已经为您办理退款。", "不对，请先问一下邻居。"),
        "邻居", "包裹显示已送达，可是我没收到。",
    ),
}  # fmt: skip
ALWAYS = [
    ("Bitte immer duzen.", "duzen", "Wann kommt meine Lampe?"),
    ("Bitte nur noch auf Deutsch antworten", "Deutsch", "Where is my order?"),
    ("ich vertrage keine nüsse", "nüsse", "Welchen Kuchen empfiehlst du?"),
    ("Nunca uses emojis", "emojis", "¿Cuándo llega mi lámpara?"),
    ("Vivo en Sevilla", "Sevilla", "¿Qué hago el fin de semana?"),
    ("Trátame de usted, por favor", "usted", "Quiero devolver la lámpara."),
    ("Réponds toujours en français", "français", "Where is my order?"),
    ("J'ai deux enfants", "enfants", "Que faire ce week-end ?"),
    ("je suis vegetarienne", "vegetarienne", "Un restaurant pour ce soir ?"),
    ("Pode me tratar por tu", "por tu", "Quando chega a encomenda?"),
    ("nao como carne", "carne", "Que restaurante recomenda?"),
    ("Responda sempre em português.", "português", "Where is my order?"),
    ("我住在上海", "上海", "周末可以做什么？"),
    ("用中文回答", "中文", "Where is my order?"),
    ("以后别用表情符号了", "表情符号", "我的订单到哪里了？"),
]
CHANGED: list[tuple[str, str, str, str]] = [
    ("Ich bin Vegetarier", "Ich bin kein Vegetarier mehr", "kein Vegetarier", "Ich bin Vegetarier"),
    ("Ich wohne in Köln.", "Ich bin nach Bremen gezogen.", "Bremen", "Köln"),
    ("Bitte immer duzen.", "Bitte immer siezen.", "siezen", "duzen"),
    ("Always answer in German.", "In English please from now on.", "English", "German"),
    ("Antworte immer auf Deutsch.", "In English please from now on.", "English", "Deutsch"),
    ("Answer in English.", "Ab jetzt bitte auf Deutsch.", "Deutsch", "English"),
    ("Soy vegetariano", "ya no soy vegetariano", "Ya no soy", "Soy vegetariano"),
    ("Mi presupuesto es de 200 euros.", "Ahora mi presupuesto es de 300 euros.", "300", "200"),
    ("Je suis végétarien.", "Je ne suis plus végétarien.", "plus végétarien", "Je suis végétarien"),
    ("J'habite à Lille.", "J'ai déménagé à Bordeaux.", "Bordeaux", "Lille"),
    ("Sou vegetariano.", "Já não sou vegetariano.", "não sou vegetariano", "Sou vegetariano"),
    ("Responda sempre em português.", "A partir de agora responda sempre em inglês.", "inglês", "em português"),
    ("我吃素。", "我不再吃素了", "不再吃素", "我吃素"),
    ("我住在北京。", "我搬到广州了。", "广州", "北京"),
    ("请一直用中文回答。", "从现在起请用英文回答。", "英文", "中文"),
]  # fmt: skip


def context(client: ReflexioClient, user: str, query: str) -> str:
    return client.get_context(query, user_id=user).context


@pytest.mark.parametrize("language", CORRECTIONS)
def test_a_correction_is_learned_and_reaches_the_next_case(client: ReflexioClient, language: str) -> None:
    said, rule, next_case = CORRECTIONS[language]

    client.publish_interaction("ann", turns(*said), wait_for_response=True)

    (playbook,) = client.get_user_playbooks(user_id="ann").user_playbooks
    assert rule in playbook.content
    assert said[-1] in (playbook.source_span or "")
    assert said[0].rstrip("。.") in (playbook.trigger or "")
    assert rule in context(client, "ann", next_case)


@pytest.mark.parametrize(("said", "rule", "query"), ALWAYS)
def test_a_fact_or_standing_order_is_in_every_context(client: ReflexioClient, said: str, rule: str, query: str) -> None:
    client.publish_interaction("ann", turns(said), wait_for_response=True)

    assert rule in context(client, "ann", query)
    assert not any(playbook.trigger for playbook in client.get_user_playbooks(user_id="ann").user_playbooks)


@pytest.mark.parametrize(("before", "now", "holds", "is_over"), CHANGED)
def test_the_newer_of_two_statements_holds(
    client: ReflexioClient, before: str, now: str, holds: str, is_over: str
) -> None:
    for said in ("Hallo!", before, now):
        client.publish_interaction("ann", turns(said), wait_for_response=True)

    prompt = context(client, "ann", "?")
    assert holds in prompt
    assert is_over not in prompt.replace(holds, "")


def test_a_turn_in_a_language_without_rules_is_marked(client: ReflexioClient) -> None:
    for said in ("私は菜食主義者です。", "Sono vegetariano e vivo a Torino.", "Wie spät ist es?", "Where is my lamp?"):
        client.publish_interaction("ann", turns(said), wait_for_response=True)

    assert client.storage_stats("ann").unread_count == 2
    assert not client.get_profiles("ann", force_refresh=True).user_profiles
