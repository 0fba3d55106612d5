"""With several types, each learning goes where name and definition fit best."""

from reflexio.models.config import Config
from reflexio.models.learning import Kind
from reflexio.providers.embedding.local import LocalEmbedder
from reflexio.providers.scripted import ScriptedEmbedder
from tests.unit.learners.local.talk import learned, talk

SHOP = Config.model_validate(
    {
        "playbook_configs": [
            {"playbook_name": "returns", "playbook_definition_prompt": "Returns, refunds, exchanges and warranty"},
            {
                "playbook_name": "tone",
                "playbook_definition_prompt": "Style of writing: greeting, politeness, formality",
            },
            {
                "playbook_name": "delivery",
                "playbook_definition_prompt": "Shipping, couriers, parcels and their tracking",
            },
        ],
        "profile_extractor_configs": [
            {"extractor_name": "diet", "extraction_definition_prompt": "Food, diet and allergies of the user"},
            {
                "extractor_name": "travel",
                "extraction_definition_prompt": "How the user travels: trains, flights, hotels",
            },
        ],
    }
)
SAID = {
    "Always offer a refund before an exchange.": "returns",
    "Never greet me with hey, use a formal and polite greeting.": "tone",
    "Always send the tracking number of the parcel.": "delivery",
    "I'm allergic to peanuts.": "diet",
    "I prefer night trains over flights.": "travel",
}


async def test_each_learning_is_filed_where_it_fits_best() -> None:
    embedder = LocalEmbedder()
    found = {said: await learned(talk(said), config=SHOP, embedder=embedder) for said in SAID}
    assert {said: [each.name for each in each_found] for said, each_found in found.items()} == {
        said: [name] for said, name in SAID.items()
    }
    await embedder.aclose()


async def test_with_one_type_nothing_is_embedded() -> None:
    embedder = ScriptedEmbedder()
    (found,) = await learned(talk("Always answer in French."), embedder=embedder)
    assert found.name == "playbook"
    assert embedder.calls == []


async def test_the_types_are_embedded_once() -> None:
    from reflexio.learners.local.learner import LocalLearner
    from reflexio.models.extraction import Window

    embedder = ScriptedEmbedder()
    learner = LocalLearner(embedder)
    window = Window("ann", "v1", talk("Always answer in French."))
    for _ in range(3):
        await learner.extract(window, SHOP, frozenset((Kind.USER_PLAYBOOK,)))
    assert [len(texts) for texts in embedder.calls] == [3, 1, 1, 1]


async def test_a_kind_without_types_takes_nothing() -> None:
    turns = talk("I'm vegan. Always answer in French.")
    assert [each.kind for each in await learned(turns, config=Config(playbook_configs=[]))] == [Kind.PROFILE]
    assert [each.kind for each in await learned(turns, config=Config(profile_extractor_configs=[]))] == [
        Kind.USER_PLAYBOOK
    ]


async def test_a_request_to_forget_is_filed_when_only_one_kind_has_a_choice() -> None:
    config = Config(playbook_configs=SHOP.playbook_configs)
    found = await learned(talk("Please forget that I am vegetarian."), config=config, embedder=ScriptedEmbedder())
    assert {each.kind for each in found if each.forget} == {Kind.PROFILE, Kind.USER_PLAYBOOK}
