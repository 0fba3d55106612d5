"""`make bench` measures everything; `python -m tests.bench publishing` one part."""

import sys
from collections.abc import Callable
from pathlib import Path

from tests.bench import (
    agents,
    aggregation,
    backlog,
    clustering,
    context_quality,
    dashboard,
    embedding,
    foundation,
    gateway,
    languages,
    learning,
    lessons,
    local_learner,
    newcomer,
    optimisation,
    read_your_write,
    retrieval_quality,
    sayings,
    searching,
    statements,
)
from tests.bench.report import Figure, Report

PARTS: dict[str, Callable[[], list[Figure]]] = {
    "start-up": foundation.start_up,
    "publishing": foundation.publishing,
    "read-your-write": read_your_write.read_your_write,
    "gateway": gateway.gateway,
    "backlog": backlog.backlog,
    "reading": foundation.reading,
    "embedding": embedding.embedding,
    "quality": retrieval_quality.figures,
    "context": context_quality.context_quality,
    "learning": learning.learning,
    "aggregation": aggregation.aggregation,
    "local-learner": local_learner.local_learner,
    "sayings": sayings.sayings,
    "statements": statements.statements,
    "newcomer": newcomer.newcomer,
    "languages": languages.languages,
    "clustering": clustering.clustering,
    "agents": agents.agents,
    "lessons": lessons.lessons,
    "lessons-postgres": lessons.in_postgres,
    "optimisation": optimisation.optimisation,
    "dashboard": dashboard.dashboard,
    "searching-100k": lambda: searching.searching(100_000),
    "searching-1m": lambda: searching.searching(1_000_000),
}


def main(wanted: list[str]) -> None:
    report = Report()
    for name, measure in PARTS.items():
        if not wanted or name in wanted:
            report.measure(name, measure)
    report.write(Path("bench-report.json"))


main(sys.argv[1:])
