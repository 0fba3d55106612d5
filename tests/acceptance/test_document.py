"""The server does what its own OpenAPI document says, for input that nobody thought of."""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from reflexio.server.app import create_app
from reflexio.settings import Settings
from tests.conftest import Org

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]

schema = schemathesis.openapi.from_dict(create_app(Settings()).openapi())
# A list that is far too long may be turned away for its size before anybody reads it.
schema.config.checks.negative_data_rejection.expected_statuses = ["400", "404", "413", "415", "422"]


@schema.parametrize()
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_route_answers_as_documented(case: Any, org: Org) -> None:
    case.call_and_validate(base_url=org.url, headers={"Authorization": f"Bearer {org.token}"}, checks=CHECKS)
