"""Finds phone numbers in a text, as spans.

Digits alone say little: an order, a date, a price and a version have as many. A number counts as a phone number when it
is written as one (a country code, an area code in brackets, the groups of a country), or when a word for phones stands
before it; never behind a word for orders, invoices and the like.
"""

import re
from collections.abc import Iterator

from reflexio.interactions.sensitive import Span

_GAP = r"[ .\-/\u00a0\u2009\u202f\u2010-\u2013()]"
RUN = re.compile(rf"(?<![0-9A-Za-z_$\u20ac\u00a3\u00a5#@&])(?:[+\uff0b][ ]?)?\(?\d(?:{_GAP}{{0,3}}+\d)++\)?+")
JOINED_LEFT = re.compile(r"[0-9A-Za-z_][-/]$|[0-9][.:,]$")
JOINED_RIGHT = re.compile(
    r"(?!(?:x|ext)\.? ?\d)[0-9A-Za-z_]|[,:.][0-9]|[-/:][0-9A-Za-z]|[ \u00a0]?(?:[\u20ac$\u00a3\u00a5%]|EUR|USD|GBP|CHF)"
)
GROUP = re.compile(r"\d++")
DATE = re.compile(r"(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}([-./])\d{1,2}\1(?:19|20)?\d{2})(?![-./]?\d)[ T]?")
ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")

PHONE_WORD = re.compile(
    r"(?i)(?<![a-z])(?:tel(?:efono|\u00e9fono|efon(?:nummer)?|\u00e9phone|ephone|efone)?|phone|mobile?|cell(?:phone|ulare)?|"
    r"celular|m\u00f3vil|handy(?:nummer)?|fax|whatsapp|sms|text|signal|hotline|call|ring|dial|reach|"
    r"my (?:new |old )?number|meine nummer|mon num\u00e9ro|mi n\u00famero|meu n\u00famero|anrufen|appelez|"
    r"portable|llama\w*|ligue|ruf\w*|r\u00fcckruf\w*|durchwahl)(?![a-z])"
    r"|\u7535\u8bdd|\u96fb\u8a71|\u624b\u673a|\u624b\u6a5f|\u643a\u5e2f|\u8054\u7cfb|\u806f\u7e6b|"
    r"\uc804\ud654|\ud734\ub300|\u0442\u0435\u043b|\u0437\u0432\u043e\u043d|\u0647\u0627\u062a\u0641|\u092b\u094b\u0928"
)
OTHER_WORD = re.compile(
    r"(?i)(?<![a-z])(?:orders?|order(?:number|nummer)|invoices?|tickets?|case (?:number|no)|ref(?:erence)?|"
    r"tracking|parcel|shipment|sku|serial|isbn|ean|upc|gtin|id|ids|build|version|account|customer (?:number|no)|"
    r"policy|contract|booking|article|batch|transaction|model|imei|vat|tax|ssn|zip|plz|timestamp|"
    r"bestell\w*|rechnung\w*|auftrag\w*|kundennummer|vertrag\w*|"
    r"artikel\w*|sendung\w*|konto\w*|commande|facture|colis|pedido|factura|fatura|ordine|fattura|cuenta)"
    r"(?![a-z])|\u8ba2\u5355|\u8a02\u55ae|\u6ce8\u6587|\u5355\u53f7|\u7f16\u53f7|\u0437\u0430\u043a\u0430\u0437"
)
BEFORE = 30
"""Characters before a number in which a word can say what it is."""
FEWEST_DIGITS, MOST_DIGITS, MOST_GROUPS_OF_ONE = 7, 18, 8
MOST_GROUPS = 2_000
"""Groups of digits in one run that are looked at: a table of numbers must not take for ever."""

# The groups of digits in which countries write numbers without country or trunk code.
NATIONAL = tuple(
    re.compile(shape)
    for shape in (
        r"(?:1 )?[2-9]\d\d [2-9]\d\d \d{4}",  # North America
        r"0[1-9]\d* \d[\d ]*",  # a trunk 0: Europe, Japan, Korea, Australia, Africa
        r"1[3-9]\d \d{4} \d{4}",  # China, mobile
        r"[6-9]\d{4} \d{5}",  # India, mobile
        r"[679]\d\d \d\d \d\d \d\d",  # Spain
        r"[1-9]\d 9\d{4} \d{4}",  # Brazil, mobile
        r"8 [3489]\d\d \d\d\d \d\d \d\d",  # Russia
        r"1[38]00 \d\d\d \d\d\d",  # Australia, service numbers
    )
)
COUNTRY = re.compile(
    r"1|7|2[07]|21[1-368]|22\d|23\d|24\d|25[0-8]|26\d|29[01789]|3[0-469]|35\d|37[0-8]|38[0-35-79]|4[013-9]|42[013]|"
    r"5[1-8]|50\d|59\d|6[0-6]|67\d|68\d|69[0-2]|8[1246]|85[02356]|88[068]|9[0-58]|96\d|97[0-7]|99[2-68]"
)


def phones(text: str) -> Iterator[Span]:
    for match in RUN.finditer(text):
        yield from _in_run(text, *match.span())


def _in_run(text: str, start: int, end: int) -> Iterator[Span]:
    """The numbers in a run of digits and gaps. Dates at its beginning are part of none."""
    if JOINED_LEFT.search(text, max(0, start - 2), start):
        return
    while date := DATE.match(text, start, end):
        start = date.end()
    groups = [group.span() for group in GROUP.finditer(text, start, end)][:MOST_GROUPS]
    if groups and JOINED_RIGHT.match(text, end):
        groups.pop()  # it belongs to what follows: a time, a word, a price
    place, is_start = 0, True
    while place < len(groups):
        begin = start if place == 0 else _with_bracket(text, groups[place][0])
        # In the middle of a longer number, such as an IBAN, no number begins.
        ends = _ends(groups, place) if is_start or begin < groups[place][0] else ()
        last = next((at for at in ends if is_phone(*_parts(text, begin, groups[at][1]))), None)
        if last is not None:
            yield _without_open_bracket(text, begin, groups[last][1])
        place, is_start = (place + 1, False) if last is None else (last + 1, True)


def _ends(groups: list[Span], place: int) -> Iterator[int]:
    """Where a number that begins with this group may end: as late as possible."""
    digits, ends = 0, list[int]()
    for at in range(place, len(groups)):
        digits += groups[at][1] - groups[at][0]
        if digits > MOST_DIGITS or at - place >= MOST_GROUPS_OF_ONE:
            break
        if digits >= FEWEST_DIGITS:
            ends.append(at)
    return reversed(ends)


def _with_bracket(text: str, start: int) -> int:
    return start - 1 if text[start - 1] == "(" else start


def _without_open_bracket(text: str, start: int, end: int) -> Span:
    """A bracket that is not closed within the number belongs to the sentence."""
    is_open = text[start] == "(" and text.count("(", start, end) > text.count(")", start, end)
    return start + is_open, end


def _parts(text: str, start: int, end: int) -> tuple[str, str]:
    return text[start:end], text[max(0, start - BEFORE) : start]


def is_phone(written: str, before: str) -> bool:
    groups = ["".join(str(int(sign)) for sign in group) for group in GROUP.findall(written.replace("(0)", ""))]
    digits = "".join(groups)
    if not FEWEST_DIGITS <= len(digits) <= 17 or len(set(digits)) < 2 or ADDRESS.fullmatch(written):
        return False
    if written.lstrip(" (").startswith(("+", "\uff0b")):
        return 8 <= len(digits) <= 15 and COUNTRY.match(digits) is not None
    said, other = _last(PHONE_WORD, before), _last(OTHER_WORD, before)
    if other > said:
        return False
    if said >= 0:
        return len(digits) <= 15
    return _is_international(groups, digits) or _is_national(written, groups, digits)


def _last(pattern: "re.Pattern[str]", before: str) -> int:
    return max((match.start() for match in pattern.finditer(before)), default=-1)


def _is_international(groups: list[str], digits: str) -> bool:
    """With 00 before the country code: in groups, or long enough for nothing else."""
    if not digits.startswith("00") or digits[2:3] == "0":
        return False
    country = COUNTRY.match(digits, 2)
    return country is not None and (11 if len(groups) > 1 else 12) <= len(digits) <= 17


def _is_national(written: str, groups: list[str], digits: str) -> bool:
    if written.startswith("(") and ")" in written[:8]:
        return 8 <= len(digits) <= 12
    if len(groups) == 1:
        # Without gaps, only a trunk 0 before an area code is a sign.
        return len(digits) in (10, 11) and digits[0] == "0" and digits[1] != "0"
    if digits[0] == "0" and not 9 <= len(digits) <= 12:
        return False
    shape = " ".join(groups)
    return any(national.fullmatch(shape) for national in NATIONAL)
