"""Requests for every route of the OpenAPI document, with a text in each field that takes one.

What a route does not accept there (a time, a choice, a text that excludes another) is dropped, one refusal after the
other, until the request is accepted.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.acceptance.test_isolation import Route, resolved

MOST_REFUSALS = 60


@dataclass
class FilledRequests:
    """`known` are values for fields by name; `text` makes the text of every other field."""

    known: Mapping[str, Any]
    text: Callable[[str], str]
    filled: set[str] = field(default_factory=set)
    """Fields that were accepted with a text, as `route field`."""

    def call(self, http: httpx.Client, route: Route) -> httpx.Response:
        """The first answer that is no refusal of a field, or the last refusal."""
        content = route.operation.get("requestBody", {}).get("content", {})
        body = self._value("", resolved(content["application/json"]["schema"])) if content else None
        parameters = {
            parameter["name"]: (parameter["in"], self._value(parameter["name"], resolved(parameter["schema"])))
            for parameter in route.operation.get("parameters", ())
        }
        sent = {
            place: {n: v for n, (p, v) in parameters.items() if p == place} for place in ("query", "header", "path")
        }
        for _ in range(MOST_REFUSALS):
            answer = http.request(
                route.method,
                route.path.format(**sent["path"]),
                params=sent["query"],
                headers={name: str(value) for name, value in sent["header"].items()},
                json=body if content else None,
            )
            if answer.status_code != 422 or not self._drop(answer.json(), body, sent["query"]):
                break
        if answer.is_success:
            self.filled |= {f"{route} {name}" for name in _leaves({"": body, **sent["query"], **sent["header"]})}
        return answer

    @staticmethod
    def _drop(problem: dict[str, Any], body: Any, query: dict[str, Any]) -> bool:
        """Removes the first refused field that is there; False when there is none."""
        for error in problem.get("errors", ()):
            place, *path = error["loc"]
            if place == "query" and path and query.pop(path[0], None) is not None:
                return True
            if place == "body" and _remove(body, path):
                return True
        return False

    def _value(self, name: str, schema: dict[str, Any]) -> Any:
        if name in self.known:
            is_list = schema.get("type") == "array"
            value = self.known[name]
            return [value] if is_list and not isinstance(value, list) else value
        if "enum" in schema:
            return schema["enum"][0]
        match schema.get("type"):
            case "string":
                return self.text(name)
            case "array":
                return [self._value(name, resolved(schema.get("items", {"type": "string"})))]
            case "object" if "properties" in schema:
                return {field: self._value(field, resolved(each)) for field, each in schema["properties"].items()}
            case "object":
                return {"note": self.text(name)}
            case "boolean":
                return False
            case "integer" | "number":
                return max(1, schema.get("minimum", 1))
        return self.text(name)


def _remove(body: Any, path: list[Any]) -> bool:
    """Removes the deepest part of a path that is there and belongs to an object."""
    holders = []
    for part in path:
        if isinstance(body, dict) and part in body:
            holders.append((body, part))
        elif not (isinstance(body, list) and isinstance(part, int) and part < len(body)):
            break
        body = body[part]
    if not holders:
        return False
    holder, part = holders[-1]
    del holder[part]
    return True


def _leaves(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for field_, each in value.items():
            yield from _leaves(each, field_ or name)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each, name)
    elif isinstance(value, str):
        yield name
