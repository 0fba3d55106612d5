"""Finds e-mail addresses, card numbers, IBANs, keys and tokens in a text, as spans.

A pattern only proposes; a check digit, a list of prefixes or the look of the characters decides. Every pattern begins
at a boundary and is possessive or bounded, so that the time grows with the length of a text and not faster.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator

Span = tuple[int, int]

# Letters that addresses are written with, but no ideographs: Chinese text has no blank before and behind an address.
_LETTER = r"0-9A-Za-z\u00c0-\u024f\u0370-\u052f"
_AT = r"(?:@|\uff20|%40)"
EMAIL = re.compile(
    rf"(?:(?<![{_LETTER}_.+~-])[{_LETTER}_.+~-]++|\"[^\"\s]{{1,64}}\"){_AT}([{_LETTER}_-]++(?:\.[{_LETTER}_-]++)++)"
)
ANY_EMAIL = re.compile(rf"(?<![\w.+~-])[\w.+~-]++{_AT}([\w-]++(?:\.[\w-]++)++)")
VERSION = re.compile(r"v?\d+\.\d")


def emails(text: str) -> Iterator[Span]:
    if "@" not in text and "\uff20" not in text and "%40" not in text:
        return
    last = 0
    for match in EMAIL.finditer(text):
        if _is_domain(match[1]):
            yield from _in_other_scripts(text, last, match.start())
            yield match.span()
            last = match.end()
    yield from _in_other_scripts(text, last, len(text))


def _in_other_scripts(text: str, start: int, end: int) -> Iterator[Span]:
    return (match.span() for match in ANY_EMAIL.finditer(text, start, end) if _is_domain(match[1]))


def _is_domain(domain: str) -> bool:
    """Whether this can be a mail server: "lodash@4.17.21" and "a@b.1" have none."""
    last = domain.rstrip("-_").rpartition(".")[2]
    return len(last) >= 2 and last[0].isalpha() and not VERSION.match(domain)


_BETWEEN = r"[ .\-\u00a0\u2009\u202f\u2010-\u2013]"
CARD = re.compile(
    rf"(?<![0-9A-Za-z_])(?:\d{{13,19}}|\d{{4}}{_BETWEEN}\d{{6}}{_BETWEEN}\d{{4,5}}"
    rf"|\d{{4}}(?:{_BETWEEN}\d{{4}}){{2}}{_BETWEEN}\d{{1,4}}(?:{_BETWEEN}\d{{3}})?)(?![0-9A-Za-z_])"
)
# The first digits of the card networks, and the lengths that each of them issues.
NETWORKS = (
    (re.compile(r"4"), {13, 16, 19}),
    (re.compile(r"5[1-5]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720)"), {16}),
    (re.compile(r"3[47]"), {15}),
    (re.compile(r"3(?:0[0-5]|095|[689])"), {14, 16, 17, 18, 19}),
    (re.compile(r"6011|64[4-9]|65|62|81"), {16, 17, 18, 19}),
    (re.compile(r"35(?:2[89]|[3-8])"), {16, 17, 18, 19}),
    (re.compile(r"5[06-8]|6[0379]"), {13, 14, 15, 16, 17, 18, 19}),
    (re.compile(r"220[0-4]|9792"), {16, 17, 18, 19}),
)


def cards(text: str) -> Iterator[Span]:
    return _checked(CARD, text, is_card)


def is_card(written: str) -> bool:
    """Whether a network issues cards of this length with these first digits, and the check digit (Luhn) is right."""
    digits = "".join(str(int(sign)) for sign in written if sign.isdecimal())
    if not any(len(digits) in lengths and network.match(digits) for network, lengths in NETWORKS):
        return False
    doubled = (divmod(2 * int(digit), 10) for digit in digits[-2::-2])
    return (sum(map(sum, doubled)) + sum(map(int, digits[-1::-2]))) % 10 == 0


def _checked(pattern: "re.Pattern[str]", text: str, is_valid: Callable[[str], bool]) -> Iterator[Span]:
    """Matches that are valid. After one that is not, the search goes on behind its first group of digits."""
    place = 0
    while match := pattern.search(text, place):
        if is_valid(match[0]):
            yield match.span()
            place = match.end()
        else:
            place = match.start() + 1


# The length of an IBAN in each country, from the registry.
LENGTHS = {
    country: length
    for length, countries in {
        15: "NO",
        16: "BE",
        18: "DK FI FO GL NL SD FK",
        19: "MK SI",
        20: "AT BA EE KZ LT LU XK MN",
        21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA",
        23: "AE GI IL IQ OM TL SO",
        24: "AD CZ DZ ES MD PK RO SA SE SK TN VG",
        25: "AO CV LY MZ PT ST",
        26: "IS TR IR",
        27: "BF BI CF CG CM DJ FR GA GR IT MC MG ML MR SM SN TD TG BJ CI",
        28: "AL AZ BY CY DO GT HN HU LB NE NI PL SV",
        29: "BR EG PS QA UA",
        30: "JO KW MU YE",
        31: "MT SC",
        32: "LC",
        33: "RU",
    }.items()
    for country in countries.split()
}
IBAN = re.compile(r"(?<![0-9A-Za-z_])([A-Za-z]{2})\d{2}(?=[ .\-\u00a0]?[0-9A-Za-z])")


def ibans(text: str) -> Iterator[Span]:
    for match in IBAN.finditer(text):
        length = LENGTHS.get(match[1].upper(), 0)
        end = _end_of(text, match.start(), length) if length else 0
        if end and has_iban_check(text[match.start() : end]):
            yield match.start(), end


def _end_of(text: str, start: int, length: int) -> int:
    """Where so many letters and digits end, at most one blank or dash between two of them; 0 if there are fewer."""
    place, after_gap = start, False
    while place < len(text) and length:
        sign = text[place]
        if sign.isascii() and sign.isalnum():
            length, after_gap = length - 1, False
        elif after_gap or sign not in " .-\u00a0":
            return 0
        else:
            after_gap = True
        place += 1
    is_over = place == len(text) or not (text[place].isascii() and (text[place].isalnum() or text[place] == "_"))
    return place if not length and is_over else 0


def has_iban_check(written: str) -> bool:
    """Whether the remainder of an IBAN by 97 is 1."""
    signs = [sign for sign in written.upper() if sign.isalnum()]
    return int("".join(str(int(sign, 36)) for sign in signs[4:] + signs[:4])) % 97 == 1


_WORD = r"0-9A-Za-z_"
# Tokens whose makers mark them by their first characters.
MARKED_KEY = re.compile(
    rf"(?<![{_WORD}])(?:"
    r"sk-[0-9A-Za-z_-]{16,}+"
    r"|(?:sk|pk|rk)_(?:live|test)_[0-9A-Za-z]{10,}+|whsec_[0-9A-Za-z+/=]{16,}+"
    r"|gh[pousr]_[0-9A-Za-z]{16,}+|github_pat_[0-9A-Za-z_]{16,}+"
    r"|gl(?:pat|dt|rt|cbt|ptt|soat|ffct)-[0-9A-Za-z_.-]{16,}+"
    r"|xox[a-z]-[0-9A-Za-z-]{8,}+|xapp-[0-9A-Za-z-]{8,}+"
    r"|(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![0-9A-Za-z])"
    r"|AIza[0-9A-Za-z_-]{30,}+|ya29\.[0-9A-Za-z_-]{16,}+|GOCSPX-[0-9A-Za-z_-]{16,}+"
    r"|(?:hf|npm|gsk|xai|pplx|r8|rfx|tgp|nvapi|fw|csk|lsv2|lin_api|dckr_pat|figd|sntrys|ntn|secret)[_-][0-9A-Za-z_-]{20,}+"
    r"|pypi-[0-9A-Za-z_-]{16,}+|do[opr]_v1_[0-9a-f]{32,}+|shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{16,}+"
    r"|SG\.[0-9A-Za-z_-]{10,}+\.[0-9A-Za-z_-]{10,}+|sq0(?:atp|csp|idp)-[0-9A-Za-z_-]{16,}+"
    r"|AGE-SECRET-KEY-1[0-9A-Z]{20,}+|dapi[0-9a-f]{32}|key-[0-9a-f]{32}|hv[sb]\.[0-9A-Za-z_-]{20,}+"
    r"|eyJ[0-9A-Za-z_-]{8,}+(?:\.[0-9A-Za-z_-]*+){2,4}"
    r")"
)
PEM_HEAD = re.compile(r"-----BEGIN [0-9A-Z ]{1,40}-----")
PEM_BODY = re.compile(r"(?:[^-]|-(?!----))*+-----END [0-9A-Z ]{1,40}-----|(?:(?:\s|\\[nr])*+[0-9A-Za-z+/=]{30,}+)++")
AUTHORISED = re.compile(r"(?i)(?<![a-z])(?:bearer|basic|token|apikey)[ \t]{1,4}+([0-9a-z_.~+/=:-]{16,}+)")
ASSIGNED = re.compile(
    r"(?i)(?:key|token|secret|passw(?:or)?d|passwd|pwd|authorization|credentials?|signature)"
    r"[\"'\\]{0,4}+[ \t]{0,4}+(?:[:=]|=>)[ \t]{0,4}+[\"'\\]{0,4}+([0-9a-z_.~+/=!@#$%^&*-]{8,}+)"
)
LONG_RUN = re.compile(rf"(?<![{_WORD}+/=-])[0-9A-Za-z_-]{{32,}}+")
PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
MIXED = 0.34
"""Words and numbers for each character of a run: random text has 0.45, names of things 0.2 to 0.3."""


def keys(text: str) -> Iterator[Span]:
    yield from _pem_blocks(text)
    for match in MARKED_KEY.finditer(text):
        if not match[0].startswith(("secret", "fw", "key")) or looks_random(match[0]):
            yield match.span()
    for match in AUTHORISED.finditer(text):
        if looks_random(match[1]):
            yield match.span(1)
    for match in ASSIGNED.finditer(text):
        if looks_random(match[1]):
            yield match.span(1)
    for match in LONG_RUN.finditer(text):
        if _is_mixed(match[0]):
            yield match.span()


def _pem_blocks(text: str) -> Iterator[Span]:
    place = 0
    while head := PEM_HEAD.search(text, place):
        body = PEM_BODY.match(text, head.end())
        place = body.end() if body else head.end()
        if body:
            yield head.start(), place


def looks_random(value: str) -> bool:
    """Whether a value that stands where a secret stands is one: "your-token-here" and "required" are not."""
    sample = value.rstrip(".=")[:200]
    kinds = sum(any(test(sign) for sign in sample) for test in (str.isupper, str.islower, str.isdigit))
    return len(sample) >= 8 and kinds >= 2 and any(map(str.isdigit, sample)) and _entropy(sample) >= 2.75


def _entropy(value: str) -> float:
    """Bits for each character."""
    counts = Counter(value).values()
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts)


def _is_mixed(run: str) -> bool:
    """Whether a long run is a token by its look alone, not a name, a digest in hexadecimal, or a number."""
    sample = run[:200].replace("_", "").replace("-", "")
    if not all(any(map(test, sample)) for test in (str.isupper, str.islower, str.isdigit)):
        return False
    return len(PART.findall(run[:200])) >= MIXED * len(sample) and _entropy(sample) >= 3.5
