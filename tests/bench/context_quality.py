"""What a context contains: what should be there, and what should stay out.

Measured on pairs of a learning and a message of our own (`context_pairs.txt`), and on the preferences of PrefEval with
the questions that they should inform. Learnings are added without a scope, as by a caller who knows nothing of scopes.
"""

import asyncio
import re
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reflexio.app import Reflexio, build
from reflexio.learning.manual_edits import add
from reflexio.models.learning import Kind, Learning, PlaybookStatus, Scope
from reflexio.models.search import ContextRequest, ContextResponse
from reflexio.retrieval.calibration import calibrate
from reflexio.retrieval.embedding_backlog import embed_some
from reflexio.retrieval.service import get_context
from reflexio.settings import Settings
from tests.bench.report import Figure
from tests.bench.retrieval_sets import DATA, lines

PAIRS = Path(__file__).with_name("context_pairs.txt")
KINDS = {"P": Kind.PROFILE, "U": Kind.USER_PLAYBOOK, "A": Kind.AGENT_PLAYBOOK}


@dataclass(frozen=True)
class Message:
    text: str
    wanted: frozenset[str]


@dataclass(frozen=True)
class Case:
    """A user: what is known, by key, and messages with the keys of the learnings that bear on them."""

    name: str
    learnings: dict[str, Learning]
    messages: tuple[Message, ...]

    @property
    def always(self) -> frozenset[str]:
        return frozenset(key for key, learning in self.learnings.items() if learning.scope is Scope.ALWAYS)


@dataclass
class Counts:
    wanted: int = 0
    found: int = 0
    unwanted: int = 0
    intruders: int = 0
    always_intruders: int = 0
    contexts: int = 0
    beyond_always: int = 0
    scopes_right: int = 0
    scopes: int = 0

    def figures(self, name: str) -> list[Figure]:
        return [
            Figure(f"{name}: wanted and there", self.found / self.wanted, "", 0.9, more_is_better=True),
            Figure(f"{name}: unwanted and there", self.intruders / max(1, self.unwanted), "", 0.05),
            Figure(f"{name}: of these in the always layer", self.always_intruders / max(1, self.unwanted), ""),
            Figure(f"{name}: items beyond the always layer", self.beyond_always / self.contexts, "", 1.6),
            Figure(f"{name}: scopes right", self.scopes_right / max(1, self.scopes), ""),
            Figure(f"{name}: pairs that belong together", self.wanted, ""),
            Figure(f"{name}: pairs that do not", self.unwanted, ""),
        ]


def read_cases() -> list[Case]:
    """The users of the file, in its order."""
    sections = PAIRS.read_text(encoding="utf-8").split("\n== ")[1:]
    return [_case(section.splitlines()) for section in sections]


def _case(rows: Sequence[str]) -> Case:
    name, rest = rows[0], [row for row in rows[1:] if row.strip()]
    learnings, messages = {}, []
    for row in rest:
        if match := re.fullmatch(r"\? ?(\w*) \| (.+)", row):
            messages.append(Message(match[2], frozenset(match[1])))
        elif match := re.fullmatch(r"(\w) ([PUA])(\*?) (.+)", row):
            trigger, _, content = match[4].rpartition(" -> ")
            scope = Scope.ALWAYS if match[3] else Scope.WHEN_RELEVANT
            user = "" if match[2] == "A" else name
            learnings[match[1]] = Learning(KINDS[match[2]], content, trigger=trigger, scope=scope, user_id=user)
        else:
            raise ValueError(f"{PAIRS.name}: {row!r} is neither a learning nor a message")
    return Case(name, learnings, tuple(messages))


def preference_cases() -> list[Case]:
    """The users of PrefEval. A preference bears on its own question."""
    users = defaultdict(list)
    for row in lines("retrieval/prefeval.jsonl"):
        users[row["user"]].append(row)
    return [
        Case(
            user,
            {chr(97 + n): Learning(Kind.PROFILE, row["preference"], user_id=user) for n, row in enumerate(rows)},
            tuple(Message(row["question"], frozenset(chr(97 + n))) for n, row in enumerate(rows)),
        )
        for user, rows in users.items()
    ]


async def measure(cases: Sequence[Case], *, trace: bool = False) -> Counts:
    counts = Counts()
    with tempfile.TemporaryDirectory() as folder:
        reflexio = await build(Settings(data=Path(folder)))
        reflexio.query_embedder.calibration = await calibrate(reflexio.query_embedder.embedder)
        stored = [await _store(reflexio, case) for case in cases]
        while await embed_some(reflexio.database, reflexio.query_embedder.embedder):
            pass
        for case, ids in zip(cases, stored, strict=True):
            await _ask(reflexio, case, ids, counts, trace=trace)
        await reflexio.database.close()
    return counts


async def _store(reflexio: Reflexio, case: Case) -> dict[str, str]:
    """The public id of each learning, under its key."""
    store, ids = reflexio.database.of(case.name), {}
    for key, learning in case.learnings.items():
        public = f"{case.name}-{key}" if learning.kind is Kind.PROFILE else ""
        shown = replace(learning, key=public, scope=Scope.WHEN_RELEVANT, review=PlaybookStatus.APPROVED, created_at=1)
        ids[key] = (await add(store, reflexio.scopes, reflexio.immediate_embedder, [shown], [None])).ids[0]
    return ids


async def _ask(reflexio: Reflexio, case: Case, ids: dict[str, str], counts: Counts, *, trace: bool) -> None:
    store = reflexio.database.of(case.name)
    layer: set[str] = set()
    for message in case.messages:
        request = ContextRequest(query=message.text, user_id=case.name)
        response = await get_context(store, reflexio.query_embedder, request, now=10)
        layer = _keys(response, ids, "always")
        there = layer | _keys(response, ids, "relevant")
        wanted = message.wanted | case.always
        others = case.learnings.keys() - wanted
        counts.wanted += len(wanted)
        counts.found += len(wanted & there)
        counts.unwanted += len(others)
        counts.intruders += len(others & there)
        counts.always_intruders += len(others & layer)
        counts.contexts += 1
        counts.beyond_always += sum(item.layer == "relevant" for item in response.items)
        if trace and (wanted - there or others & there):
            print(f"\n{case.name} | {message.text}")
            for key in sorted(wanted - there):
                print(f"   missing  {case.learnings[key].text!r}")
            for key in sorted(others & there):
                print(f"   intruder {case.learnings[key].text!r} {'(always)' if key in layer else ''}")
    counts.scopes += len(case.learnings)
    counts.scopes_right += len(case.learnings) - len(layer ^ case.always)


def _keys(response: ContextResponse, ids: dict[str, str], layer: str) -> set[str]:
    there = {item.id for item in response.items if item.layer == layer}
    return {key for key, number in ids.items() if number in there}


def context_quality() -> list[Figure]:
    cases = read_cases()
    figures = asyncio.run(measure(cases[0::2])).figures("own pairs, seen")
    figures += asyncio.run(measure(cases[1::2])).figures("own pairs, held out")
    if not (DATA / "retrieval/prefeval.jsonl").exists():
        print("retrieval/prefeval.jsonl is not there: its figures are left out")
        return figures
    return figures + asyncio.run(measure(preference_cases())).figures("PrefEval")
