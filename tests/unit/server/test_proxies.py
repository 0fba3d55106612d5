"""What proxies send by default, each as its documentation says. The server behind them has no key."""

import httpx
import pytest
from fastapi import FastAPI

from reflexio.organisations import keys
from reflexio.ports.clock import SystemClock
from reflexio.server.proxies import came_through_proxy
from tests.builders import problem

PROXIES = {
    "caddy": {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "localhost"},
    "caddy via": {"Via": "1.1 Caddy"},
    "apache": {"X-Forwarded-Server": "www.example.org"},
    "traefik": {"X-Forwarded-Port": "443"},
    "haproxy forwarded": {"Forwarded": "proto=https;for=203.0.113.9"},
    "nginx with headers": {"X-Real-IP": "203.0.113.9"},
    "squid": {"Via": "1.1 gate (squid/6.9)", "Cache-Control": "max-age=259200"},
    "varnish": {"X-Varnish": "32770"},
    "envoy": {"X-Envoy-Expected-Rq-Timeout-Ms": "15000"},
    "cloudflare": {"CF-Connecting-IP": "203.0.113.9"},
    "cloudflare ray": {"CF-Ray": "8f0c2ee0dd2b9a3c-FRA"},
    "cloudflare visitor": {"CF-Visitor": '{"scheme":"https"}'},
    "content network": {"CDN-Loop": "cloudflare"},
    "akamai": {"True-Client-IP": "203.0.113.9"},
    "fastly": {"Fastly-Client-IP": "203.0.113.9"},
    "amazon": {"X-Amzn-Trace-Id": "Root=1-67891233-abcdef012345678912345678"},
    "cloudfront": {"X-Amz-Cf-Id": "a=="},
    "google": {"X-Cloud-Trace-Context": "105445aa7843bc8bf206b12000100000/1"},
    "azure": {"X-Azure-ClientIP": "203.0.113.9"},
    "iis": {"X-ARR-LOG-ID": "a"},
    "fly": {"Fly-Client-IP": "203.0.113.9"},
    "vercel": {"x-vercel-id": "fra1::a"},
    "heroku": {"X-Request-Start": "1731964800"},
    "tailscale": {"Tailscale-User-Login": "ann@example.org"},
    "incapsula": {"Incap-Client-IP": "203.0.113.9"},
    "a shared name": {"Host": "reflexio.example.org"},
}


@pytest.mark.parametrize("headers", PROXIES.values(), ids=list(PROXIES))
async def test_what_a_proxy_passes_on_needs_a_key(http: httpx.AsyncClient, headers: dict[str, str]) -> None:
    answer = await http.get("/api/whoami", headers=headers)
    assert "reflexio keys create" in problem(answer, 403)


async def test_with_a_key_proxies_are_welcome(app: FastAPI, http: httpx.AsyncClient) -> None:
    created = await keys.create(app.state.reflexio.database, SystemClock(), "acme")
    headers = {**PROXIES["caddy"], "Authorization": f"Bearer {created.token}"}
    assert (await http.get("/api/whoami", headers=headers)).json()["org_id"] == "acme"


@pytest.mark.parametrize("version", ["1.0", "0.9"])
def test_an_old_version_of_http_is_a_proxys(version: str) -> None:
    assert came_through_proxy({"headers": [(b"host", b"localhost")], "http_version": version})


def test_two_hosts_are_ambiguous() -> None:
    assert came_through_proxy({"headers": [(b"host", b"localhost"), (b"host", b"example.org")]})


def test_what_honest_clients_send_is_no_mark_of_a_proxy() -> None:
    names = b"""
        host user-agent accept accept-encoding connection content-type content-length authorization idempotency-key
        x-request-id traceparent tracestate baggage x-b3-traceid origin referer sec-fetch-site cookie dnt pragma
        x-stainless-lang x-api-key x-requested-with upgrade-insecure-requests cache-control
    """
    assert not came_through_proxy({"headers": [(name, b"a") for name in names.split()], "http_version": "1.1"})
