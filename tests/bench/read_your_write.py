"""Preferences added through the API: whether each question finds its own at once, and again when nothing waits."""

import json
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from reflexio import ReflexioClient
from reflexio.server.process import running_server
from tests.bench.report import Figure, milliseconds

PREFEVAL = Path("../shared/data/retrieval/prefeval.jsonl")


def read_your_write() -> list[Figure]:
    if not PREFEVAL.exists():
        print(f"{PREFEVAL} is not here: reading one's own write is not measured.")
        return []
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for line in PREFEVAL.read_text("utf-8").splitlines():
        entry = json.loads(line)
        pairs[entry["user"]].append((entry["preference"], entry["question"]))
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(Path(folder)) as url,
        ReflexioClient(url_endpoint=url) as client,
    ):
        adds: list[float] = []
        at_once: list[bool] = []
        for user, own in pairs.items():
            began = time.perf_counter()
            client.add_user_profile([{"user_id": user, "content": preference} for preference, _ in own])
            adds.append(time.perf_counter() - began)
            at_once += _hits(client, user, own)
        for user in pairs:
            while client.storage_stats(user).unembedded_count:
                time.sleep(0.1)
        later = [hit for user, own in pairs.items() for hit in _hits(client, user, own)]
    p50, p95 = milliseconds(adds)
    return [
        Figure("right one first, searched at once", sum(at_once) / len(at_once), "", 0.83, True, baseline=".47"),
        Figure("right one first, when nothing waits", sum(later) / len(later), "", 0.83, True, baseline=".84"),
        Figure("questions", len(at_once), ""),
        Figure("add of a user's ten preferences, p50", p50, "ms"),
        Figure("add of a user's ten preferences, p95", p95, "ms"),
    ]


def _hits(client: ReflexioClient, user: str, pairs: list[tuple[str, str]]) -> list[bool]:
    first = [client.search_user_profiles(user, question, top_k=1).user_profiles for _, question in pairs]
    return [bool(rows) and rows[0].content == preference for rows, (preference, _) in zip(first, pairs, strict=True)]
