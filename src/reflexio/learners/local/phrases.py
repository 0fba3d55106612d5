"""Patterns of speech, written so that they can be read.

In a phrase a space is any space, an apostrophe either apostrophe, and parentheses only group. The rest is a
regular expression that ignores case: `phrase("I (do not|don't) (really )?like")`.
"""

import re


def phrase(words: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """>>> bool(phrase("I don't (really )?like").match("i  don’t really  like"))
    True
    """
    grouped = re.sub(r"(?<!\\)\((?!\?)", "(?:", words)
    return re.compile(grouped.replace("'", "['’]").replace(" ", r"\s+"), re.I | flags)
