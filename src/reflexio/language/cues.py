"""The cues of one language, compiled so that capitals, missing accents and the spelling of umlauts do not matter."""

import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from unicodedata import normalize

from reflexio.language.words import CueFile

FOLDER = Path(__file__).parent / "spoken"
LANGUAGES = ("de", "es", "fr", "pt", "zh")

_PART = re.compile(r"\{([a-z_]+)\}")
_UMLAUTS = {"ä": "(a|ae)", "ö": "(o|oe)", "ü": "(u|ue)", "ß": "(s|ss)", "œ": "(o|oe)"}
_TRADITIONAL = dict(
    zip(
        "請說講話這個們應該驗證對後從現開稱為無論麼問題簡體過敏討厭歡電郵種歲兒養貓輪結婚單離職業學醫師護會計繁總語寫別點條錢價發給還沒讓叫號時間每關閉錯長訴絕覺聽記頭裡裏來買賣車飯紅綠藥糖樂東兩幾萬億書報網鄰",
        "请说讲话这个们应该验证对后从现开称为无论么问题简体过敏讨厌欢电邮种岁儿养猫轮结婚单离职业学医师护会计繁总语写别点条钱价发给还没让叫号时间每关闭错长诉绝觉听记头里里来买卖车饭红绿药糖乐东两几万亿书报网邻",
        strict=True,
    )
)


@cache
def _folding() -> dict[int, str]:
    """Letter for letter, so that places in the folded text are places in the text."""
    letters = {ord(letter): _plain(letter) for letter in map(chr, range(0xC0, 0x250))}
    return letters | {ord(old): new for old, new in _TRADITIONAL.items()} | {0x2019: "'", 0xA0: " "}


def _plain(letter: str) -> str:
    special = {"ß": "s", "œ": "o", "æ": "a", "ø": "o", "ı": "i"}
    return special.get(letter.lower()) or normalize("NFD", letter.lower())[0]


def folded(text: str) -> str:
    """The text in small letters without accents, letter for letter.

    >>> folded("Größe, Niño"), len(folded("Größe"))
    ('grose, nino', 5)
    """
    lower = text.lower()
    return (lower if len(lower) == len(text) else text).translate(_folding())


@dataclass(frozen=True)
class FactCue:
    """How a statement about the speaker begins. `is_single` tells that a person has one value of it."""

    about: str
    is_standing: bool
    is_single: bool
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class Topic:
    """A matter on which an order can say this or that: the patterns of what it can say, or one with a `value`."""

    name: str
    choices: tuple[tuple[str, re.Pattern[str]], ...]


class LanguageCues(CueFile):
    """The cues of one language. Patterns are written with accents and found without them."""

    def __init__(self, language: str) -> None:
        super().__init__(FOLDER / f"{language}.toml")
        self.language = language

    @cached_property
    def data(self) -> dict[str, Any]:
        data = super().data
        spelled = {name: data[name] if name == "frames" else _with_spellings(data[name]) for name in data}
        parts = spelled["parts"]
        for name in parts:  # a part may name those before it
            parts[name] = _PART.sub(lambda part: parts[part[1]], parts[name])
        return spelled

    @cached_property
    def facts(self) -> tuple[FactCue, ...]:
        return tuple(
            FactCue(cue["about"], cue["about"] not in self._matters, cue.get("single", False), self.compile(beginning))
            for cue in self.data["facts"]
            for beginning in cue["beginnings"]
        )

    @property
    def _matters(self) -> frozenset[str]:
        """What bears on its own subject only."""
        return frozenset(("preference", "goal"))

    @cached_property
    def topics(self) -> tuple[Topic, ...]:
        return tuple(
            Topic(name, tuple((value, self.compile(pattern)) for value, pattern in choices.items()))
            for name, choices in self.data["topics"].items()
        )

    def frame(self, name: str, words: str) -> str:
        frame: str = self.data["frames"][name]
        return frame.replace("{}", words)


@cache
def cues_of(language: str) -> LanguageCues:
    return LanguageCues(language)


def _with_spellings(cues: Any) -> Any:
    """All patterns in the form in which folded texts are searched."""
    if isinstance(cues, dict):
        return {name: _with_spellings(cue) for name, cue in cues.items()}
    if isinstance(cues, list):
        return [_with_spellings(cue) for cue in cues]
    if not isinstance(cues, str) or cues.isascii():
        return cues
    spelled = "".join(_UMLAUTS.get(letter, letter) for letter in cues)
    return spelled.translate(_folding())
