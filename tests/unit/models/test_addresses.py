"""What an address reaches, in every spelling that a client or a C library understands."""

import pytest

from reflexio.models.addresses import Reach, check_url, host_reach, reach

PUBLIC, PRIVATE, FORBIDDEN = Reach.PUBLIC, Reach.PRIVATE, Reach.FORBIDDEN


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("169.254.169.254", FORBIDDEN),
        ("169.254.1.1", FORBIDDEN),
        ("0.0.0.0", FORBIDDEN),  # noqa: S104
        ("0.1.2.3", FORBIDDEN),
        ("100.100.100.200", FORBIDDEN),
        ("168.63.129.16", FORBIDDEN),
        ("224.0.0.1", FORBIDDEN),
        ("255.255.255.255", FORBIDDEN),
        ("::", FORBIDDEN),
        ("fe80::1", FORBIDDEN),
        ("fe80::1%eth0", FORBIDDEN),
        ("ff02::1", FORBIDDEN),
        ("fd00:ec2::254", FORBIDDEN),
        ("fd20:ce::254", FORBIDDEN),
        ("::ffff:169.254.169.254", FORBIDDEN),
        ("::ffff:0:169.254.169.254", FORBIDDEN),
        ("::169.254.169.254", FORBIDDEN),
        ("64:ff9b::a9fe:a9fe", FORBIDDEN),
        ("64:ff9b:1::a9fe:a9fe", FORBIDDEN),
        ("2002:a9fe:a9fe::1", FORBIDDEN),
        ("2001:0:a9fe:a9fe::1", FORBIDDEN),
        ("2001:db8::5efe:a9fe:a9fe", FORBIDDEN),
        ("127.0.0.1", PRIVATE),
        ("127.8.8.8", PRIVATE),
        ("10.1.2.3", PRIVATE),
        ("172.16.0.1", PRIVATE),
        ("192.168.1.1", PRIVATE),
        ("100.64.0.1", PRIVATE),
        ("::1", PRIVATE),
        ("::127.0.0.1", PRIVATE),
        ("::ffff:10.0.0.1", PRIVATE),
        ("64:ff9b::a00:1", PRIVATE),
        ("2002:7f00:1::", PRIVATE),
        ("fd12:3456::1", PRIVATE),
        ("fec0::1", PRIVATE),
        ("93.184.216.34", PUBLIC),
        ("::ffff:93.184.216.34", PUBLIC),
        ("64:ff9b::5db8:d822", PUBLIC),
        ("2606:2800:220:1::1", PUBLIC),
    ],
)
def test_what_an_address_reaches(number: str, expected: Reach) -> None:
    assert reach(number) is expected


@pytest.mark.parametrize(
    "host",
    [
        "2852039166",
        "0xA9FEA9FE",
        "0251.0376.0251.0376",
        "0xa9.0xfe.0xa9.0xfe",
        "169.254.43518",
        "169.16689662",
        "0251.0xfe.43518",
        "169.254.169.254.",
        "[::ffff:a9fe:a9fe]",
        "[::FFFF:169.254.169.254]",
        "１６９.254.169.254",
        "169。254。169。254",
        "①⑥⑨.254.169.254",
        "%31%36%39.254.169.254",
        "0",
        "0x0",
        "METADATA.google.internal.",
        "metadata",
    ],
)
def test_every_spelling_of_a_forbidden_address_is_recognised(host: str) -> None:
    assert host_reach(host) is FORBIDDEN


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "2130706433", "017700000001", "127.1"])
def test_every_spelling_of_this_machine_is_recognised(host: str) -> None:
    assert host_reach(host) is PRIVATE


@pytest.mark.parametrize("host", ["example.org", "", "a-b", "metadata.example.org", "deadbeef.example", "xn--nxasmq6b"])
def test_names_are_left_to_the_connection(host: str) -> None:
    assert host_reach(host) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest",
        "http://user@169.254.169.254/",
        "http://[::ffff:169.254.169.254]:80/",
        "http://169.254.169.254\\@example.org/",
        "http://exa mple.org/",
        "http://0.0.0.0:8081/",
    ],
)
def test_urls_with_such_hosts_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="must"):
        check_url(url)


@pytest.mark.parametrize("url", ["https://example.org/a?b=169.254.169.254", "http://127.0.0.1:11434/v1", "b"])
def test_other_urls_are_returned_unchanged(url: str) -> None:
    assert check_url(url) == url
