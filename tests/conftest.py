"""Servers and clients that tests share. Each test has an organisation of its own, so none sees another's rows."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from reflexio.client.sync import ReflexioClient
from reflexio.server.process import ServerProcess, running_server
from tests.builders import name, new_key
from tests.postgres import empty_tables, prepare_postgres, running_postgres

StartServer = Callable[..., ServerProcess]
AT_HOME = {"REFLEXIO_PRIVATE_ADDRESSES": "1"}
"""Models and webhooks of the tests are on this machine, and most of their servers have keys."""


def pytest_configure() -> None:
    """All that tests call is on this machine, where no proxy leads."""
    for variable in [each for each in os.environ if each.lower().endswith("_proxy")]:
        del os.environ[variable]


@dataclass(frozen=True)
class Running:
    """A server and the folder of its database."""

    url: str
    folder: Path


@dataclass(frozen=True)
class Org:
    """An organisation on a running server."""

    id: str
    url: str
    token: str

    def http(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=30)

    def client(self) -> ReflexioClient:
        return ReflexioClient(url_endpoint=self.url, api_key=self.token, retries=0)


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("REFLEXIO_URL", "REFLEXIO_API_KEY", "REFLEXIO_DATA"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that has keys: every call needs one."""
    folder = tmp_path_factory.mktemp("server")
    new_key(folder, "first")
    # Assistant scripts of tests are in folders of theirs below this one.
    with running_server(folder, {"REFLEXIO_SCRIPTS": str(tmp_path_factory.getbasetemp()), **AT_HOME}) as url:
        yield Running(url, folder)


@pytest.fixture(scope="session")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server without any key: it serves this machine."""
    folder = tmp_path_factory.mktemp("open-server")
    with running_server(folder) as url:
        yield Running(url, folder)


@pytest.fixture
def make_org(server: Running) -> Callable[[], Org]:
    def make() -> Org:
        org = name("org")
        return Org(org, server.url, new_key(server.folder, org))

    return make


@pytest.fixture
def org(make_org: Callable[[], Org]) -> Org:
    return make_org()


@pytest.fixture
def client(org: Org) -> Iterator[ReflexioClient]:
    with org.client() as client:
        yield client


@pytest.fixture
def http(org: Org) -> Iterator[httpx.Client]:
    with org.http() as http:
        yield http


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[StartServer]:
    """Starts servers of the test's own, and stops them."""
    with ExitStack() as stack:

        def start(folder: Path = tmp_path, **environment: str) -> ServerProcess:
            server = ServerProcess(folder, {**AT_HOME, **environment})
            server.start()
            stack.callback(server.kill)
            return server

        yield start


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL with pgvector. What a test makes there has a name of its own."""
    with running_postgres() as dsn:
        yield dsn


@pytest.fixture(scope="session")
def prepared_postgres(postgres: str) -> str:
    """The address of a database with our tables, whose owner row security binds."""
    return prepare_postgres(postgres)


@pytest.fixture
def empty_postgres(prepared_postgres: str) -> str:
    """The same, without rows."""
    empty_tables(prepared_postgres)
    return prepared_postgres
