"""What is redacted and what is not, in formats from many countries. All names, numbers and keys are invented."""

import time

import pytest

from reflexio.interactions.redaction import FINDERS, Redactor
from reflexio.models.config import Config
from reflexio.models.interaction import InteractionData, ToolUsed
from reflexio.models.redaction import RedactionKind

ALL = frozenset(RedactionKind)


def redacted(text: str, *kinds: RedactionKind) -> str:
    return Redactor(kinds or ALL).text(text)


# Built from parts, so that no scanner takes an example for a leak.
KEYS = [
    "sk-" + "proj-" + "aB3dE5gH7jK9mN1pQ3sT5vW7",
    "sk-" + "ant-api03-" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ_-aB3dE5",
    "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ1bC3dE5fG7",
    "github_pat_" + "11ABCDEFG0aB3dE5gH7jK9_mN1pQ3sT5vW7yZ",
    "glpat-" + "aB3dE5gH7jK9mN1pQ3sT",
    "xoxb-" + "123456789012-1234567890123-aB3dE5gH7jK9mN1pQ3sT",
    "AKIA" + "ABCDEFGHIJ234567",
    "AIza" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ1bC3dE5fG",
    "sk_live_" + "aB3dE5gH7jK9mN1pQ3sT5vW7",
    "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeF",
    "SG." + "aB3dE5gH7jK9mN1pQ3sT5v." + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ1bC3dE5fG7hI9j",
    "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NSJ9." + "aB3dE5gH7jK9mN1pQ3sT5vW7",
    "rfx_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ1bC3dE5fG7hI9jK1l",
]
FOUND = {
    RedactionKind.EMAIL: [
        "amira@lamps.example",
        "a.b+news@mail.shop.example.org",
        "MEI_99@EXAMPLE.CO.UK",
        "jörg.müller@münchen.example",
        "иван@почта.рф",
        "o-k@xn--bcher-kva.example",
        '"mei"@shop.example',
        "amira%40lamps.example",
    ],
    RedactionKind.PHONE: [
        "+49 30 1234567",
        "+49 (0)170 12345678",
        "+4917012345678",
        "+1 (415) 555-2671",
        "+1-415-555-2671",
        "+44 20 7946 0958",
        "+33 6 12 34 56 78",
        "+81 90-1234-5678",
        "+86 138 1234 5678",
        "+55 (11) 91234-5678",
        "+971 50 123 4567",
        "+91 98765 43210",
        "(415) 555-2671",
        "415-555-2671",
        "415.555.2671",
        "1-800-555-0199",
        "030 1234567",
        "0170/12345678",
        "(030) 123456",
        "089-12345678",
        "020 7946 0958",
        "07911 123456",
        "06 12 34 56 78",
        "06.12.34.56.78",
        "0612345678",
        "03-1234-5678",
        "010-1234-5678",
        "138-1234-5678",
        "(11) 91234-5678",
        "8 (495) 123-45-67",
        "0049 30 1234567",
        "0033612345678",
        "０９０-１２３４-５６７８",
    ],
    RedactionKind.CARD: [
        "4111111111111111",
        "4111 1111 1111 1111",
        "4111-1111-1111-1111",
        "5555 5555 5555 4444",
        "2223003122003222",
        "3782 822463 10005",
        "378282246310005",
        "30569309025904",
        "6011111111111117",
        "3530111333300000",
        "6200000000000005",
    ],
    RedactionKind.IBAN: [
        "DE89370400440532013000",
        "DE89 3704 0044 0532 0130 00",
        "GB82 WEST 1234 5698 7654 32",
        "FR14 2004 1010 0505 0001 3M02 606",
        "NL91 ABNA 0417 1643 00",
        "CH93 0076 2011 6238 5295 7",
        "NO93 8601 1117 947",
        "es91 2100 0418 4502 0005 1332",
        "MT84 MALT 0110 0001 2345 MTLC AST0 01S",
    ],
    RedactionKind.KEY: KEYS,
}
SENTENCES = [
    "{}",
    "Please use {} from now on.",
    "({}), thanks!",
    "请用{}，谢谢",
    '{{"value": "{}"}}',
    "first line\n{}\nlast",
]


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts])
def test_what_is_private_is_replaced_by_its_mark_and_nothing_else_is(kind: RedactionKind, text: str) -> None:
    for sentence in SENTENCES:
        assert redacted(sentence.format(text), kind) == sentence.format(kind.mark)
    assert redacted(f"Mail {text}") == f"Mail {kind.mark}"


KEPT = [
    "Order 4711-0815-2024 is late.",
    "Order number 0612345678 was paid.",
    "订单号13812345678已发货",
    "Bestellnummer 0451 2345678",
    "Invoice 2024-000123 of 05.11.2026, due 2026-12-01.",
    "From 01.02.2024 to 03.04.2025 it cost 1 234 567,89 EUR.",
    "It cost 612 345 678 € or $415 555 2671.",
    "1.234.567,00 and 1,234,567.00 and 0.123456789012",
    "2026-11-18T21:33:11Z, 2026-11-18 21:33:11.123456, 20261118213311",
    "Epoch 1700000000, 1700000000000 and 1700000000123456.",
    "Version 10.15.7.19045, v2.13.4-rc.1, Chrome/126.0.6478.127",
    "550e8400-e29b-41d4-a716-446655440000",
    "12345678-1234-4234-8234-123456789012",
    "a0612345-0612-4155-8890-061234567890",
    "192.168.100.200 and 10.0.0.1:8080",
    "ISBN 978-3-16-148410-0, EAN 4006381333931",
    "Tracking 1Z999AA10123456784, parcel 00340434161094042557",
    "48.8566, 2.3522 and -122.419416",
    "It has 1000000 rows, 12345678 bytes and 99,999,999 hits.",
    "4111 1111 1111 1112 fails its check",
    "1234 5678 9012 3456",
    "0000 0000 0000 0000",
    "DE89 3704 0044 0532 0130 01 has a wrong check",
    "AB12 CDEF 3456 GHIJ",
    "npm install lodash@4.17.21 react@18.0.0-rc.1 @types/node@20.11.5",
    "@amira please look; we meet @ 5 pm",
    "user@localhost",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "The sk-learn package and the task-force; ghp is a word.",
    "How-To-Install-Python3-On-Windows-10-Step-By-Step-Guide",
    "thisIsAVeryLongJavaMethodNameForTheInvoiceServiceFactory2",
    "Authorization: Bearer <token>, api_key=YOUR_API_KEY, password: required",
    "The token budget is used up; the key is under the mat.",
    "call get_invoice with id 1234567",
    "Room 101, seats 12 13 14 15, pages 100-200",
    "12/24/2026 10:30 and 24-12-2026",
    "[email] and [phone] and [card] and [iban] and [key]",
    "1 2 3 4 5 6 7 8 9 10 11 12",
    "Size 10 x 20 x 30, EU 42, 1024 x 768",
]


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_alike_stays(text: str) -> None:
    assert redacted(text) == text


SECRETS = [
    ("Authorization: Bearer {}", "aB3dE5gH7jK9mN1pQ3sT5vW7"),
    ("curl -H 'Authorization: Token {}'", "9944b09199c62bcf9418ad846dd0e4bb"),
    ('{{"api_key": "{}"}}', "aB3dE5gH7jK9mN1p"),
    ("password={}", "hunter2-Xy9!"),
    ("aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzz1KEY"),
    ("it is {} there", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ1bC3dE5fG7"),
]


@pytest.mark.parametrize(("sentence", "secret"), SECRETS)
def test_a_token_without_a_mark_of_its_maker_is_found_by_its_place_or_its_look(sentence: str, secret: str) -> None:
    assert redacted(sentence.format(secret)) == sentence.format("[key]")


def test_a_pem_block_is_one_key_also_in_json_and_when_its_end_is_missing() -> None:
    body = "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7aaaaaaaaaaaa"] * 3)
    block = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"
    assert redacted(f"Here: {block} Done.") == "Here: [key] Done."
    escaped = block.replace("\n", "\\n")
    assert redacted(f'{{"pem": "{escaped}"}}') == '{"pem": "[key]"}'
    cut = block.partition("-----END")[0].rstrip()
    assert redacted(f"{cut}\nThat was it.") == "[key]\nThat was it."


@pytest.mark.parametrize(
    "text",
    ["Call me at 4155552671", "Tel. 1234567", "我的电话是13812345678", "WhatsApp: 612345678", "tel:+493012345678"],
)
def test_a_word_for_phones_makes_digits_a_phone_number(text: str) -> None:
    assert redacted(text).endswith("[phone]")


def test_an_address_in_a_script_without_blanks_takes_what_touches_it_along() -> None:
    assert redacted("请写信给 用户@例子.广告 谢谢") == "请写信给 [email] 谢谢"


def test_several_in_one_text_are_all_replaced_and_counted() -> None:
    redactor = Redactor(ALL)
    text = "a@b.example, c@d.example; 030 1234567 030 7654321; +49 30 1234567 10:30; exp 12 4111 1111 1111 1111 12/27"
    assert redactor.text(text) == "[email], [email]; [phone] [phone]; [phone] 10:30; exp 12 [card] 12/27"
    assert redactor.counts == {"email": 2, "phone": 3, "card": 1}


def test_only_the_kinds_that_are_asked_for() -> None:
    assert redacted("a@b.example, +49 30 1234567", RedactionKind.PHONE) == "a@b.example, [phone]"


def test_redacted_text_stays_as_it_is() -> None:
    for texts in FOUND.values():
        once = redacted("; ".join(texts))
        assert redacted(once) == once


def test_every_text_of_a_turn_is_redacted_and_ids_and_images_are_not() -> None:
    mail = "amira@lamps.example"
    tool = ToolUsed(
        tool_name=f"send to {mail}",
        tool_data={"to": [mail, {"deep": [mail]}], mail: 1, "b@c.example": 2, "card": 4111111111111111, "at": 17e8},
        status=mail,
    )
    turn = InteractionData(
        content=mail,
        shadow_content=mail,
        expert_content=mail,
        user_action="click",
        user_action_description=mail,
        interacted_image_url=f"https://shop.example/?u={mail}",
        tools_used=[tool],
        citations=[{"kind": "profile", "real_id": mail, "tag": mail, "title": mail}],
        retrieved_learnings=[{"kind": "profile", "learning_id": mail}],
    )
    redactor = Redactor(ALL)
    stored = redactor.turn(turn).model_dump()
    assert stored["tools_used"][0]["tool_data"] == {
        "to": ["[email]", {"deep": ["[email]"]}],
        "[email]": 1,
        "[email] 2": 2,
        "card": "[card]",
        "at": 17e8,
    }
    assert stored["citations"][0]["real_id"] == stored["retrieved_learnings"][0]["learning_id"] == mail
    stored["citations"][0]["real_id"] = stored["retrieved_learnings"][0]["learning_id"] = ""
    assert mail not in str(stored)
    image = InteractionData(image_encoding="aB3dE5gH7jK9mN1pQ3sT5vW7yZ1bC3dE5fG7")
    assert redactor.turn(image).image_encoding == image.image_encoding


UNITS = [
    "a", "1", "1 ", "0 ", "1234 ", "030 ", "(", "(0", "+", "+1",
    "@", "a@", "a@b.", "a@b-", "a.", "%40", '"', '"a', "-", "1-",
    "-----BEGIN A-----", "-----BEGIN ", "-----BEGIN A-----A", "eyJ", "eyJaaaaaaaa.", "sk-", "sk-a", "Bearer ",
    "token ", "token=",
    "key=\"", "key \\", "DE89", "DE89 ", "A1b", "aA1-", "xoxb-", "4111 1111 1111 111", "\u3000", "用@",
    "1.", "00", "0.0.", "/1",
]  # fmt: skip


@pytest.mark.parametrize("kind", RedactionKind)
def test_the_time_grows_with_the_length_and_not_faster(kind: RedactionKind) -> None:
    """A linear finder takes some 30 ms for 60,000 characters; a quadratic one at least half a minute."""
    for unit in UNITS:
        text = unit * (60_000 // len(unit))
        began = time.process_time()
        for _ in FINDERS[kind](text):
            pass
        assert time.process_time() - began < 3, unit


@pytest.mark.parametrize(
    ("written", "kinds"),
    [
        (None, []),
        ([], []),
        (["email", "phone"], ["email", "phone"]),
        (["E-Mails", "credit card", "api_keys"], ["email", "card", "key"]),
        ("all", list(RedactionKind)),
        (True, list(RedactionKind)),
    ],
)
def test_kinds_are_translated(written: object, kinds: list[str]) -> None:
    assert Config.model_validate({"redaction": written}).redaction == kinds


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(ValueError, match="redaction"):
        Config.model_validate({"redaction": ["shoe size"]})
