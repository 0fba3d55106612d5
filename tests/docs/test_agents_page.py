"""The page about agents names every event, every evaluator and every reason to stop."""

import re
from typing import get_args

import pytest

from reflexio.agents import events
from reflexio.agents.api import Options
from tests.docs.markdown import page

PAGE = page("docs/how-to/agents.md")
EVENTS = [event.name for event in events.ReflexionEvent.__subclasses__()]
EVALUATORS = ["UnitTests", "Schema", "ExactMatch", "Regex", "Judge", "All", "Any", "Weighted"]


@pytest.mark.parametrize("name", sorted(set(EVENTS)))
def test_every_event_has_a_row(name: str) -> None:
    assert f"`{name}`" in PAGE.sections()["Events"]


@pytest.mark.parametrize("name", EVALUATORS)
def test_every_evaluator_has_a_row(name: str) -> None:
    assert f"`{name}(" in PAGE.sections()["Evaluators"]


@pytest.mark.parametrize("reason", get_args(events.StopReason))
def test_every_reason_to_stop_is_named(reason: str) -> None:
    assert re.search(rf"[`\"]{reason}[`\"]", PAGE.sections()["When something fails"])


@pytest.mark.parametrize("option", sorted(Options.__annotations__))
def test_every_option_is_in_the_docstring(option: str) -> None:
    from reflexio.agents import reflexion

    assert f"`{option}`" in (reflexion.__doc__ or "")
