"""What one organisation may do to a server at worst, with legal calls alone. Each function runs in its own process.

So the client that measures how another organisation fares shares no interpreter with it.
"""

import socket
import sys
import threading
import time
from contextlib import suppress
from typing import Any

import httpx

MILLION = 1_000_000
USER = "noisy-user"
ADVERSARIAL = (" " * 90_000, "a" * 90_000, "not " * 22_000, "1 " * 45_000, "'\"" * 45_000, "\n" * 90_000, "-a" * 45_000)


def connect(url: str, token: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=url, headers=headers, timeout=120, trust_env=False)


def check(response: httpx.Response) -> httpx.Response:
    assert response.status_code == 200, response.text[:300]
    return response


def publish(client: httpx.Client, user: str, contents: list[str], **more: Any) -> None:
    turns = [{"role": "user", "content": content} for content in contents]
    body = {"user_id": user, "interaction_data_list": turns, **more}
    check(client.post("/api/publish_interaction", json=body))


def fill(client: httpx.Client, turns: int) -> None:
    """Many turns of one user, to be erased later."""
    for number in range(turns // 1000):
        texts = [f"Please bring tea number {number}.{place} to the table by the window." for place in range(1000)]
        publish(client, USER, texts, session_id=f"s{number}", evaluation_only=True)


def hang_model(client: httpx.Client) -> None:
    """A model that takes every question and answers none, and many users with something to learn."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    endpoint = {"model": "m", "api_key": "k", "api_base": f"http://127.0.0.1:{listener.getsockname()[1]}/v1"}
    changed = client.post("/api/update_config", json={"api_key_config": {"custom_endpoint": endpoint}})
    check(changed)
    accepted = []
    threading.Thread(target=lambda: accepted.append(listener.accept()), daemon=True).start()
    for number in range(50):
        publish(client, f"hanging-{number}", ["Always answer in German."], session_finished=True)


def send_large_bodies(client: httpx.Client) -> None:
    publish(client, "large", [f"{place} " + "word " * (MILLION // 5 - 2) for place in range(15)])
    content = "Ask for the order number first. " * 3_000
    playbooks = [{"user_id": "large", "content": f"{n} {content}", "agent_version": "v"} for n in range(150)]
    check(client.post("/api/add_user_playbook", json={"user_playbooks": playbooks}))
    shown = [{"kind": "profile", "learning_id": f"p{n}"} for n in range(15)]
    turns = [{"role": "assistant", "content": "Yes.", "retrieved_learnings": shown} for _ in range(1000)]
    check(client.post("/api/publish_interaction", json={"user_id": "shown", "interaction_data_list": turns}))


def read_large_pages(client: httpx.Client) -> None:
    for _ in range(3):
        check(client.get("/api/get_all_interactions", params={"limit": 10_000}))
        search = {"query": "order number word tea", "user_id": "large", "top_k": 1_000}
        check(client.post("/api/search", json=search))
        check(client.post("/api/search_interactions", json={**search, "top_k": 10_000}))


def send_adversarial_texts(client: httpx.Client) -> None:
    for text in ADVERSARIAL:
        publish(client, "adversary", [text, f"Always {text}"], session_finished=True)
        client.post("/api/add_user_playbook", json={"user_playbooks": [{"user_id": "x", "content": f"Do. {text}"}]})
        client.post("/api/search", json={"query": text or "x", "user_id": "adversary"})


def erase(client: httpx.Client) -> None:
    response = client.post("/api/clear_user_data", json={"user_id": USER})
    check(response)
    assert response.json()["receipt"]["counts"]["interactions"] > 0


ATTACKS = {
    attack.__name__: attack
    for attack in (hang_model, send_large_bodies, read_large_pages, send_adversarial_texts, erase)
}


def main(url: str, token: str, name: str, seconds: str) -> None:
    """Repeats one attack until the time is over; erasing is done once."""
    end = time.monotonic() + float(seconds)
    with connect(url, token) as client:
        ATTACKS[name](client)
        if name not in ("erase", "hang_model"):
            while time.monotonic() < end:
                ATTACKS[name](client)
        with suppress(ValueError):
            time.sleep(end - time.monotonic())


if __name__ == "__main__":
    main(*sys.argv[1:])
