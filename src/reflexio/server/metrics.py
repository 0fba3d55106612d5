"""Metrics in Prometheus' text format, of servers and workers. They name no organisation and no user.

Most numbers are of the whole database: every server and worker shows the same ones. Those of requests, and names that
begin with `process_`, are of one process.
"""

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from reflexio.app import Reflexio
from reflexio.server.latency import RequestMeter

CONTENT_TYPE = "text/plain; version=0.0.4"
Number = int | float | None

DATABASE_METRICS = {
    "turns_not_indexed": ("gauge", "Turns that are not in the word index yet."),
    "learnings_not_indexed": ("gauge", "Learnings of large imports that are not in the word index yet."),
    "oldest_not_indexed_seconds": ("gauge", "Age of the oldest of both."),
    "learnings_without_vector": ("gauge", "Learnings without a vector; search finds them by words."),
    "turns_without_vector": ("gauge", "Indexed turns without a vector; search finds them by words."),
    "oldest_without_vector_seconds": ("gauge", "Age of the oldest row without a vector."),
    "embedding_seconds_left": ("gauge", "Seconds until all have one, at the pace of late; absent while unknown."),
    "turns_indexed_total": ("counter", "Turns added to the word index."),
    "rows_embedded_total": ("counter", "Rows embedded in the background."),
    "embedding_failures_total": ("counter", "Failed attempts to embed rows in the background."),
    "jobs_waiting": ("gauge", "Jobs that wait for a worker, such as windows to learn."),
    "jobs_running": ("gauge", "Jobs that workers have begun."),
    "oldest_job_waiting_seconds": ("gauge", "Age of the oldest waiting job."),
    "stalled_organisations": ("gauge", "Organisations whose learning waits for their model provider."),
    "worker_alive": ("gauge", "1 while a worker runs the schedules, else 0."),
    "database_up": ("gauge", "1 while the database answers this process, else 0."),
    "windows_learned_total": ("counter", "Windows learned."),
    "windows_failed_total": ("counter", "Windows that failed at least once and were tried again."),
    "windows_set_aside_total": ("counter", "Windows that were given up after several attempts."),
    "model_calls_total": ("counter", "Calls of models that were paid for."),
    "model_input_tokens_total": ("counter", "Tokens sent to models."),
    "model_output_tokens_total": ("counter", "Tokens received from models."),
}
PROCESS_METRICS = {
    "process_leads": ("gauge", "1 if this process runs the schedules, else 0."),
    "process_start_time_seconds": ("gauge", "When this process began, in seconds since 1970."),
    "process_cpu_seconds_total": ("counter", "Processor time of this process."),
    "process_resident_memory_bytes": ("gauge", "Memory of this process; absent where unknown."),
    "requests_in_progress": ("gauge", "Requests under way in this server."),
}
LATENCY, ANSWERS = "request_duration_seconds", "requests_total"
REQUEST_METRICS = {
    LATENCY: ("histogram", "From a request to the last byte of its answer, by class of route."),
    ANSWERS: ("counter", "Requests by class of route and class of status; none where the caller went away."),
}
METRICS = {**DATABASE_METRICS, **PROCESS_METRICS, **REQUEST_METRICS}
STARTED_AT = time.time()
MEMORY = Path("/proc/self/statm")


def write_metrics(parts: Reflexio, requests: RequestMeter | None = None) -> str:
    """The page of metrics of this process; with those of requests in a server."""
    values = {**_database_values(parts), **_process_values(parts, requests)}
    lines = [line for name, value in values.items() if value is not None for line in _metric(name, {"": value})]
    if requests:
        lines += _metric(LATENCY, dict(_latency(requests)))
        answers = {f'{{route="{name}",status="{status}"}}': n for (name, status), n in sorted(requests.answers.items())}
        lines += _metric(ANSWERS, answers)
    return "\n".join(lines) + "\n"


def _database_values(parts: Reflexio) -> dict[str, Number]:
    index, work = parts.index_status, parts.work_status
    counts = work.counts
    return {
        **index.backlog(),
        "turns_indexed_total": index.counts.turns_indexed,
        "rows_embedded_total": index.counts.rows_embedded,
        "embedding_failures_total": index.counts.embedding_failures,
        "jobs_waiting": counts.jobs_waiting,
        "jobs_running": counts.jobs_running,
        "oldest_job_waiting_seconds": max(0, parts.clock.now() - counts.waiting_since) if counts.waiting_since else 0,
        "stalled_organisations": counts.stalled_organisations,
        "worker_alive": int(work.has_worker),
        "database_up": int(work.database_answers),
        "windows_learned_total": counts.windows_learned,
        "windows_failed_total": counts.windows_failed,
        "windows_set_aside_total": counts.windows_set_aside,
        "model_calls_total": counts.model_calls,
        "model_input_tokens_total": counts.input_tokens,
        "model_output_tokens_total": counts.output_tokens,
    }


def _process_values(parts: Reflexio, requests: RequestMeter | None) -> dict[str, Number]:
    return {
        "process_leads": int(parts.work_status.is_leader),
        "process_start_time_seconds": round(STARTED_AT, 3),
        "process_cpu_seconds_total": round(time.process_time(), 3),
        "process_resident_memory_bytes": _memory(),
        "requests_in_progress": requests.in_progress if requests else None,
    }


def _memory() -> int | None:
    if not MEMORY.exists():
        return None
    return int(MEMORY.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _latency(requests: RequestMeter) -> Iterator[tuple[str, Number]]:
    for name, histogram in requests.durations.items():
        total = 0
        for bound, total in histogram.cumulative():
            yield f'_bucket{{route="{name}",le="{bound}"}}', total
        yield f'_sum{{route="{name}"}}', round(histogram.seconds, 6)
        yield f'_count{{route="{name}"}}', total


def _metric(name: str, samples: Mapping[str, Number]) -> list[str]:
    kind, words = METRICS[name]
    head = [f"# HELP reflexio_{name} {words}", f"# TYPE reflexio_{name} {kind}"]
    return [*head, *(f"reflexio_{name}{suffix} {value}" for suffix, value in samples.items())]
