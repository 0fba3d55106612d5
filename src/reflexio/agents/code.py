"""Code and JSON between the words of a model's answer."""

import re

_FENCE = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```[ \t\r]*$", re.MULTILINE | re.DOTALL)


def code_in(text: str) -> str:
    """The longest fenced block, or the whole text when nothing is fenced.

    >>> code_in("Here it is:\\n```python\\nx = 1\\n```\\nDone.")
    'x = 1\\n'
    """
    blocks = _FENCE.findall(text)
    return max(blocks, key=len) if blocks else text
