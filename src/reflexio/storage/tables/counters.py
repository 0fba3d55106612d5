"""Counters of all organisations together, which every server and worker can show.

They are written in the transaction of what they count. On PostgreSQL each is spread over several rows: two writers of
one row would refuse each other.
"""

import random
from collections import Counter

from sqlalchemy import Connection, func, select

from reflexio.models.extraction import Spend
from reflexio.ports.storage import WorkCounts
from reflexio.storage.queries import insert_for
from reflexio.storage.schema import index_counts, jobs, stalls

ROWS = 16
WINDOW_COUNTERS = {"learned": "windows_learned", "failed": "windows_failed", "set_aside": "windows_set_aside"}


def count(connection: Connection, name: str, number: int = 1) -> None:
    if not number:
        return
    row = f"{name}:{random.randrange(ROWS)}" if connection.dialect.name == "postgresql" else name
    statement = insert_for(connection.dialect.name)(index_counts)
    total = {"count": index_counts.c.count + statement.excluded.count}
    counted = statement.on_conflict_do_update(index_elements=["name"], set_=total)
    connection.execute(counted, {"name": row, "count": number})


def count_spend(connection: Connection, cost: Spend) -> None:
    count(connection, "model_calls", cost.calls)
    count(connection, "input_tokens", cost.input_tokens)
    count(connection, "output_tokens", cost.output_tokens)


def totals(connection: Connection) -> Counter[str]:
    total = Counter[str]()
    for name, number in connection.execute(select(index_counts.c.name, index_counts.c.count)):
        total[name.partition(":")[0]] += number
    return total


def work_counts(connection: Connection) -> WorkCounts:
    states = select(jobs.c.state, func.count(), func.min(jobs.c.asked_at)).where(
        jobs.c.state.in_(("queued", "running"))
    )
    by_state = {row[0]: (row[1], row[2]) for row in connection.execute(states.group_by(jobs.c.state))}
    waiting, waiting_since = by_state.get("queued", (0, 0))
    stalled = connection.execute(select(func.count()).select_from(stalls)).scalar_one()
    total = totals(connection)
    return WorkCounts(
        jobs_waiting=waiting,
        jobs_running=by_state.get("running", (0, 0))[0],
        waiting_since=waiting_since or 0,
        stalled_organisations=stalled,
        windows_learned=total["windows_learned"],
        windows_failed=total["windows_failed"],
        windows_set_aside=total["windows_set_aside"],
        model_calls=total["model_calls"],
        input_tokens=total["input_tokens"],
        output_tokens=total["output_tokens"],
    )
