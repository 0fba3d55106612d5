"""Which source windows a wording is tried in, which of them are held out to decide, and how each is played again.

A window is named by numbers until the moment it is played: what a user deletes meanwhile is not kept here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from reflexio.learning.window import SIDES
from reflexio.models.config import PlaybookOptimizerConfig
from reflexio.models.interaction import Interaction
from reflexio.models.learning import Kind, Learning
from reflexio.models.rollout import Message, Scene, Side
from reflexio.ports.storage import Tx
from reflexio.ports.work import Json

MOST_HISTORY = 40
DIGEST = 12


def digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:DIGEST]


@dataclass(frozen=True)
class Source:
    """One source window: the turns that a user playbook cites, and all turns around them, oldest first."""

    user_playbook_id: int
    user_id: str
    cited: tuple[int, ...]
    turns: tuple[int, ...]

    @property
    def key(self) -> str:
        return digest(f"{self.user_playbook_id}:{','.join(map(str, self.cited))}")

    def json(self) -> Json:
        return asdict(self)

    @classmethod
    def read(cls, data: Json) -> "Source":
        return cls(**{**data, "cited": tuple(data["cited"]), "turns": tuple(data["turns"])})


@dataclass(frozen=True)
class Sources:
    """The windows that can be played, and how many could be no more because their turns were deleted."""

    found: tuple[Source, ...] = ()
    erased: int = 0


def sources(tx: Tx, target: Learning) -> Sources:
    """The source windows of a playbook, in a fixed order. Those of the same turns count once."""
    snapshot = sorted(_snapshot(target))
    rows = {number: row for number, row in tx.learnings.many([each for each, _ in snapshot]).items() if _taught(row)}
    noted = [Noted(number, ids, rows.get(number)) for number, ids in snapshot]
    turns = tx.interactions.many(sorted({turn for each in noted for turn in each.turns}))
    bare = {turn for each in noted if not each.window for turn in each.cited if turn in turns}
    published: dict[str, list[Interaction]] = {}
    for turn in tx.interactions.of_requests(sorted({turns[each].request_id for each in bare})):
        published.setdefault(turn.request_id, []).append(turn)
    found: dict[tuple[int, ...], Source] = {}
    made = [(each, _source(each, turns, published)) for each in noted]
    for each, source in made:
        if source is not None:
            found.setdefault(tuple(each.ids) or source.cited, source)
    return Sources(tuple(found.values()), sum(source is None for _, source in made))


def _taught(row: Learning) -> bool:
    return row.kind is Kind.USER_PLAYBOOK


def _snapshot(target: Learning) -> list[tuple[int, list[int]]]:
    """The user playbooks it comes from, and the turns that were noted of each."""
    if target.kind is Kind.AGENT_PLAYBOOK:
        return [(each["user_playbook_id"], _ids(each)) for each in target.details.get("source_windows", [])]
    return [(target.id, _ids(target.details))] if _ids(target.details) else []


def _ids(details: Mapping[str, Any]) -> list[int]:
    return sorted(set(details.get("source_interaction_ids") or ()))


@dataclass(frozen=True)
class Noted:
    """What is known of a window: the turns in the snapshot, and the user playbook itself while it is there.

    A snapshot may name the whole window; the row knows which turns taught the lesson.
    """

    number: int
    ids: list[int]
    row: Learning | None

    @property
    def cited(self) -> list[int]:
        return (_ids(self.row.details) if self.row else []) or self.ids

    @property
    def window(self) -> list[int]:
        return list(self.row.details.get("window_interaction_ids") or ()) if self.row else []

    @property
    def turns(self) -> set[int]:
        return {*self.ids, *self.cited, *self.window}


def _source(
    noted: Noted, turns: Mapping[int, Interaction], published: Mapping[str, Sequence[Interaction]]
) -> Source | None:
    """Nothing when turns that it cites are gone, or when no user says anything in it.

    Where nobody noted the window, it is all that was published along with the cited turns.
    """
    cited = noted.cited
    if not cited or not turns.keys() >= set(cited):
        return None
    around = {each: turns[each] for each in noted.turns if each in turns}
    if not noted.window:
        requests = {turns[each].request_id for each in cited}
        around |= {turn.interaction_id: turn for each in requests for turn in published.get(each, ())}
    user_id = turns[cited[0]].user_id
    theirs = [turn for _, turn in sorted(around.items()) if turn.user_id == user_id]
    if not any(side(each) == "user" and words(each) for each in theirs):
        return None
    return Source(noted.number, user_id, tuple(cited), tuple(each.interaction_id for each in theirs))


@dataclass(frozen=True)
class Split:
    """Windows to search with, and windows held out to decide. With a single window they are the same."""

    train: tuple[Source, ...]
    validation: tuple[Source, ...]

    @property
    def all(self) -> tuple[Source, ...]:
        return tuple(dict.fromkeys((*self.validation, *self.train)))


def split(found: Sequence[Source], config: PlaybookOptimizerConfig) -> Split:
    if len(found) == 1:
        return Split(tuple(found), tuple(found))
    held_out = min(config.max_validation_windows, len(found) - 1)
    return Split(tuple(found[held_out:]), tuple(found[:held_out]))


def too_few(found: Sources, config: PlaybookOptimizerConfig) -> str:
    """Why no winner could be adopted; nothing when one could."""
    gone = f" ({found.erased} more can no longer be played: their turns were deleted)" if found.erased else ""
    if not found.found:
        return f"The playbook has no source windows to replay{gone}."
    held_out = len(split(found.found, config).validation)
    if held_out >= config.min_commit_windows:
        return ""
    return (
        f"{len(found.found)} source window(s){gone} leave {held_out} to hold out for validation, "
        f"and min_commit_windows is {config.min_commit_windows}: no winner could be adopted."
    )


def scene(source: Source, turns: Mapping[int, Interaction], lesson: str, max_turns: int) -> Scene | None:
    """How a window is played again. Nothing when turns of it were deleted meanwhile.

    At most `max_turns` user turns are answered anew, from the one before the first that the lesson cites; what was
    said earlier is given as it was, so that the assistant knows the whole conversation.
    """
    if not turns.keys() >= set(source.turns):
        return None
    said = [turns[each] for each in source.turns if words(turns[each])]
    asked = [place for place, turn in enumerate(said) if side(turn) == "user"]
    cited = [number for number, place in enumerate(asked) if said[place].interaction_id in source.cited]
    first = max(0, min((cited[0] if cited else 0) - 1, len(asked) - max_turns))
    live = asked[first : first + max_turns]
    history = [message(turn) for turn in said[: live[0]]]
    script = [turn for turn in said[live[0] : live[-1] + 1] if side(turn) != "assistant"]
    return Scene(
        source.key,
        source.user_id,
        source.user_playbook_id,
        source.cited,
        tuple(history[-MOST_HISTORY:]),
        tuple(map(message, script)),
        tuple(turn.interaction_id for turn in script),
        lesson,
    )


def scenes(tx: Tx, windows: Sequence[Source], target: Learning, max_turns: int) -> Iterator[Scene]:
    """The scenes of all windows that are still there. The lesson is what the source playbook says."""
    rows = tx.learnings.many([each.user_playbook_id for each in windows])
    turns = tx.interactions.many(sorted({turn for each in windows for turn in each.turns}))
    for each in windows:
        row = rows.get(each.user_playbook_id)
        lesson = row.content if row and row.kind is Kind.USER_PLAYBOOK and row.id != target.id else ""
        if made := scene(each, turns, lesson, max_turns):
            yield made


def words(turn: Interaction) -> str:
    return turn.content.strip() or turn.user_action_description.strip()


def side(turn: Interaction) -> Side:
    side = SIDES.get(turn.role.strip().lower(), "user")
    return "assistant" if side == "agent" else side


def message(turn: Interaction) -> Message:
    return Message(side(turn), words(turn))
