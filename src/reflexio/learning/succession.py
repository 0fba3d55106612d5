"""One agent playbook takes the place of another. The old one is kept, out of sight, with a pointer to the new one."""

import dataclasses

from reflexio.models.learning import Learning
from reflexio.models.status import Status
from reflexio.ports.storage import LineageEvent, Tx


def retire(tx: Tx, old: Learning, successor: int, actor: str, why: str, now: int) -> None:
    details = {**old.details, "superseded_by": str(successor)}
    tx.learnings.replace(dataclasses.replace(old, status=Status.SUPERSEDED, details=details, modified_at=now))
    _note(tx, old, "superseded", actor, why, now, Status.SUPERSEDED)


def restore(tx: Tx, old: Learning, actor: str, why: str, now: int) -> None:
    """It stands again, as it stood."""
    details = {name: value for name, value in old.details.items() if name != "superseded_by"}
    tx.learnings.replace(dataclasses.replace(old, status=Status.CURRENT, details=details, modified_at=now))
    _note(tx, old, "restored", actor, why, now, Status.CURRENT)


def _note(tx: Tx, old: Learning, op: str, actor: str, why: str, now: int, to: Status) -> None:
    event = LineageEvent(old.id, old.kind, op, now, actor, why, old.status.value, to.value)
    tx.learnings.note(event)
