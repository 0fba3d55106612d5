"""What `reflexio optimise` shows: a job under way, what it tried, and how the winner differs from the incumbent."""

import difflib
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from reflexio.client.sync import ReflexioClient
from reflexio.models.optimisation import (
    GetPlaybookOptimizationResponse,
    OptimizationEstimate,
    PlaybookOptimizationJob,
    RunPlaybookOptimizationResponse,
)

LOOK_EVERY = 0.25
COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def jobs(found: Sequence[PlaybookOptimizationJob]) -> None:
    table = Table()
    for column in ("job", "playbook", "status", "begun", "evaluations", "best", "why"):
        table.add_column(column)
    for job in found:
        began = datetime.fromtimestamp(job.created_at, UTC).strftime("%Y-%m-%d %H:%M")
        best = "" if job.best_score is None else f"{job.best_score:.2f}"
        target, why = f"{job.target_kind} {job.target_id}", Text(job.decision_reason)
        table.add_row(str(job.job_id), target, job.status, began, str(job.evaluations), best, why)
    Console().print(table)


def estimate(answer: RunPlaybookOptimizationResponse) -> None:
    known = answer.estimate or OptimizationEstimate()
    Console().print(answer.msg or "")
    Console().print(f"windows to search with {known.train_windows}, held out {known.validation_windows}")
    Console().print(
        f"at most: assistant calls {known.assistant_calls} (each tried again up to "
        f"{known.assistant_retries_per_call} times), judge calls {known.judge_calls}, "
        f"reflection calls {known.reflection_calls}"
    )


def follow(client: ReflexioClient, job_id: int) -> None:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[told]}")
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task(f"job {job_id}", total=None, told="")
        while not (job := client.get_playbook_optimization(job_id, details=False).job).has_ended:
            progress.update(bar, total=job.max_metric_calls or None, completed=job.metric_calls, told=_counts(job))
            time.sleep(LOOK_EVERY)
        progress.update(bar, total=max(1, job.metric_calls), completed=max(1, job.metric_calls), told=_counts(job))


def _counts(job: PlaybookOptimizationJob) -> str:
    failed = f" ({job.aborted_evaluations} failed)" if job.aborted_evaluations else ""
    return (
        f"{job.status}, evaluations {job.evaluations}{failed}, calls: assistant {job.assistant_calls}, "
        f"judge {job.judge_calls}, reflection {job.reflection_calls}"
    )


def whole(found: GetPlaybookOptimizationResponse) -> None:
    console, job = Console(), found.job
    console.print(f"[bold]Job {job.job_id}[/bold], {job.target_kind} {job.target_id}: {_counts(job)}, seed {job.seed}")
    console.print(Text(job.decision_reason))
    if found.candidates:
        console.print(_wordings(found))
    if job.winner_content is not None:
        console.print(f"It is {job.target_kind} {job.successor_target_id} now. What changed:")
        console.print(_difference(job.incumbent_content, job.winner_content))


def _wordings(found: GetPlaybookOptimizationResponse) -> Table:
    table = Table(show_lines=True)
    for column in ("", "tried in", "held-out score", "wording"):
        table.add_column(column)
    for each in found.candidates:
        tried = sum(made.candidate_id == each.candidate_id for made in found.evaluations)
        score = "" if each.aggregate_score is None else f"{each.aggregate_score:.2f}"
        name = "incumbent" if each.candidate_index == 0 else f"{each.candidate_index}"
        mark = f"{name}, winner" if each.is_winner else name
        table.add_row(mark, str(tried), score, Text(each.content))
    return table


def _difference(before: str, after: str) -> Text:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "incumbent", "winner", lineterm="")
    return Text("\n").join(Text(line, style=COLOURS.get(line[:1], "")) for line in lines)
