"""A small world to optimise a playbook in: an assistant that does what it is told, a judge that sees what was done, and
a rewriter. All are functions of texts, so that they can stand behind HTTP, in a script, or in the test itself.

A parcel is marked delivered and is not there. Whoever asks the neighbours and looks at the driver's photo does well.
"""

import json
import random
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

DEEDS = ("ask the neighbours", "look at the photo of the driver")
INCUMBENT = "When a parcel is missing, start a refund."
BEST = f"{INCUMBENT} First {DEEDS[0]}, and {DEEDS[1]}."
TRIGGER = "A parcel is marked delivered, but it is not there"
CHATTER = ("Be friendly.", "Say sorry twice.", "Use short sentences.", "Mention the order number.", "Thank the user.")


def answer(content: str) -> str:
    """What the assistant does with this playbook."""
    done = [deed for deed in DEEDS if deed in content]
    return f"I {' and '.join(done)}." if done else "I start a refund."


def conversation(number: int = 0) -> list[dict[str, str]]:
    return [
        {"role": "User", "content": f"My parcel {number} is marked delivered, but there is nothing here."},
        {"role": "Agent", "content": "I am sorry. I have started a refund for you."},
        {"role": "User", "content": f"No, always {DEEDS[0]} first, and {DEEDS[1]}."},
    ]


def replay(case: str, which: str) -> str:
    """What the assistant says in one of the replays of a judge's case."""
    said = re.findall(rf"^#\w+ {which} replay, line \d+, assistant\n(.*?)(?=\n#)", case, flags=re.MULTILINE | re.DOTALL)
    assert said, f"there is no {which} replay"
    return "\n".join(said)


def opinion(case: str) -> dict[str, Any]:
    """The judge: whoever does more of what was taught is better."""
    first, second = (sum(deed in replay(case, which) for deed in DEEDS) for which in ("first", "second"))
    lead = second - first
    left = [deed for deed in DEEDS if deed not in replay(case, "second") + replay(case, "first")]
    return {
        "verdict": ["first_clearly", "first", "tie", "second", "second_clearly"][2 + lead],
        "rationale": f"{second} of {len(DEEDS)} in the second, {first} in the first.",
        "better_in_first": ["It does more of what was taught."] if lead < 0 else [],
        "better_in_second": ["It does more of what was taught."] if lead > 0 else [],
        "worse_in_first": ["It does less of what was taught."] if lead > 0 else [],
        "worse_in_second": ["It does less of what was taught."] if lead < 0 else [],
        "missing_instructions": left,
        "recommended_mutations": [f"Say to {deed}." for deed in left],
    }


def in_force(case: str) -> str:
    found = re.search(r"^#\w+ the wording in force\n(.*?)(?=\n#)", case, flags=re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def better(case: str) -> dict[str, Any]:
    """A rewriter that adds what is missing, one deed at a time."""
    content = in_force(case)
    missing = [deed for deed in DEEDS if deed not in content]
    return {"content": f"{content} First {missing[0]}." if missing else f"{content} {CHATTER[0]}", "reason": "missing"}


def guessing(case: str) -> dict[str, Any]:
    """A rewriter of moods: what it adds helps half of the time. The same case makes the same wording."""
    content = in_force(case)
    dice = random.Random(sha256(case.encode()).digest())
    missing = [deed for deed in DEEDS if deed not in content]
    added = f"First {dice.choice(missing)}." if missing and dice.random() < 0.5 else dice.choice(CHATTER)
    return {"content": f"{content} {added}", "reason": "a guess"}


def reply(payload: dict[str, Any]) -> dict[str, str]:
    """What the assistant's webhook or script answers."""
    (playbook,) = payload["playbooks"]
    assert payload["messages"][-1]["role"] == "user"
    return {"content": answer(playbook["content"])}


def script_source(python: str, log: str = "") -> str:
    """A program that is the assistant. With `log` it notes every call there."""
    noted = f"open({log!r}, 'a').write(json.dumps(sent) + chr(10))" if log else "pass"
    return f"""#!{python}
import json, sys
sent = json.load(sys.stdin)
{noted}
content = sent["playbooks"][0]["content"]
done = [deed for deed in {json.dumps(DEEDS)} if deed in content]
print(json.dumps({{"content": "I " + " and ".join(done) + "." if done else "I start a refund."}}))
"""


def windows(cited: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    """Source windows of user playbooks that nobody has stored."""
    return [{"user_playbook_id": 900 + number, "source_interaction_ids": list(ids)} for number, ids in enumerate(cited)]
