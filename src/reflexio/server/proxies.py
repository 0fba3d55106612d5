"""Which requests a proxy has passed on. It may serve the whole internet, although it connects from this machine."""

from collections.abc import Iterable

from starlette.types import Scope

_HEADERS = b"""
    via forwarded cdn-loop proxy-connection x-real-ip x-real-port x-client-ip x-cluster-client-ip true-client-ip
    incap-client-ip x-originating-ip x-remote-ip x-remote-addr x-host x-scheme x-proto x-url-scheme x-request-start
    x-varnish x-arr-log-id x-arr-ssl x-arr-clientcert x-original-url x-original-host x-original-uri
    x-original-method x-original-proto x-original-for x-rewrite-url x-iisnode-version x-waws-unencoded-url
    x-site-deployment-id x-disguised-host x-accel-internal x-nginx-proxy x-country-code
    remote-user x-remote-user x-webauth-user x-cloud-trace-context x-coming-from
"""
_PREFIXES = b"""
    x-forwarded x-proxy proxy- cf- cdn- fly- fastly- akamai- x-akamai- x-amzn- x-amz-cf- cloudfront- x-azure-
    x-fd- x-ms-proxy- x-appengine- x-goog- x-gfe- x-envoy- x-vercel- x-now- x-nf- x-railway- x-render- rndr-
    x-heroku x-sucuri- x-edge- x-auth-request- x-pomerium- tailscale- x-ngrok- ngrok- x-tunnel- x-zrok-
    x-openshift- x-haproxy- x-traefik- x-kong- x-consumer- x-apisix-
"""
HEADERS, PREFIXES = frozenset(_HEADERS.split()), tuple(_PREFIXES.split())
"""What nginx, Caddy, HAProxy, Traefik, Envoy, IIS, clouds, content networks and tunnels add to a request.

An honest client on this machine sends none of them. `X-Request-ID` and `traceparent`, which clients send, are absent.
"""


def came_through_proxy(scope: Scope) -> bool:
    """Whether a proxy has left its mark. nginx speaks HTTP/1.0 to what is behind it; clients have long ceased to.

    A tunnel that copies bytes leaves no mark; against that REFLEXIO_REQUIRE_KEY helps.
    """
    return str(scope.get("http_version", "1.1")) in ("0.9", "1.0") or _is_marked(name for name, _ in scope["headers"])


def _is_marked(names: Iterable[bytes]) -> bool:
    hosts = 0
    for name in names:
        if name in HEADERS or name.startswith(PREFIXES):
            return True
        hosts += name == b"host"
    return hosts > 1
