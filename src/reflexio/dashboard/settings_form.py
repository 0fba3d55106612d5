"""The configuration as a form: which field each setting has, and back from the form's texts to a document.

The form is made from the models of the configuration, so a new setting appears by itself. Labels and meanings are in
`settings_form.toml`. A mistake is not judged here: a text that is no number stays a text, and validation names it.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import SecretStr
from pydantic_core import PydanticUndefined

from reflexio.models.config import Config, Setting

WidgetKind = Literal["flag", "number", "text", "long", "choice", "choices", "lines", "secret", "group", "entries"]
LONG = ("prompt", "description")
"""Endings of the names of settings that hold whole paragraphs."""
CLEARED = "delete"
"""The field beside a secret or an entry that says: remove what is stored."""
KNOWN = "known"
"""The field of an entry that is stored: emptied settings of it are mistakes, and not an entry left blank."""


@dataclass(frozen=True)
class SettingField:
    """One setting in the form. `parts` are the settings inside a group; `entries` the groups of a list, the last one
    empty, for a new entry. `path` is the name of the input, such as `playbook_configs.0.playbook_name`."""

    path: str
    kind: WidgetKind
    label: str
    meaning: str
    value: Any = None
    is_required: bool = False
    is_optional: bool = False
    options: tuple[str, ...] = ()
    parts: tuple["SettingField", ...] = ()
    entries: tuple["SettingField", ...] = ()
    is_new: bool = False

    @property
    def text(self) -> str:
        if isinstance(self.value, list):
            return "\n".join(map(str, self.value))
        return "" if self.value is None else str(self.value)


def form_of(document: Mapping[str, Any]) -> tuple[SettingField, ...]:
    """The fields of the whole configuration, filled with a document whose secrets are masked."""
    return _fields(Config, document, "")


def read_form(form: Mapping[str, str], chosen: Mapping[str, list[str]]) -> dict[str, Any]:
    """The document that a form holds. `chosen` has the boxes that are ticked for settings with several values."""
    document = _read_group(Config, "", form, chosen)
    return document or {}


def _fields(model: type[Setting], document: Mapping[str, Any], path: str) -> tuple[SettingField, ...]:
    return tuple(_field(model, name, document.get(name), f"{path}.{name}".lstrip(".")) for name in model.model_fields)


def _field(model: type[Setting], name: str, value: Any, path: str) -> SettingField:
    info = model.model_fields[name]
    kind, inner, is_optional = widget_of(name, info.annotation)
    label, meaning = words_of(model.__name__, name)
    field = SettingField(path, kind, label, meaning, value, info.is_required(), is_optional)
    match kind:
        case "group":
            return replace(field, parts=_fields(inner, value or {}, path))
        case "entries":
            entries = [_entry(inner, entry, f"{path}.{place}") for place, entry in enumerate(value or [])]
            new = _entry(inner, _new_entry(inner), f"{path}.{len(entries)}", is_new=True)
            return replace(field, entries=(*entries, new))
        case "choice" | "choices":
            return replace(field, options=tuple(str(option) for option in inner))
        case _:
            return field


def _entry(model: type[Setting], document: Mapping[str, Any], path: str, *, is_new: bool = False) -> SettingField:
    parts = _fields(model, document, path)
    title = "" if is_new else str(next(iter(document.values()), ""))
    return SettingField(path, "group", title, "", document, parts=parts, is_new=is_new)


def _new_entry(model: type[Setting]) -> dict[str, Any]:
    """What a new entry starts with: the defaults, but for its name, which must be another one than those there are."""
    plain = {name: info.get_default(call_default_factory=True) for name, info in model.model_fields.items()}
    return {
        name: value.model_dump(mode="json") if isinstance(value, Setting) else value
        for name, value in plain.items()
        if value is not PydanticUndefined and not name.endswith("_name")
    }


def widget_of(name: str, annotation: Any) -> tuple[WidgetKind, Any, bool]:
    """How a setting is entered; the model or the options inside; and whether it may have no value."""
    annotation, is_optional = _without_none(annotation)
    origin = get_origin(annotation)
    if origin is list:
        inner, _ = _without_none(get_args(annotation)[0])
        if _is_a(inner, Setting):
            return "entries", inner, is_optional
        return ("choices", inner, is_optional) if _is_a(inner, StrEnum) else ("lines", None, is_optional)
    if origin is Literal:
        return "choice", get_args(annotation), is_optional
    if _is_a(annotation, Setting):
        return "group", annotation, is_optional
    if _is_a(annotation, StrEnum):
        return "choice", tuple(annotation), is_optional
    if annotation is bool:
        return "flag", None, is_optional
    if annotation is int or annotation is float:
        return "number", annotation, is_optional
    if annotation is SecretStr:
        return "secret", None, is_optional
    return ("long" if name.endswith(LONG) else "text"), None, is_optional


def _without_none(annotation: Any) -> tuple[Any, bool]:
    """The type without its constraints, and whether None is one of its values."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        others = [argument for argument in get_args(annotation) if argument is not NoneType]
        return _without_none(others[0])[0], len(others) < len(get_args(annotation))
    return annotation, False


def _is_a(annotation: Any, kind: type) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, kind)


def _read_group(
    model: type[Setting], path: str, form: Mapping[str, str], chosen: Mapping[str, list[str]]
) -> dict[str, Any] | None:
    """None when nothing at all was entered."""
    document = {
        name: _read_field(name, info.annotation, f"{path}.{name}".lstrip("."), form, chosen)
        for name, info in model.model_fields.items()
    }
    return document if any(value not in (None, [], "") for value in document.values()) else None


def _read_field(name: str, annotation: Any, path: str, form: Mapping[str, str], chosen: Mapping[str, list[str]]) -> Any:
    kind, inner, is_optional = widget_of(name, annotation)
    text = form.get(path, "").replace("\r\n", "\n").strip()
    match kind:
        case "group":
            group = _read_group(inner, path, form, chosen)
            return group if group is not None or is_optional else {}
        case "entries":
            return _read_entries(inner, path, form, chosen)
        case "flag":
            return path in form
        case "choices":
            return chosen.get(path, [])
        case "lines":
            lines = [line.strip() for line in text.split("\n") if line.strip()]
            return lines or (None if is_optional else [])
        case "secret":
            return None if form.get(f"{path}.{CLEARED}") else text or form.get(f"{path}.stored") or None
        case "number":
            return _read_number(text, inner) if text or not is_optional else None
        case _:
            return text or (None if is_optional else "")


def _read_entries(
    model: type[Setting], path: str, form: Mapping[str, str], chosen: Mapping[str, list[str]]
) -> list[Any]:
    """The entries. One that was not there before counts as soon as one of its required settings is filled in."""
    required = [name for name, info in model.model_fields.items() if info.is_required()]
    entries = []
    place = 0
    while any(name.startswith(f"{path}.{place}.") for name in form):
        is_known = f"{path}.{place}.{KNOWN}" in form
        is_filled = is_known or any(form.get(f"{path}.{place}.{name}", "").strip() for name in required)
        if is_filled and not form.get(f"{path}.{place}.{CLEARED}"):
            entries.append(_read_group(model, f"{path}.{place}", form, chosen))
        place += 1
    return entries


def _read_number(text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        return text


@cache
def _words() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def words_of(model: str, name: str) -> tuple[str, str]:
    """The label of a setting, and what it means."""
    label, _, meaning = _words()[model][name].partition(": ")
    return label, meaning
