"""The findings about one organisation of a running server: nothing of the operator's machine, nothing of others."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reflexio.app import Reflexio, build
from reflexio.doctor import Finding, examine_models, examine_organisation
from reflexio.models.usage import Stall
from reflexio.organisations import configuration
from reflexio.organisations.usage import usage
from reflexio.ports.storage import Tx
from reflexio.settings import Settings
from tests.scripted_model import scripted_model

KEY = "sk-nobody-may-see-this"


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Reflexio]:
    built = await build(Settings(data=tmp_path / "secret-folder"))
    yield built
    await built.close()


def words(findings: list[Finding]) -> str:
    return "\n".join(f"{found.part} {found.detail} {found.remedy}" for found in findings)


async def use_model(parts: Reflexio, org_id: str, url: str) -> None:
    endpoint = {"model": "scripted", "api_key": KEY, "api_base": url}
    await configuration.change(
        parts.database.of(org_id), parts.clock, {"api_key_config": {"custom_endpoint": endpoint}}
    )


async def test_it_names_neither_folders_nor_other_organisations(parts: Reflexio) -> None:
    def fall_behind(tx: Tx) -> None:
        tx.users.mark_unlearned("their-user", 5)
        tx.users.postpone("their-user", 900, "their error")
        tx.stalls.put(Stall("auth_error", "their stall", 5))

    await parts.database.of("theirs").write(fall_behind)
    findings = await examine_organisation(parts, "ours")
    assert all(found.is_ok for found in findings)
    assert not any(word in words(findings) for word in ("their", "secret-folder", "reflexio.db", "/"))
    assert "0 users" in words(findings)


async def test_a_stall_and_users_that_wait_are_found_with_what_to_do(parts: Reflexio) -> None:
    def fall_behind(tx: Tx) -> None:
        tx.users.mark_unlearned("ann", 5)
        tx.users.postpone("ann", 900, "the model sleeps")
        tx.stalls.put(Stall("auth_error", "the key was refused", 5))

    await parts.database.of("ours").write(fall_behind)
    findings = await examine_organisation(parts, "ours")
    (broken,) = [found for found in findings if not found.is_ok]
    assert "the key was refused" in broken.detail
    assert "resumes" in broken.remedy
    assert "1 user with turns" in words(findings)
    assert "the model sleeps" in words(findings)


async def test_models_are_asked_only_on_request_and_what_they_cost_is_counted(parts: Reflexio) -> None:
    with scripted_model(otherwise={"word": "yes"}) as model:
        await use_model(parts, "ours", model.url)
        findings = await examine_organisation(parts, "ours")
        assert model.calls == 0
        assert "custom:scripted" in words(findings)
        assert KEY not in words(findings)
        (asked,) = await examine_models(parts, "ours")
        assert asked.is_ok
        assert model.calls == 1
    entries = (await usage(parts.database.of("ours"), parts.clock, 1)).usage
    assert [entry.operation for entry in entries] == ["check"]


async def test_a_model_that_is_not_there_is_a_finding_and_its_key_is_not_shown(parts: Reflexio) -> None:
    await use_model(parts, "ours", "http://127.0.0.1:9/v1")
    (asked,) = await examine_models(parts, "ours")
    assert not asked.is_ok
    assert asked.remedy
    assert KEY not in words([asked])


async def test_without_a_model_the_local_learner_is_named(parts: Reflexio) -> None:
    assert "local learner" in words(await examine_models(parts, "ours"))
