"""Examines an installation: database, embedder, each configured model, and how far learning is. Shows no secrets.

Models and embedders are asked one tiny question each. Each finding says what to do when something is broken.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import reflexio
from reflexio.app import DATABASE, choose_embedder, open_database
from reflexio.errors import ProviderError, ReflexioError, UnreadableAnswer
from reflexio.model_choice import ChatModels, configured_models, model_address
from reflexio.models.config import Config
from reflexio.models.usage import Stall
from reflexio.organisations.configuration import stored_config
from reflexio.organisations.keys import DEFAULT_ORG
from reflexio.ports.chat import TRIAL, TrialAnswer
from reflexio.ports.storage import Database, LearnedWindow, Tx, Waiting
from reflexio.settings import Settings
from reflexio.storage.migrate import REVISIONS

PAGE_SIZE = 1000
SECONDS = 60.0
"""A tiny question that takes longer is a finding of its own."""
NOT_ANSWERED = "Start the model's server, or correct its address and name; then run this again."


@dataclass(frozen=True)
class Finding:
    """What was examined, whether it is in order, what was seen, and what to do."""

    part: str
    is_ok: bool
    detail: str
    remedy: str = ""


async def examine(settings: Settings) -> AsyncIterator[Finding]:
    """All findings, as they come."""
    yield Finding("version", True, f"Reflexio {reflexio.__version__}")
    yield await _examine_embedder(settings)
    path = settings.data / DATABASE
    if not path.exists():
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
        yield Finding("database", True, f"{path}, schema {REVISIONS[-1]}")
        configs = {org_id: await database.of(org_id).read(stored_config) for org_id in await _organisations(database)}
        async for finding in _examine_models(settings, configs):
            yield finding
        async for finding in _examine_learning(database, list(configs)):
            yield finding
    finally:
        await database.close()


async def _organisations(database: Database) -> list[str]:
    keys = await database.read_keys(lambda rows: rows.list())
    waiting = await database.backlog(PAGE_SIZE)
    known = {*await database.configured(), *(key.org_id for key in keys), *(user.org_id for user in waiting)}
    return [DEFAULT_ORG, *sorted(known - {DEFAULT_ORG})]


async def _examine_embedder(settings: Settings) -> Finding:
    part = f"embedder {settings.embedder}"
    try:
        embedder = choose_embedder(settings)
    except ReflexioError as error:
        return Finding(part, False, str(error), "Correct REFLEXIO_EMBEDDER or the variable that the message names.")
    started = time.perf_counter()
    try:
        async with asyncio.timeout(SECONDS):
            await embedder.embed(["reflexio doctor"])
    except (ReflexioError, TimeoutError) as error:
        words = str(error) or f"no answer within {SECONDS:g} s"
        return Finding(part, False, words, "Until it works, search finds by words only. Check its address and key.")
    finally:
        await embedder.aclose()
    runtime = getattr(embedder, "runtime", "")
    milliseconds = (time.perf_counter() - started) * 1000
    ran = f" in {runtime}" if runtime else ""
    return Finding(part, True, f"{embedder.name}{ran}, {embedder.dimensions} dimensions, {milliseconds:.0f} ms")


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
                detail = error.detail or str(error)
                yield Finding(f"model of {org_id}", False, detail, f"Correct {place}, or what the message names.")
                continue
            if address not in seen:
                seen.add(address)
                yield await _examine_model(chats, config, name, org_id)


async def _examine_model(chats: ChatModels, config: Config, name: str, org_id: str) -> Finding:
    part, chat, started = f"model {name} of {org_id}", chats.get(config, name), time.perf_counter()
    try:
        reply = await chat.ask(TRIAL, TrialAnswer)
    except UnreadableAnswer as error:
        remedy = "It answers, but in no structure: choose a larger model, or set llm_config.structured_output."
        is_answered = error.spend is not None and error.spend.output_tokens
        return Finding(part, False, str(error), remedy if is_answered else NOT_ANSWERED)
    except ProviderError as error:
        return Finding(part, False, str(error), NOT_ANSWERED)
    finally:
        await chat.aclose()
    seconds, spend = time.perf_counter() - started, reply.spend
    tokens = f"{spend.input_tokens} tokens sent and {spend.output_tokens} received"
    counted = f"{tokens}, estimated" if spend.estimated_calls else tokens
    detail = f"{seconds:.1f} s, {counted}, {spend.calls} call(s), structured output by {chat.structured_output}"
    return Finding(part, True, detail)


async def _examine_learning(database: Database, organisations: list[str]) -> AsyncIterator[Finding]:
    waiting = await _backlog(database)
    for org_id in organisations:
        part, users = f"learning of {org_id}", [user for user in waiting if user.org_id == org_id]
        stall, set_aside = await database.of(org_id).read(_read_learning)
        if stall:
            remedy = "Mend what the message says; learning resumes by itself, and nothing is lost."
            yield Finding(part, False, f"stalled: {stall.message}", remedy)
        if set_aside:
            words = f"{len(set_aside)} windows are set aside; the last one: {set_aside[0].error}"
            yield Finding(part, False, words, "Mend the reason, then rerun their users: a rerun takes them up.")
        failed = [user for user in users if user.attempts]
        words = f"{len(users)} users with turns that are not learned yet"
        if failed:
            words += f", {len(failed)} of them tried again after: {failed[0].last_error}"
        yield Finding(part, True, words)


async def _backlog(database: Database) -> list[Waiting]:
    users: list[Waiting] = []
    while page := await database.backlog(PAGE_SIZE, after=users[-1] if users else None):
        users += page
    return users


def _read_learning(tx: Tx) -> tuple[Stall | None, list[LearnedWindow]]:
    return tx.stalls.get(), tx.windows.set_aside(PAGE_SIZE)
