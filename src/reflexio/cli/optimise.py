"""`reflexio optimise`: search for better wording of a playbook on a running server, and look at what came of it."""

from typing import Annotated

import typer

app = typer.Typer(help="Search for better wording of playbooks, against the real assistant.", no_args_is_help=True)
Url = Annotated[str, typer.Option(help="Where the server is (REFLEXIO_URL, else http://127.0.0.1:8081).")]


@app.command()
def run(
    playbook_id: Annotated[int, typer.Argument(help="The number of the playbook.")],
    user: Annotated[bool, typer.Option("--user", help="It is a user playbook, not an agent playbook.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many calls it can cost at most.")] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Follow it to its end.")] = True,
    seed: Annotated[int | None, typer.Option(help="The same seed and answers make the same search.")] = None,
    url: Url = "",
) -> None:
    """Search for better wording of one playbook, and follow it live."""
    from reflexio.cli import optimise_view as view
    from reflexio.client.sync import ReflexioClient

    agent_playbook_id, user_playbook_id = (None, playbook_id) if user else (playbook_id, None)
    with ReflexioClient(url_endpoint=url) as client:
        begun = client.run_playbook_optimization(
            agent_playbook_id, dry_run, user_playbook_id=user_playbook_id, seed=seed
        )
        success = begun.success
        if dry_run:
            view.estimate(begun)
        elif begun.job_id is None or begun.status == "skipped" or not wait:
            typer.echo(f"Job {begun.job_id} is {begun.status}. {begun.msg}")
        else:
            view.follow(client, begun.job_id)
            ended = client.get_playbook_optimization(begun.job_id)
            view.whole(ended)
            success = ended.job.status == "completed"
    if not success:
        raise typer.Exit(1)


@app.command("list")
def list_jobs(
    limit: Annotated[int, typer.Option(help="How many, newest first.", min=1, max=1000)] = 20, url: Url = ""
) -> None:
    """Show the jobs, newest first."""
    from reflexio.cli import optimise_view as view
    from reflexio.client.sync import ReflexioClient

    with ReflexioClient(url_endpoint=url) as client:
        view.jobs(client.get_playbook_optimizations(limit).jobs)


@app.command()
def show(job_id: int, url: Url = "") -> None:
    """Show one job: what was tried, what was decided, and how the winner differs from the incumbent."""
    from reflexio.cli import optimise_view as view
    from reflexio.client.sync import ReflexioClient

    with ReflexioClient(url_endpoint=url) as client:
        view.whole(client.get_playbook_optimization(job_id))


@app.command()
def cancel(job_id: int, url: Url = "") -> None:
    """Stop a job. Nothing is changed."""
    from reflexio.client.sync import ReflexioClient

    with ReflexioClient(url_endpoint=url) as client:
        done = client.cancel_playbook_optimization(job_id)
    typer.echo(f"Job {job_id}: {done.msg}")
    if not done.success:
        raise typer.Exit(1)
