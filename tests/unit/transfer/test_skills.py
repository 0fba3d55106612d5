"""Playbooks as skills and back, and skills of others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexio.models.learning import Scope
from reflexio.models.playbook import AgentPlaybook
from reflexio.transfer.skills import LONGEST_DESCRIPTION, LONGEST_NAME, Skill, SkillPlaybook, read_skill, skills_of

LATE = AgentPlaybook(
    agent_playbook_id=1,
    agent_version="Shop 2.0",
    playbook_name="playbook",
    trigger="A parcel is late",
    content="Ask the neighbours first.\n\nThen the driver.",
    rationale="Four of ten are there.",
)
BRIEF = AgentPlaybook(
    agent_playbook_id=2,
    agent_version="Shop 2.0",
    playbook_name="playbook",
    content="Be brief.",
    scope=Scope.ALWAYS,
)


def test_a_skill_has_front_matter_and_a_section_for_each_playbook() -> None:
    (skill,) = skills_of([LATE, BRIEF])
    text = skill.text()
    assert text.startswith('---\nname: playbook-shop-2-0\ndescription: "What Shop 2.0 learned')
    assert "Use it when: A parcel is late." in text
    assert text.index("Be brief.") < text.index("## When: A parcel is late\n\nAsk the neighbours first.")
    assert "*Why:* Four of ten are there." in text


def test_it_reads_back_what_it_writes() -> None:
    (skill,) = skills_of([LATE, BRIEF])
    assert read_skill(skill.text(), "folder") == skill
    assert read_skill("\ufeff" + skill.text().replace("\n", "\r\n"), "folder") == skill


TEXT = st.text(st.characters(exclude_categories=("C", "Zl", "Zp", "Mn")), min_size=1).filter(lambda text: text.strip())
LINES = st.lists(st.one_of(TEXT, st.sampled_from(["## When: now", "\\## x", "<!-- x -->", "*Why:* y", "---", "", "#"])))


@given(content=LINES, trigger=TEXT, rationale=TEXT)
def test_any_wording_survives(content: list[str], trigger: str, rationale: str) -> None:
    body = "\n".join(["Begin", *content, "end"])
    playbook = SkillPlaybook(body, " ".join(trigger.split()), rationale.strip(), Scope.ALWAYS)
    (read,) = read_skill(Skill("x", "y", (playbook,), "v", "t").text(), "x").playbooks
    assert read == playbook


def test_names_are_safe_short_and_used_once() -> None:
    versions = ["../../etc", "A" * 300, "ä", "é", "x/y", "x y", "a" * 300]
    playbooks = [LATE.model_copy(update={"agent_version": version}) for version in versions]
    names = [skill.name for skill in skills_of(playbooks)]
    assert len(set(names)) == len(names) == len(versions)
    assert all(
        len(name) <= LONGEST_NAME and name.strip("abcdefghijklmnopqrstuvwxyz0123456789-") == "" for name in names
    )


def test_a_description_has_as_many_triggers_as_there_is_room_for() -> None:
    many = [LATE.model_copy(update={"trigger": f"Case {number} {'x' * 90}"}) for number in range(40)]
    (skill,) = skills_of(many)
    assert 900 < len(skill.description) <= LONGEST_DESCRIPTION
    assert "\n" not in skill.description


def test_a_skill_of_others_becomes_one_playbook() -> None:
    front = "---\nname: tidy\ndescription: >\n  Tidy a folder\n  of pictures.\nlicense: MIT\n---\n"
    text = f"{front}\n# Tidy\n\n## When: x\nSort.\n"
    skill = read_skill(text, "tidy")
    (playbook,) = skill.playbooks
    assert (skill.name, skill.agent_version) == ("tidy", "")
    assert (playbook.trigger, playbook.content) == ("Tidy a folder of pictures.", "# Tidy\n\n## When: x\nSort.")


@pytest.mark.parametrize(
    ("front", "description"),
    [
        ("description: Plain words # and a remark", "Plain words"),
        ('description: "Quoted: \\"yes\\""', 'Quoted: "yes"'),
        ("description: 'It''s so'", "It's so"),
        ("description: |\n  One\n  Two", "One\nTwo"),
        ("description: goes on\n  in the next line", "goes on in the next line"),
        ("description: Use it: always", "Use it: always"),
        ("metadata:\n  author: me\ndescription: After a map", "After a map"),
    ],
)
def test_front_matter_is_read_in_all_usual_forms(front: str, description: str) -> None:
    assert read_skill(f"---\nname: x\n{front}\n---\nBody", "x").description == description


@pytest.mark.parametrize("text", ["", "# No front matter", "---\nname: x\n---\nBody", "---\ndescription: y\n---\n  "])
def test_what_is_no_skill_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"front matter|description"):
        read_skill(text, "x")
