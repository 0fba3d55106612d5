"""The hand-written reference pages name every setting, option, field and error, with its default."""

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import pytest
import typer.main
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from reflexio import Config, ReflexioError, errors
from reflexio.cli.app import app
from reflexio.client.endpoint import DEFAULT_URL
from reflexio.models import config as config_models
from reflexio.server.problems import TITLES, status_of
from reflexio.settings import Settings, variable
from tests.docs.markdown import ROOT, Page, first_cells, page, row

SETTINGS = page("docs/reference/settings.md")
HTTP = page("docs/reference/http.md")
CLIENT = page("docs/reference/client.md")
CLI = page("docs/reference/cli.md")
CONFIG = page("docs/reference/config.md")
ERRORS = page("docs/reference/errors.md")


def _default(field: FieldInfo) -> str:
    """A field's default in the format of the tables."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "its defaults"
    if isinstance(value, list) and value:
        return "one general entry"
    return f"`{json.dumps(value.value if isinstance(value, Enum) else value)}`"


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def _with_parts(*roots: type[BaseModel]) -> list[type[BaseModel]]:
    """The models and the models of their fields."""
    seen: dict[type[BaseModel], None] = {}
    waiting = list(roots)
    while waiting:
        model = waiting.pop()
        if model not in seen:
            seen[model] = None
            waiting += [part for field in model.model_fields.values() for part in _models_in(field.annotation)]
    return sorted(seen, key=lambda model: model.__name__)


# Settings


def test_every_setting_has_a_row_with_its_default() -> None:
    server = SETTINGS.sections()["Server"]
    assert first_cells(server) == {variable(setting) for setting in fields(Settings)}
    for setting in fields(Settings):
        value = getattr(Settings(), setting.name)
        default = row(server, variable(setting))[1]
        assert default == (f"`{str(value).replace(str(Path.home()), '~')}`" if value else "none")


def test_the_client_reads_its_two_variables_and_no_other() -> None:
    client = SETTINGS.sections()["Client"]
    sources = [path.read_text() for path in (ROOT / "src" / "reflexio" / "client").rglob("*.py")]
    read = {name for source in sources for name in re.findall(r'environ\.get\("(\w+)"', source)}
    assert first_cells(client) == read
    assert row(client, "REFLEXIO_URL")[1] == f"`{DEFAULT_URL}`"


def _defaults(text: str) -> dict[str, str]:
    return {name: row(text, name)[1] for name in first_cells(text)}


# Command line


def _commands(command: Any, name: str) -> Iterator[tuple[str, set[str]]]:
    options = {name for option in command.params for name in (option.opts or [option.name])} - {"--help"}
    below = getattr(command, "commands", {})
    if options or not below:
        yield name, options
    for word, subcommand in below.items():
        yield from _commands(subcommand, f"{name} {word}")


def test_every_command_has_a_section_with_its_options() -> None:
    known = dict(_commands(typer.main.get_command(app), "reflexio"))
    sections = CLI.sections()
    documented = {name: first_cells(text) for name, text in sections.items() if name.startswith("reflexio")}
    assert documented == known


# Configuration


def test_every_part_of_the_configuration_has_a_section_and_no_other_has() -> None:
    assert {model.__name__ for model in _with_parts(Config)} == set(CONFIG.sections()) - {"Configuration"}


@pytest.mark.parametrize("model", _with_parts(Config), ids=lambda model: model.__name__)
def test_every_configuration_field_has_a_row_with_its_default(model: type[BaseModel]) -> None:
    text = CONFIG.sections()[model.__name__]
    assert _defaults(text) == {name: _default(field) for name, field in model.model_fields.items()}


# Errors


def _error_classes() -> list[type[ReflexioError]]:
    return [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.ReflexioError)]


def test_every_error_has_a_row_and_a_place_in_the_drawn_tree() -> None:
    names = {kind.__name__ for kind in _error_classes()}
    assert first_cells(ERRORS.sections()["Errors"]) == names
    assert names <= set(re.findall(r"\w+", errors.__doc__ or ""))


@pytest.mark.parametrize("kind", _error_classes(), ids=lambda kind: kind.__name__)
def test_an_error_is_documented_with_its_status(kind: type[ReflexioError]) -> None:
    documented = row(ERRORS.sections()["Errors"], kind.__name__)[1]
    if kind in (errors.ClientClosed, errors.ServerUnreachable, errors.ServerFailed):
        assert documented == "none"
    else:
        assert documented == str(status_of(kind.__new__(kind)))


def test_every_status_is_documented() -> None:
    documented = re.findall(r"^\| (\d{3}) \|", ERRORS.sections()["On the wire"], flags=re.MULTILINE)
    assert {int(status) for status in documented} == set(TITLES)


# The pages themselves


@pytest.mark.parametrize("reference", [SETTINGS, HTTP, CLIENT, CLI, CONFIG, ERRORS], ids=lambda page: page.name)
def test_headings_are_unique(reference: Page) -> None:
    headings = re.findall(r"^#+ (.+)$", reference.prose(), flags=re.MULTILINE)
    assert sorted(headings) == sorted(set(headings))


def test_presets_are_documented_with_their_sizes() -> None:
    presets = page("docs/how-to/configure.md").sections()["Presets and windows"]
    for preset in config_models.ExtractionPreset:
        assert row(presets, preset.value)[1:] == [str(size) for size in preset.sizes]
