"""`reflexio demo` tells the whole loop: corrected, learned, approved, and in the prompt of the next customer."""

import os
import re
import subprocess
import sys

import pytest

from reflexio.cli.demo import CONVERSATIONS, INSTRUCTIONS, NEXT, RETURNING

HEADINGS = r"^\d\. .+$"


def run_demo() -> str:
    # A proxy that does not exist: only loopback is called, and not by way of it.
    environment = {**os.environ, "http_proxy": "http://127.0.0.1:9", "COLUMNS": "80"}
    command = [sys.executable, "-m", "reflexio", "demo"]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=120).stdout


@pytest.fixture(scope="module")
def output() -> str:
    return run_demo()


def one_line(text: str) -> str:
    """The words without the frames and line breaks of the terminal."""
    return " ".join(re.sub(r"[│╭╮╰╯─┃┏┓┡┩┠┨]", " ", text).split())


def prompts(output: str) -> list[str]:
    """What the agent is sent: before the approval, after it, and when a customer comes back."""
    _, before, after, back = output.split(one_line(INSTRUCTIONS))
    return [one_line(part) for part in (before, after, back)]


def test_the_approved_rule_is_in_the_prompt_of_another_customer(output: str) -> None:
    before, after, _ = prompts(output)
    for prompt in (before, after):
        assert f"Customer: {NEXT['asks']}" in prompt
    assert "neighbours" not in before
    assert "What works for everybody:" in after
    assert "neighbours" in after
    assert NEXT["user"] not in {conversation["user"] for conversation in CONVERSATIONS}
    assert "The demo plays the reviewer and approves it" in output


def test_what_a_customer_said_is_in_the_next_prompt_about_something_else(output: str) -> None:
    back = prompts(output)[2]
    assert f"Customer: {RETURNING['asks']}" in back
    assert "deaf" in back
    assert "neighbours" not in back


def test_it_reads_in_order_in_eighty_columns(output: str) -> None:
    assert max(map(len, output.splitlines())) <= 80
    headings = re.findall(HEADINGS, output, flags=re.MULTILINE)
    assert [heading[0] for heading in headings] == list("123456")
    assert "reflexio review" in output.splitlines()[-1]


def test_it_says_the_same_each_time(output: str) -> None:
    assert run_demo() == output
