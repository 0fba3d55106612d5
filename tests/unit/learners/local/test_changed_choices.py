"""A standing order that chooses otherwise takes the place of the older one, in the same or in another language."""

import asyncio
from collections.abc import Iterator

import pytest

from reflexio.providers.embedding.local import LocalEmbedder
from tests.bench.sayings import Memory


@pytest.fixture(scope="module")
def embedder() -> Iterator[LocalEmbedder]:
    local = LocalEmbedder()
    yield local
    asyncio.run(local.aclose())


@pytest.mark.parametrize(
    ("older", "newer", "stays", "goes"),
    [
        ("Always answer in German.", "In English please from now on.", "english", "german"),
        ("Antworte immer auf Deutsch.", "In English please from now on.", "english", "deutsch"),
        ("Please answer in English.", "Ab jetzt bitte auf Deutsch.", "deutsch", "english"),
        ("Antworte immer auf Deutsch.", "Lieber doch auf Englisch.", "englisch", "deutsch"),
        ("Respóndeme siempre en español.", "Mejor en inglés.", "inglés", "español"),
        ("Réponds toujours en français.", "En anglais désormais, s'il te plaît.", "anglais", "français"),
        ("Responda sempre em português.", "De agora em diante em inglês, por favor.", "inglês", "português"),
        ("请用中文回答。", "以后请用英文。", "英文", "中文"),
        ("Bitte immer duzen.", "Bitte siezen Sie mich ab jetzt.", "siez", "duz"),
        ("Keep your answers short.", "Give me long, detailed answers from now on.", "long", "short"),
        ("Always use kilometres.", "Use miles from now on.", "miles", "kilomet"),
        ("Contact me by email only.", "Contact me by WhatsApp from now on.", "whatsapp", "email"),
        ("Appelez-moi toujours par téléphone.", "Désormais, contactez-moi par courriel.", "courriel", "téléphone"),
    ],
)
def test_the_newer_choice_holds(older: str, newer: str, stays: str, goes: str, embedder: LocalEmbedder) -> None:
    memory = Memory(embedder)

    async def take() -> None:
        await memory.take(older, session="a")
        await memory.take("What are your opening hours?", "From 9 to 5.", newer, session="b")

    asyncio.run(take())
    text = " ".join(row.content for row in memory.rows).lower()
    assert stays in text
    assert goes not in text
