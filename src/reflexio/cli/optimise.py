"""`reflexio optimise`: search for better wording of a playbook on a running server, and show the result."""

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from reflexio.cli.exit_codes import INTERRUPTED
from reflexio.cli.options import AsJson, Url, connect
from reflexio.cli.output import moment, print_json, print_response, print_table
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
JobId = Annotated[int, typer.Argument(help="The number that `reflexio optimise list` shows.")]
POLL_SECONDS = 0.25
DIFF_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@app.command(epilog="Example: reflexio optimise run 12 --dry-run")
def run(
    playbook_id: Annotated[int, typer.Argument(help="The number of the playbook.")],
    user: Annotated[bool, typer.Option("--user", help="The number is that of a user playbook.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the maximum number of calls.")] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the end, with its progress.")] = True,
    seed: Annotated[
        int | None, typer.Option(help="Random seed; the same seed and answers make the same search.")
    ] = None,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Search for better wording of one playbook, tested against your assistant. The winner waits for review.

    At the end it shows what was tried and what changed. The exit code is 1 when the job was skipped or failed.
    """
    agent_playbook_id, user_playbook_id = (None, playbook_id) if user else (playbook_id, None)
    with connect(url) as client:
        response = client.run_playbook_optimization(
            agent_playbook_id, dry_run, user_playbook_id=user_playbook_id, seed=seed
        )
        success = response.success
        if dry_run and not as_json:
            _print_estimate(response)
        elif dry_run or response.job_id is None or response.status == "skipped" or not wait:
            words = f"Job {response.job_id} is {response.status}. {response.msg}"
            print_response(response, words, as_json=as_json)
        else:
            _follow(client, response.job_id)
            result = client.get_playbook_optimization(response.job_id)
            _print_result(result, as_json=as_json)
            success = result.job.status == "completed"
    if not success:
        raise typer.Exit(1)


@app.command("list", epilog="Example: reflexio optimise list --limit 5")
def list_jobs(
    limit: Annotated[int, typer.Option(help="Maximum number of jobs.", min=1, max=1000)] = 20,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """List the jobs, newest first.

    In a pipe a line has: job, playbook, status, start, evaluations, best score, reason.
    """
    with connect(url) as client:
        jobs = client.get_playbook_optimizations(limit).jobs
    if as_json:
        print_json({"jobs": jobs})
        return
    columns = ("job", "playbook", "status", "started", "evaluations", "best", "reason")
    print_table(columns, map(_row, jobs), empty="Nothing was optimised yet; `reflexio optimise run` begins.")


def _row(job: "PlaybookOptimizationJob") -> tuple[object, ...]:
    best = "" if job.best_score is None else f"{job.best_score:.2f}"
    target = f"{job.target_kind} {job.target_id}"
    return job.job_id, target, job.status, moment(job.created_at), job.evaluations, best, job.decision_reason


@app.command(epilog="Example: reflexio optimise show 3")
def show(job_id: JobId, as_json: AsJson = False, url: Url = "") -> None:
    """Show one job: the candidates, the decision, and how the winner differs from the incumbent."""
    with connect(url) as client:
        _print_result(client.get_playbook_optimization(job_id), as_json=as_json)


@app.command(epilog="Example: reflexio optimise cancel 3")
def cancel(job_id: JobId, as_json: AsJson = False, url: Url = "") -> None:
    """Cancel a job. No playbook is changed. The exit code is 1 when the job had ended already."""
    with connect(url) as client:
        response = client.cancel_playbook_optimization(job_id)
    print_response(response, f"Job {job_id}: {response.msg}", as_json=as_json)
    if not response.success:
        raise typer.Exit(1)


def _print_estimate(response: "RunPlaybookOptimizationResponse") -> None:
    from reflexio.models.optimisation import OptimizationEstimate

    estimate = response.estimate or OptimizationEstimate()
    echo(response.msg or "")
    echo(f"windows to search with {estimate.train_windows}, held out {estimate.validation_windows}")
    echo(
        f"at most: assistant calls {estimate.assistant_calls} (each retried up to "
        f"{estimate.assistant_retries_per_call} times), judge calls {estimate.judge_calls}, "
        f"reflection calls {estimate.reflection_calls}"
    )


def _follow(client: "ReflexioClient", job_id: int) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from reflexio.cli.console import Terminal

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[counts]}")
    try:
        with Progress(*columns, console=Terminal(stderr=True), disable=not sys.stderr.isatty()) as progress:
            bar = progress.add_task(f"job {job_id}", total=None, counts="")
            while not (job := client.get_playbook_optimization(job_id, details=False).job).has_ended:
                most, done = job.max_metric_calls or None, job.metric_calls
                progress.update(bar, total=most, completed=done, counts=_counts(job))
                time.sleep(POLL_SECONDS)
            done = max(1, job.metric_calls)
            progress.update(bar, total=done, completed=done, counts=_counts(job))
    except KeyboardInterrupt:
        echo(f"The server goes on with it. To stop it: reflexio optimise cancel {job_id}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _counts(job: "PlaybookOptimizationJob") -> str:
    failed = f" ({job.aborted_evaluations} failed)" if job.aborted_evaluations else ""
    return (
        f"{job.status}, evaluations {job.evaluations}{failed}, calls: assistant {job.assistant_calls}, "
        f"judge {job.judge_calls}, reflection {job.reflection_calls}"
    )


def _print_result(result: "GetPlaybookOptimizationResponse", *, as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    from rich.text import Text

    from reflexio.cli.console import unlimited

    console, job = unlimited(), result.job
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
