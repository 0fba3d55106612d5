"""`reflexio optimise`: search for better wording of a playbook on a running server, and show the result."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from reflexio.cli.terminal import echo

if TYPE_CHECKING:  # at run time these load where they are used: a starting server needs none of them
    from rich.table import Table
    from rich.text import Text

    from reflexio.client.sync import ReflexioClient
    from reflexio.models.optimisation import (
        GetPlaybookOptimizationResponse,
        PlaybookOptimizationJob,
        RunPlaybookOptimizationResponse,
    )

app = typer.Typer(
    help="Search for better wording of playbooks, tested against the real assistant.", no_args_is_help=True
)
Url = Annotated[str, typer.Option(help="Address of the server (REFLEXIO_URL, else http://127.0.0.1:8081).")]
JobId = Annotated[int, typer.Argument(help="The number that `reflexio optimise list` shows.")]
POLL_SECONDS = 0.25
DIFF_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def _connect(url: str) -> "ReflexioClient":
    from reflexio.client.sync import ReflexioClient

    return ReflexioClient(url_endpoint=url)


@app.command()
def run(
    playbook_id: Annotated[int, typer.Argument(help="The number of the playbook.")],
    user: Annotated[bool, typer.Option("--user", help="The number is that of a user playbook.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the maximum number of calls.")] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the end.")] = True,
    seed: Annotated[
        int | None, typer.Option(help="Random seed; the same seed and answers make the same search.")
    ] = None,
    url: Url = "",
) -> None:
    """Search for better wording of one playbook, and show the progress."""
    agent_playbook_id, user_playbook_id = (None, playbook_id) if user else (playbook_id, None)
    with _connect(url) as client:
        response = client.run_playbook_optimization(
            agent_playbook_id, dry_run, user_playbook_id=user_playbook_id, seed=seed
        )
        success = response.success
        if dry_run:
            _print_estimate(response)
        elif response.job_id is None or response.status == "skipped" or not wait:
            echo(f"Job {response.job_id} is {response.status}. {response.msg}")
        else:
            _follow(client, response.job_id)
            result = client.get_playbook_optimization(response.job_id)
            _print_result(result)
            success = result.job.status == "completed"
    if not success:
        raise typer.Exit(1)


@app.command("list")
def list_jobs(
    limit: Annotated[int, typer.Option(help="Maximum number of jobs.", min=1, max=1000)] = 20, url: Url = ""
) -> None:
    """List the jobs, newest first."""
    from rich.table import Table
    from rich.text import Text

    from reflexio.cli.console import Terminal

    table = Table("job", "playbook", "status", "started", "evaluations", "best", "reason")
    with _connect(url) as client:
        for job in client.get_playbook_optimizations(limit).jobs:
            started = datetime.fromtimestamp(job.created_at, UTC).strftime("%Y-%m-%d %H:%M")
            best = "" if job.best_score is None else f"{job.best_score:.2f}"
            target, reason = f"{job.target_kind} {job.target_id}", Text(job.decision_reason)
            table.add_row(str(job.job_id), target, job.status, started, str(job.evaluations), best, reason)
    Terminal().print(table)


@app.command()
def show(job_id: JobId, url: Url = "") -> None:
    """Show one job: the candidates, the decision, and how the winner differs from the incumbent."""
    with _connect(url) as client:
        _print_result(client.get_playbook_optimization(job_id))


@app.command()
def cancel(job_id: JobId, url: Url = "") -> None:
    """Cancel a job. No playbook is changed."""
    with _connect(url) as client:
        response = client.cancel_playbook_optimization(job_id)
    echo(f"Job {job_id}: {response.msg}")
    if not response.success:
        raise typer.Exit(1)


def _print_estimate(response: "RunPlaybookOptimizationResponse") -> None:
    from reflexio.cli.console import Terminal
    from reflexio.models.optimisation import OptimizationEstimate

    console, estimate = Terminal(), response.estimate or OptimizationEstimate()
    console.print(response.msg or "")
    console.print(f"windows to search with {estimate.train_windows}, held out {estimate.validation_windows}")
    console.print(
        f"at most: assistant calls {estimate.assistant_calls} (each retried up to "
        f"{estimate.assistant_retries_per_call} times), judge calls {estimate.judge_calls}, "
        f"reflection calls {estimate.reflection_calls}"
    )


def _follow(client: "ReflexioClient", job_id: int) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from reflexio.cli.console import Terminal

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[counts]}")
    with Progress(*columns, console=Terminal(stderr=True)) as progress:
        bar = progress.add_task(f"job {job_id}", total=None, counts="")
        while not (job := client.get_playbook_optimization(job_id, details=False).job).has_ended:
            progress.update(bar, total=job.max_metric_calls or None, completed=job.metric_calls, counts=_counts(job))
            time.sleep(POLL_SECONDS)
        progress.update(bar, total=max(1, job.metric_calls), completed=max(1, job.metric_calls), counts=_counts(job))


def _counts(job: "PlaybookOptimizationJob") -> str:
    failed = f" ({job.aborted_evaluations} failed)" if job.aborted_evaluations else ""
    return (
        f"{job.status}, evaluations {job.evaluations}{failed}, calls: assistant {job.assistant_calls}, "
        f"judge {job.judge_calls}, reflection {job.reflection_calls}"
    )


def _print_result(result: "GetPlaybookOptimizationResponse") -> None:
    from rich.text import Text

    from reflexio.cli.console import Terminal

    console, job = Terminal(), result.job
    console.print(f"[bold]Job {job.job_id}[/bold], {job.target_kind} {job.target_id}: {_counts(job)}, seed {job.seed}")
    console.print(Text(job.decision_reason))
    if result.candidates:
        console.print(_candidate_table(result))
    if job.winner_content is not None:
        console.print(f"The winner is {job.target_kind} {job.successor_target_id} now. What changed:")
        console.print(_difference(job.incumbent_content, job.winner_content))


def _candidate_table(result: "GetPlaybookOptimizationResponse") -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table("", "evaluations", "held-out score", "wording", show_lines=True)
    for candidate in result.candidates:
        evaluations = sum(evaluation.candidate_id == candidate.candidate_id for evaluation in result.evaluations)
        score = "" if candidate.aggregate_score is None else f"{candidate.aggregate_score:.2f}"
        name = "incumbent" if candidate.candidate_index == 0 else f"{candidate.candidate_index}"
        mark = f"{name}, winner" if candidate.is_winner else name
        table.add_row(mark, str(evaluations), score, Text(candidate.content))
    return table


def _difference(before: str, after: str) -> "Text":
    from difflib import unified_diff

    from rich.text import Text

    lines = unified_diff(before.splitlines(), after.splitlines(), "incumbent", "winner", lineterm="")
    return Text("\n").join(Text(line, style=DIFF_COLOURS.get(line[:1], "")) for line in lines)
