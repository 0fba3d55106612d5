"""The OpenAPI document says what every field means, and every sample body is one that the server takes."""

from typing import Any

import httpx
import pytest

from reflexio.server.app import create_app
from reflexio.settings import Settings
from tests.conftest import Org

DOCUMENT = create_app(Settings()).openapi()
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
OF_FASTAPI = {"HTTPValidationError", "ValidationError"}
OPERATIONS = [
    pytest.param(method, path, operation, id=f"{method} {path}")
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
]


@pytest.mark.parametrize("name", sorted(set(SCHEMAS) - OF_FASTAPI))
def test_every_field_has_a_description(name: str) -> None:
    for field, part in SCHEMAS[name].get("properties", {}).items():
        assert part.get("description") or "$ref" in part, f"{name}.{field}"
        assert "](" not in part.get("description", ""), f"{name}.{field} links to a page"


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
def test_the_server_takes_every_sample(method: str, path: str, operation: dict[str, Any], org: Org) -> None:
    parameters = {"path": {}, "query": {}, "header": {}}  # type: dict[str, dict[str, Any]]
    for parameter in operation.get("parameters", []):
        assert parameter.get("description"), parameter["name"]
        if parameter.get("required"):
            parameters[parameter["in"]][parameter["name"]] = parameter["example"]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
    assert ("requestBody" in operation) == (body is not None)
    with httpx.Client(base_url=org.url, headers={"Authorization": f"Bearer {org.token}"}) as client:
        answer = client.request(method, path.format(**parameters["path"]), params=parameters["query"], json=body)
    assert answer.status_code in {200, 404, 409}, answer.text  # a sample may name a row that is not there


def test_a_sample_is_realistic() -> None:
    example = DOCUMENT["paths"]["/api/publish_interaction"]["post"]["requestBody"]["content"]["application/json"]
    turn = example["example"]["interaction_data_list"][0]
    assert turn["role"] == "User"
    assert "parcel" in turn["content"]
