"""Questions with known answers, made from the shared data: those of the quality table and further ones.

A set is shelves of rows; a question names the groups of rows of which each should be found. The parts of the
fusion rule were chosen with all of these in view: they show what it costs where, not what it does elsewhere.
"""

import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.bench.retrieval_languages import MEMORIES

DATA = Path(__file__).parents[2].parent / "shared" / "data"


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    wanted: tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True)
class Shelf:
    rows: tuple[str, ...]
    questions: tuple[Question, ...]


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def locomo_turns() -> Iterator[Shelf]:
    """Rows are a conversation's turns as `speaker: text`; wanted is each turn that holds evidence."""
    for told in lines("retrieval/locomo.jsonl"):
        place = {turn["id"]: row for row, turn in enumerate(told["turns"])}
        rows = [f"{turn['speaker']}: {turn['text']}" for turn in told["turns"]]
        yield _shelf(
            rows,
            [(q["question"], [{place[e]} for e in _once(q["evidence"], place)]) for q in told["questions"]],
        )


def locomo_bare() -> Iterator[Shelf]:
    """The same turns without their speakers: the name in a question points nowhere."""
    for told, shelf in zip(lines("retrieval/locomo.jsonl"), locomo_turns(), strict=True):
        yield Shelf(tuple(turn["text"] for turn in told["turns"]), shelf.questions)


def languages() -> Iterator[Shelf]:
    """A shelf for each language: a question is to find its memory."""
    for pairs in MEMORIES.values():
        yield _shelf([memory for memory, _ in pairs], [(asked, [{row}]) for row, (_, asked) in enumerate(pairs)])


def languages_together() -> Iterator[Shelf]:
    """The memories of all languages on one shelf."""
    pairs = [pair for own in MEMORIES.values() for pair in own]
    yield _shelf([memory for memory, _ in pairs], [(asked, [{row}]) for row, (_, asked) in enumerate(pairs)])


def locomo_observations() -> Iterator[Shelf]:
    """Rows are a conversation's observations; wanted is, for each turn of evidence, one that came from it."""
    for told in lines("retrieval/locomo.jsonl"):
        came_from: dict[str, set[int]] = defaultdict(set)
        for row, observation in enumerate(told["observations"]):
            for turn in observation["evidence"]:
                came_from[turn].add(row)
        yield _shelf(
            [observation["text"] for observation in told["observations"]],
            [(q["question"], [came_from[e] for e in _once(q["evidence"], came_from)]) for q in told["questions"]],
        )


def prefeval() -> Iterator[Shelf]:
    """Rows are a user's preferences; the question that one should inform is to find it."""
    for own in _by(lines("retrieval/prefeval.jsonl"), "user").values():
        yield _shelf([p["preference"] for p in own], [(p["question"], [{row}]) for row, p in enumerate(own)])


def humaneval() -> Iterator[Shelf]:
    """Rows are the lessons written for a task, together; the task's prompt is to find them."""
    tasks = [task for task in lines("replay/humaneval.jsonl") if task["lessons"]]
    yield _shelf([" ".join(task["lessons"]) for task in tasks], [(t["prompt"], [{row}]) for row, t in enumerate(tasks)])


def intents(name: str) -> Iterator[Shelf]:
    """Rows are five utterances of each intent; three others are to find one of their own."""
    shuffled = random.Random(7)
    rows: list[str] = []
    asked: list[tuple[str, list[set[int]]]] = []
    for own in _by(lines(f"clustering/{name}.jsonl"), "label").values():
        texts = [utterance["text"] for utterance in own]
        shuffled.shuffle(texts)
        stored = texts[3:8]
        asked += [(text, [set(range(len(rows), len(rows) + len(stored)))]) for text in texts[:3]]
        rows += stored
    yield _shelf(rows, asked)


def playbook_fragments() -> Iterator[Shelf]:
    """A fifth of a playbook bullet, word by word, is to find the bullet."""
    rows, chosen = _bullets(), random.Random(7)
    asked = []
    for row, text in enumerate(rows):
        words = text.split()
        length = max(4, len(words) // 5)
        first = chosen.randrange(len(words) - length)
        asked.append((" ".join(words[first : first + length]), [{row}]))
    yield _shelf(rows, asked)


def playbook_halves() -> Iterator[Shelf]:
    """The first sentence of a playbook bullet is to find the rest of it."""
    split = [re.split(r"(?<=[.!?:])\s+", text, maxsplit=1) for text in _bullets()]
    halves = [half for half in split if len(half) == 2 and len(half[1].split()) > 6]
    yield _shelf([rest for _, rest in halves], [(first, [{row}]) for row, (first, _) in enumerate(halves)])


def airline_replies() -> Iterator[Shelf]:
    """What a customer says is to find the agent's answer among those of the session."""
    for session in lines("replay/airline.jsonl")[:50]:
        said = [turn for turn in session["interactions"] if turn["content"].strip() and turn["role"] != "tool"]
        rows = [turn["content"] for turn in said if turn["role"] == "assistant"]
        asked = [
            (turn["content"], [{rows.index(reply["content"])}])
            for turn, reply in pairwise(said)
            if (turn["role"], reply["role"]) == ("user", "assistant") and len(turn["content"].split()) > 4
        ]
        if len(rows) > 3:
            yield _shelf(rows, asked)


def preferences_in_talk() -> Iterator[Shelf]:
    """A preference is to find a turn of the talk in which it was shown, among all the user said."""
    for own in _by(lines("retrieval/prefeval.jsonl"), "user").values():
        rows: list[str] = []
        asked: list[tuple[str, list[set[int]]]] = []
        for preference in own:
            said = [turn["content"] for turn in preference["turns"] if turn["role"] == "user"]
            asked.append((preference["preference"], [set(range(len(rows), len(rows) + len(said)))]))
            rows += said
        yield _shelf(rows, asked)


def questions_in_talk() -> Iterator[Shelf]:
    """The question that a preference should inform is to find a turn in which the preference was shown."""
    owns = _by(lines("retrieval/prefeval.jsonl"), "user").values()
    for shelf, own in zip(preferences_in_talk(), owns, strict=True):
        asked = [
            Question(preference["question"], question.wanted)
            for preference, question in zip(own, shelf.questions, strict=True)
        ]
        yield Shelf(shelf.rows, tuple(asked))


def halves_reversed() -> Iterator[Shelf]:
    """The rest of a playbook bullet is to find its first sentence."""
    for shelf in playbook_halves():
        firsts = [question.text for question in shelf.questions]
        yield _shelf(firsts, [(rest, [{row}]) for row, rest in enumerate(shelf.rows)])


def turns_to_observations() -> Iterator[Shelf]:
    """A turn (LoCoMo) is to find an observation that came from it."""
    for told in lines("retrieval/locomo.jsonl"):
        said = {turn["id"]: f"{turn['speaker']}: {turn['text']}" for turn in told["turns"]}
        came_from: dict[str, set[int]] = defaultdict(set)
        for row, observation in enumerate(told["observations"]):
            for turn in _once(observation["evidence"], said):
                came_from[turn].add(row)
        asked = [(said[turn], [rows]) for turn, rows in came_from.items()]
        yield _shelf([observation["text"] for observation in told["observations"]], asked)


def second_lessons() -> Iterator[Shelf]:
    """A task's second lesson (ALFWorld) is to find its first."""
    tasks = [task for task in lines("replay/alfworld.jsonl") if len(task["lessons"]) > 1]
    yield _shelf([t["lessons"][0] for t in tasks], [(t["lessons"][1], [{row}]) for row, t in enumerate(tasks)])


REQUIRED: dict[str, Callable[[], Iterator[Shelf]]] = {
    "LoCoMo turns": locomo_turns,
    "LoCoMo observations": locomo_observations,
    "PrefEval": prefeval,
    "HumanEval lessons": humaneval,
}
LANGUAGES: dict[str, Callable[[], Iterator[Shelf]]] = {
    "languages apart": languages,
    "languages together": languages_together,
}
FURTHER: dict[str, Callable[[], Iterator[Shelf]]] = {
    "LoCoMo bare turns": locomo_bare,
    "banking77": lambda: intents("banking77"),
    "clinc150": lambda: intents("clinc150"),
    "insurance": lambda: intents("insurance"),
    "playbook fragments": playbook_fragments,
    "playbook halves": playbook_halves,
    "airline replies": airline_replies,
    "preferences in talk": preferences_in_talk,
    "second lessons": second_lessons,
    "questions in talk": questions_in_talk,
    "halves reversed": halves_reversed,
    "turns to memories": turns_to_observations,
}


def _shelf(rows: list[str], asked: list[tuple[str, list[set[int]]]]) -> Shelf:
    questions = [Question(text, tuple(map(frozenset, wanted))) for text, wanted in asked if wanted]
    return Shelf(tuple(rows), tuple(questions))


def _once(names: list[str], known: dict[str, Any]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name in known]


def _by(rows: list[dict[str, Any]], key: str) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row[key]].append(row)
    return groups


def _bullets() -> list[str]:
    texts = dict.fromkeys(line["text"] for line in lines("load/ace_playbooks.jsonl"))
    return [text for text in texts if len(text.split()) >= 12]
