"""Examines an installation, or one organisation of a running server. Shows no secrets.

An installation: the machine, database, embedder, each configured model, how far learning is, and what waits for people.
Models and embedders are asked one tiny question each. One organisation: what concerns its callers, without the
operator's paths and without a word about others. Each finding says what to do when something is broken.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import reflexio
from reflexio.app import DATABASE, Reflexio, choose_embedder, open_database, outgoing_addresses
from reflexio.doctor import machine
from reflexio.doctor.finding import Finding as Finding
from reflexio.doctor.finding import age
from reflexio.doctor.review import read_review_state, review_findings
from reflexio.errors import ProviderError, ReflexioError, StorageUnavailable, UnreadableAnswer
from reflexio.jobs.token_budget import record_spend
from reflexio.model_choice import ChatModels, configured_models, model_address, model_problems
from reflexio.models.config import Config
from reflexio.models.extraction import Spend
from reflexio.models.usage import Stall
from reflexio.organisations.configuration import stored_config
from reflexio.organisations.keys import DEFAULT_ORG
from reflexio.ports.chat import TRIAL, TrialAnswer
from reflexio.ports.clock import SystemClock
from reflexio.ports.storage import Database, IndexBacklog, LearnedWindow, Tx, WaitingUsers
from reflexio.settings import Settings
from reflexio.storage.migrate import REVISIONS

PAGE_SIZE = 1000
SECONDS = 60.0
"""A tiny question that takes longer is a finding of its own."""
OPERATION = "check"
"""Under which the usage counts what examining the models of an organisation costs."""
LONGEST_BACKLOG, LONGEST_LEARNING = 3600, 86_400
"""Seconds after which rows without a vector, and turns that nobody learned from, are a finding."""
RESTORE = "Stop the server and restore a backup; if there is none, keep a copy of the file and report this."
SECOND_LOOK = 3.0
"""Seconds in which a server embeds some rows."""
NOT_ANSWERED = "Start the model's server, or correct its address and name; then run this again."


async def examine(settings: Settings, url: str = "") -> AsyncIterator[Finding]:
    """All findings, as they come. The server at `url` is only asked for its version."""
    now = SystemClock().now()
    yield machine.examine_versions()
    async for finding in machine.examine_server(url, now):
        yield finding
    yield machine.examine_disk(settings.data)
    for finding in machine.examine_memory():
        yield finding
    embedding, model = await _examine_embedder(settings)
    yield embedding
    path = settings.data / DATABASE
    place = "PostgreSQL" if settings.database else str(path)
    if not settings.database and not path.exists():
        yield Finding("database", True, f"{path} does not exist yet; `reflexio serve` creates it")
        async for finding in _examine_models(settings, {DEFAULT_ORG: Config()}):
            yield finding
        return
    try:
        database = await open_database(settings)
    except ReflexioError as error:
        yield Finding("database", False, str(error), "Do what the message says; nothing was changed.")
        return
    try:
        yield await _examine_database(database, f"{place}, schema {REVISIONS[-1]}")
        async for finding in _examine_contents(settings, database, model, now):
            yield finding
    except StorageUnavailable as error:
        yield Finding("contents", False, str(error), RESTORE)
    finally:
        await database.close()


async def _examine_contents(settings: Settings, database: Database, model: str, now: int) -> AsyncIterator[Finding]:
    configs = {org_id: await database.of(org_id).read(stored_config) for org_id in await _organisations(database)}
    async for finding in _examine_models(settings, configs):
        yield finding
    yield await machine.examine_clock(database, list(configs), now)
    yield await _examine_backlog(database, now)
    async for finding in _examine_learning(database, list(configs), model=model, now=now):
        yield finding


async def _examine_database(database: Database, words: str) -> Finding:
    """Reads every page and compares the tables with each other."""
    try:
        problems = await database.problems()
    except ReflexioError as error:
        problems = [str(error)]
    if not problems:
        return Finding("database", True, words)
    return Finding("database", False, f"{words}: {'; '.join(problems)}", RESTORE)


async def examine_organisation(parts: Reflexio, org_id: str) -> list[Finding]:
    """What concerns one organisation, seen from inside a running server. Asks no model and costs nothing."""
    store = parts.database.of(org_id)
    config = await store.read(stored_config)
    embedder, now = f"{parts.embedder.name}, {parts.embedder.dimensions} dimensions", parts.clock.now()
    return [
        Finding("version", True, f"Reflexio {reflexio.__version__}"),
        Finding("embedder", True, embedder),
        *_configured(parts.settings, config),
        *_learning("learning", await store.read(_read_learning), now),
        *review_findings("review", await store.read(lambda tx: read_review_state(tx, parts.embedder.name, now))),
    ]


async def examine_models(parts: Reflexio, org_id: str) -> list[Finding]:
    """Asks each model of one organisation a tiny question, which counts as its usage."""
    settings, store = parts.settings, parts.database.of(org_id)
    config = await store.read(stored_config)
    chats, findings = ChatModels(settings, outgoing_addresses(settings, parts.database)), []
    for name, place in dict(configured_models(settings, config)).items():
        part = f"model {name}"
        try:
            model_address(settings, config, name)
        except ReflexioError as error:
            findings.append(_misconfigured(part, error, place))
            continue
        finding, spend = await _examine_model(chats, config, name, part)
        await record_spend(store, spend, parts.clock, OPERATION)
        findings.append(finding)
    return findings or [_no_model("model")]


def _configured(settings: Settings, config: Config) -> Iterator[Finding]:
    """The models in use, as far as they can be judged without a call."""
    problems = model_problems(settings, config)
    yield from (Finding("model", False, problem, "Correct what the message names.") for problem in problems)
    models = list(configured_models(settings, config))
    if not models:
        yield _no_model("model")
    elif not problems:
        yield Finding("model", True, ", ".join(f"{name} ({place})" for name, place in models))


async def _organisations(database: Database) -> list[str]:
    keys = await database.read_keys(lambda rows: rows.list())
    waiting = await database.waiting_organisations(PAGE_SIZE)
    known = {*await database.configured(), *(key.org_id for key in keys), *waiting}
    return [DEFAULT_ORG, *sorted(known - {DEFAULT_ORG})]


async def _examine_embedder(settings: Settings) -> tuple[Finding, str]:
    """The finding, and the name under which vectors are stored."""
    part = f"embedder {settings.embedder}"
    try:
        embedder = choose_embedder(settings)
    except ReflexioError as error:
        remedy = "Correct REFLEXIO_EMBEDDER or the variable that the message names."
        return Finding(part, False, str(error), remedy), ""
    started = time.perf_counter()
    try:
        async with asyncio.timeout(SECONDS):
            await embedder.embed(["reflexio doctor"])
    except (ReflexioError, TimeoutError) as error:
        words = str(error) or f"no answer within {SECONDS:g} s"
        remedy = "Until it works, search finds by words only. Check its address and key."
        return Finding(part, False, words, remedy), embedder.name
    finally:
        await embedder.aclose()
    runtime = getattr(embedder, "runtime", "")
    milliseconds = (time.perf_counter() - started) * 1000
    ran = f" in {runtime}" if runtime else ""
    detail = f"{embedder.name}{ran}, {embedder.dimensions} dimensions, {milliseconds:.0f} ms"
    return Finding(part, True, detail), embedder.name


async def _examine_models(settings: Settings, configs: dict[str, Config]) -> AsyncIterator[Finding]:
    """Each model at each address once, whatever organisations use it."""
    chats, seen = ChatModels(settings), set[object]()
    for org_id, config in configs.items():
        models = list(configured_models(settings, config))
        if not models and None not in seen:
            seen.add(None)
            detail = "none: the local learner learns, by rules"
            yield Finding(f"model of {org_id}", True, detail, "For more, set REFLEXIO_MODEL or llm_config.")
        for name, place in models:
            try:
                address = model_address(settings, config, name)
            except ReflexioError as error:
                yield _misconfigured(f"model of {org_id}", error, place)
                continue
            if address not in seen:
                seen.add(address)
                yield (await _examine_model(chats, config, name, f"model {name} of {org_id}"))[0]


def _no_model(part: str) -> Finding:
    detail = "none: the local learner learns, by rules"
    return Finding(part, True, detail, "For more, set REFLEXIO_MODEL or llm_config.")


def _misconfigured(part: str, error: ReflexioError, place: str) -> Finding:
    return Finding(part, False, error.detail or str(error), f"Correct {place}, or what the message names.")


async def _examine_model(chats: ChatModels, config: Config, name: str, part: str) -> tuple[Finding, Spend]:
    chat, started = chats.get(config, name), time.perf_counter()
    try:
        reply = await chat.ask(TRIAL, TrialAnswer)
    except UnreadableAnswer as error:
        remedy = "It answers, but in no structure: choose a larger model, or set llm_config.structured_output."
        spend = error.spend or Spend()
        return Finding(part, False, str(error), remedy if spend.output_tokens else NOT_ANSWERED), spend
    except ProviderError as error:
        return Finding(part, False, str(error), NOT_ANSWERED), error.spend or Spend()
    finally:
        await chat.aclose()
    seconds, spend = time.perf_counter() - started, reply.spend
    tokens = f"{spend.input_tokens} tokens sent and {spend.output_tokens} received"
    counted = f"{tokens}, estimated" if spend.estimated_calls else tokens
    detail = f"{seconds:.1f} s, {counted}, {spend.calls} call(s), structured output by {chat.structured_output}"
    return Finding(part, True, detail), spend


async def _examine_learning(
    database: Database, organisations: list[str], *, model: str, now: int
) -> AsyncIterator[Finding]:
    for org_id in organisations:
        store = database.of(org_id)
        for finding in _learning(f"learning of {org_id}", await store.read(_read_learning), now):
            yield finding
        state = await store.read(lambda tx: read_review_state(tx, model, now))
        for finding in review_findings(f"review of {org_id}", state):
            yield finding


async def _examine_backlog(database: Database, now: int) -> Finding:
    """Looks a second time at a backlog of old rows: they may have been imported just now."""
    before = await database.read_vectors(lambda vectors: vectors.backlog())
    finding = _backlog(before, now)
    if finding.is_ok:
        return finding
    await asyncio.sleep(SECOND_LOOK)
    after = await database.read_vectors(lambda vectors: vectors.backlog())
    return _backlog(after, now, is_shrinking=_rows(after) < _rows(before))


def _rows(backlog: IndexBacklog) -> int:
    return backlog.turns_not_indexed + backlog.turns_without_vector + backlog.learnings_without_vector


def _backlog(backlog: IndexBacklog, now: int, *, is_shrinking: bool = False) -> Finding:
    """What search does not find, or not by its meaning, yet."""
    turns = backlog.turns_not_indexed + backlog.turns_without_vector
    detail = f"{backlog.learnings_without_vector} learnings and {turns} turns are not embedded yet"
    since = min([at for at in (backlog.not_indexed_since, backlog.without_vector_since) if at], default=now)
    if now - since < LONGEST_BACKLOG or is_shrinking:
        return Finding("embedding backlog", True, detail)
    detail = f"{detail}, the oldest for {age(now - since)}; search finds them by words at most"
    remedy = "Start the server on this folder. If it runs, its log says why the embedder fails."
    return Finding("embedding backlog", False, detail, remedy)


@dataclass(frozen=True)
class LearningState:
    """How far the learning of one organisation is."""

    stall: Stall | None
    set_aside: list[LearnedWindow]
    waiting: WaitingUsers


def _read_learning(tx: Tx) -> LearningState:
    return LearningState(tx.stalls.get(), tx.windows.set_aside(PAGE_SIZE), tx.users.all_waiting())


def _learning(part: str, state: LearningState, now: int) -> Iterator[Finding]:
    if state.stall:
        remedy = "Mend what the message says; learning resumes by itself, and nothing is lost."
        yield Finding(part, False, f"stalled: {state.stall.message}", remedy)
    if state.set_aside:
        count = len(state.set_aside)
        windows = "window is" if count == 1 else "windows are"
        words = f"{count} {windows} set aside; the last one: {state.set_aside[0].error}"
        yield Finding(part, False, words, "Mend the reason, then rerun their users: a rerun takes them up.")
    waiting = state.waiting
    words = f"{waiting.count} {'user' if waiting.count == 1 else 'users'} with turns that are not learned yet"
    if waiting.failed:
        words += f", {waiting.failed} of them tried again after: {waiting.last_error}"
    waited = now - waiting.unlearned_since if waiting.count else 0
    if waited < LONGEST_LEARNING or state.stall:
        yield Finding(part, True, words)
    else:
        cause = (
            "Mend what the error says." if waiting.failed else "Start the server on this folder; one of them learns."
        )
        yield Finding(part, False, f"stuck: {words}, the first for {age(waited)}", f"{cause} Nothing is lost.")
