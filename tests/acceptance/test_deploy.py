"""The files in deploy/ can be read, name what exists, and their own commands work on a real PostgreSQL."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from configparser import RawConfigParser
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import yaml  # type: ignore[import-untyped]
from psycopg.conninfo import conninfo_to_dict

from reflexio.server.process import free_port
from reflexio.settings import Settings, variable
from tests.builders import eventually
from tests.docs.markdown import ROOT
from tests.postgres import BINARIES

DEPLOY = ROOT / "deploy"
SETTINGS = {variable(setting) for setting in fields(Settings)}
LIBPQ = {"PGPASSWORD"}
REFLEXIO = Path(sys.executable).with_name("reflexio")


@dataclass(frozen=True)
class Command:
    """How a file of ours starts a process: its arguments after `reflexio`, and its variables."""

    file: str
    arguments: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def is_worker(self) -> bool:
        return self.arguments[0] == "worker"


def documents(path: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / path).read_text()))


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, with their lines joined."""
    lines = [line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def last(word: str) -> str:
    return [rest for name, rest in instructions() if name == word][-1]


def image_variables() -> dict[str, str]:
    return dict(part.split("=", 1) for part in shlex.split(last("ENV")))


def of_image() -> Iterator[Command]:
    assert json.loads(last("ENTRYPOINT")) == ["reflexio"]
    yield Command("Dockerfile", tuple(json.loads(last("CMD"))), image_variables())


def of_compose() -> Iterator[Command]:
    for service in documents("compose.yaml")[0]["services"].values():
        if service["image"] == "reflexio":
            assert "entrypoint" not in service
            yield Command("compose.yaml", tuple(service["command"]), image_variables() | service["environment"])


def of_kubernetes() -> Iterator[Command]:
    (config,), (secret,) = documents("kubernetes/config.yaml"), documents("kubernetes/secret.yaml")
    shared = image_variables() | config["data"] | secret["stringData"]
    for name in ("server", "worker"):
        (container,) = documents(f"kubernetes/{name}.yaml")[0]["spec"]["template"]["spec"]["containers"]
        assert "command" not in container
        own = {entry["name"]: entry["value"] for entry in container.get("env", ())}
        yield Command(f"kubernetes/{name}.yaml", tuple(container["args"]), shared | own)


def unit(path: Path) -> dict[str, list[str]]:
    """The entries of [Service]; some stand there more than once."""
    section = path.read_text().partition("[Service]\n")[2].partition("\n[")[0]
    entries: dict[str, list[str]] = {}
    for line in section.splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.partition("=")
            entries.setdefault(name, []).append(value)
    return entries


def of_systemd() -> Iterator[Command]:
    lines = (DEPLOY / "systemd/reflexio.env").read_text().splitlines()
    shared = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    for path in sorted((DEPLOY / "systemd").glob("*.service")):
        entries = unit(path)
        program, *arguments = shlex.split(entries["ExecStart"][0])
        assert program == "/opt/reflexio/bin/reflexio"
        own = dict(value.replace("%i", "8082").split("=", 1) for value in entries["Environment"])
        yield Command(f"systemd/{path.name}", tuple(arguments), shared | own)


COMMANDS = [*of_image(), *of_compose(), *of_kubernetes(), *of_systemd()]


@contextmanager
def running(command: Command, database: str, folder: Path) -> Iterator[str]:
    """Runs a command with its own variables, on a database and a port of ours."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REFLEXIO_")}
    port = {"REFLEXIO_WORKER_PORT" if command.is_worker else "REFLEXIO_PORT": str(number := free_port())}
    place = {"REFLEXIO_DATABASE": database, "REFLEXIO_DATA": str(folder / "unused")}
    variables = {name: value for name, value in command.variables.items() if not value.startswith("${")}
    process = subprocess.Popen(
        [REFLEXIO, *command.arguments], env=clean | variables | place | port | {"PATH": clean["PATH"]}
    )
    url = f"http://127.0.0.1:{number}"
    try:
        eventually(lambda: answers(f"{url}/health/ready"), seconds=40)
        yield url
    finally:
        process.terminate()
        assert process.wait(30) in (0, -signal.SIGTERM)


def answers(url: str) -> bool:
    try:
        return httpx.get(url).is_success
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: f"{command.file}-{command.arguments[0]}")
def test_every_variable_exists(command: Command) -> None:
    own = {"PATH", "PYTHONUNBUFFERED"}
    assert set(command.variables) - own <= SETTINGS | LIBPQ
    texts = {name: text for name, text in command.variables.items() if not text.startswith("${")}
    assert Settings.read(texts).worker_port == (8082 if command.is_worker else 0)
    assert Settings.read(texts).require_key or command.is_worker


@pytest.mark.slow
def test_the_commands_of_all_files_serve_and_work_on_postgresql(empty_postgres: str, tmp_path: Path) -> None:
    distinct = {command.arguments: command for command in COMMANDS}
    assert set(distinct) == {("serve",), ("serve", "--no-worker"), ("worker",)}
    with ExitStack() as stack:
        urls = {
            arguments: stack.enter_context(running(command, empty_postgres, tmp_path))
            for arguments, command in distinct.items()
            if arguments != ("serve",)  # it starts the other two together
        }
        server, worker = urls["serve", "--no-worker"], urls[("worker",)]
        token = run_keys("create", "--org", "acme", database=empty_postgres).stdout.strip()
        assert "acme" in run_keys("list", database=empty_postgres).stdout
        with httpx.Client(base_url=server, headers={"Authorization": f"Bearer {token}"}) as http:
            turns = [{"role": "User", "content": "My name is Ann and I am allergic to peanuts."}]
            body = {"user_id": "ann", "interaction_data_list": turns, "force_extraction": True}
            assert http.post("/api/publish_interaction", json=body).is_success
            eventually(lambda: "reflexio_windows_learned_total 1" in http.get("/metrics").text, seconds=40)
        assert httpx.get(f"{server}/api/whoami").status_code == 401
        check_probes(server, worker)
        check_health_of_image(server, "REFLEXIO_PORT")
        check_health_of_image(worker, "REFLEXIO_WORKER_PORT")
    assert not (tmp_path / "unused").exists(), "nothing is kept on the disk of a server or worker"


def run_keys(*arguments: str, database: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "REFLEXIO_DATABASE": database}
    return subprocess.run([REFLEXIO, "keys", *arguments], env=environment, capture_output=True, text=True, check=True)


def check_probes(server: str, worker: str) -> None:
    for name, url in (("server", server), ("worker", worker)):
        (container,) = documents(f"kubernetes/{name}.yaml")[0]["spec"]["template"]["spec"]["containers"]
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert answers(url + container[probe]["httpGet"]["path"])
        annotations = documents(f"kubernetes/{name}.yaml")[0]["spec"]["template"]["metadata"]["annotations"]
        assert "reflexio_worker_alive 1" in httpx.get(url + annotations["prometheus.io/path"]).text


def check_health_of_image(url: str, name: str) -> None:
    program, *arguments = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    assert program == "python"
    for port, code in ((url.rpartition(":")[2], 0), (str(free_port()), 1)):
        environment = {"PATH": os.environ["PATH"], name: port}
        done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, check=False)
        assert done.returncode == code


@pytest.mark.slow
def test_compose_creates_a_database_whose_owner_row_security_binds(postgres: str) -> None:
    """The script that the PostgreSQL image runs, with a `psql` that finds our server, under other names."""
    server = conninfo_to_dict(postgres)
    text = (DEPLOY / "postgres/create-database.sh").read_text().replace("reflexio\n", "by_compose\n")
    text = re.sub(r"(ROLE|DATABASE|OWNER) reflexio", r"\1 by_compose", text)
    environment = {
        "PATH": f"{BINARIES}:{os.environ['PATH']}",
        "PGHOST": str(server["host"]),
        "POSTGRES_USER": "postgres",
        "REFLEXIO_DATABASE_PASSWORD": "it's a secret",
    }
    done = subprocess.run(["sh"], input=text, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    with psycopg.connect(f"{postgres} dbname=by_compose") as connection:
        role = connection.execute("SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = 'by_compose'").fetchone()
        assert role == (False, False)
        assert connection.execute("SELECT count(*) FROM pg_extension WHERE extname = 'vector'").fetchone() == (1,)
        owner = connection.execute("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'by_compose'")
        assert owner.fetchone() == ("by_compose",)


def test_the_image_copies_what_exists_and_installs_extras_that_exist() -> None:
    copied = [
        word for name, rest in instructions() if name == "COPY" and "--from" not in rest for word in rest.split()[:-1]
    ]
    assert all((ROOT / path).exists() for path in copied)
    allowed = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert {line[1:] for line in allowed if line.startswith("!")} == set(copied)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {project["readme"], *project["license-files"], "pyproject.toml", "src", "constraints.txt"}
    assert needed == set(copied)
    extras = re.findall(r"'\.\[([\w,]+)\]'", last("RUN") + " ".join(rest for name, rest in instructions()))
    assert extras
    assert {extra for group in extras for extra in group.split(",")} <= project["optional-dependencies"].keys()
    assert last("USER") not in ("root", "0", "0:0")


def test_compose_has_one_server_two_workers_and_a_database_that_they_wait_for() -> None:
    services = documents("compose.yaml")[0]["services"]
    assert set(services) == {"server", "worker", "postgres"}
    assert services["worker"]["deploy"]["replicas"] == 2
    assert (DEPLOY / services["server"]["build"]["context"] / services["server"]["build"]["dockerfile"]).exists()
    assert services["server"]["ports"][0].startswith("127.0.0.1:"), "plain HTTP is not for the network"
    mounted = [volume.partition(":")[0] for volume in services["postgres"]["volumes"] if volume.startswith(".")]
    assert all((DEPLOY / path).exists() for path in mounted)
    program, *arguments = services["postgres"]["healthcheck"]["test"][1:]
    done = subprocess.run([BINARIES / program, *arguments[:2], "--port", "1"], capture_output=True, check=False)
    assert done.returncode == 2, "pg_isready knows its options and nobody answers"


def test_kubernetes_objects_select_each_other_and_pods_are_confined() -> None:
    for name in ("server", "worker"):
        deployment, *others = documents(f"kubernetes/{name}.yaml")
        pod, labels = deployment["spec"]["template"]["spec"], deployment["spec"]["template"]["metadata"]["labels"]
        assert deployment["spec"]["selector"]["matchLabels"] == labels
        for other in others:
            selector = other["spec"]["selector"]
            assert selector.get("matchLabels", selector) == labels
        # A service named reflexio sets REFLEXIO_PORT=tcp://… in every pod, which is no port.
        assert pod["enableServiceLinks"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        (container,) = pod["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}" == last("USER")
        (port,) = container["ports"]
        assert deployment["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"] == str(
            port["containerPort"]
        )
        probes = [container[probe]["httpGet"]["port"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")]
        assert set(probes) == {port["name"]}
    names = {reference["name"] for entry in container["envFrom"] for reference in entry.values()}
    assert names == {documents(f"kubernetes/{kind}.yaml")[0]["metadata"]["name"] for kind in ("config", "secret")}


@pytest.mark.parametrize("path", sorted((DEPLOY / "systemd").glob("*.service")), ids=lambda path: path.name)
def test_units_are_hardened_and_can_be_read(path: Path) -> None:
    parser = RawConfigParser(strict=False, comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(path.read_text())
    assert set(parser.sections()) == {"Unit", "Service", "Install"}
    service = parser["Service"]
    assert service["User"] == "reflexio"
    assert (service["ProtectSystem"], service["NoNewPrivileges"], service["Restart"]) == ("strict", "yes", "always")
    assert f"REFLEXIO_DATA=/var/lib/{service['StateDirectory']}" in " ".join(unit(path)["Environment"])
