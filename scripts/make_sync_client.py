"""Writes `client/fields.py` from the request models and `client/sync` from `client/aio`.

With --check it writes nothing and only says whether they are up to date.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from reflexio.models.interaction import GetInteractionsRequest, GetRequestsRequest
from reflexio.models.learning import Status
from reflexio.models.playbook import (
    GetAgentPlaybooksRequest,
    GetUserPlaybooksRequest,
    RecordOutcomeRequest,
    UpdateAgentPlaybookRequest,
    UpdatePlaybookStatusRequest,
    UpdateUserPlaybookRequest,
)
from reflexio.models.profile import GetAllProfilesRequest, GetUserProfilesRequest, UpdateUserProfileRequest
from reflexio.models.review import GetReviewQueueRequest, ReviewAgentPlaybooksRequest, UndoReviewRequest
from reflexio.models.search import (
    ContextRequest,
    SearchAgentPlaybooksRequest,
    SearchInteractionsRequest,
    SearchUserPlaybooksRequest,
    SearchUserProfilesRequest,
    UnifiedSearchRequest,
)

CLIENT = Path(__file__).parent.parent / "src" / "reflexio" / "client"

# Fields that have no effect or are meant for other clients: they can be sent in a whole `request` only.
UNOFFERED = {
    "conversation_history",
    "custom_feature",
    "enable_agent_answer",
    "enable_reformulation",
    "extractor_name",
    "interaction_id",
}
TRACING = ["request_id", "session_id"]

# The models whose fields are keywords, and the fields that are none: the method names them as parameters of its own,
# or does not offer them. Where a whole `request` may be passed by keyword, it is one of the keywords.
WHOLE = "request"
MODELS: dict[type[BaseModel], list[str]] = {
    GetInteractionsRequest: ["user_id", WHOLE],
    GetRequestsRequest: [],
    GetUserProfilesRequest: ["user_id", WHOLE],
    GetAllProfilesRequest: ["limit"],
    GetUserPlaybooksRequest: [],
    GetAgentPlaybooksRequest: TRACING,
    UpdateUserProfileRequest: ["user_id", "profile_id"],
    UpdateUserPlaybookRequest: ["user_playbook_id"],
    UpdateAgentPlaybookRequest: ["agent_playbook_id"],
    UpdatePlaybookStatusRequest: ["agent_playbook_id", "playbook_status"],
    RecordOutcomeRequest: ["outcome"],
    GetReviewQueueRequest: [],
    ReviewAgentPlaybooksRequest: ["agent_playbook_ids", "playbook_status"],
    UndoReviewRequest: ["agent_playbook_ids"],
    UnifiedSearchRequest: ["query", "request_id", WHOLE],
    ContextRequest: ["query"],
    SearchUserProfilesRequest: ["user_id", "query", *TRACING, WHOLE],
    SearchUserPlaybooksRequest: ["query", *TRACING, WHOLE],
    SearchAgentPlaybooksRequest: ["query", "user_id", *TRACING, WHOLE],
    SearchInteractionsRequest: ["user_id", "query", WHOLE],
}
FIELDS_HEAD = '''# Generated from the request models by scripts/make_sync_client.py. Change those and run `make format`.
"""The keywords of the client's methods. Those of `XRequest` are `XFields`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict
'''

SYNC_NOTE = (
    "# Generated from client/aio/{name} by scripts/make_sync_client.py. Change that file and run `make format`.\n"
)
REPLACEMENTS = (
    (r"\basync (def|with|for) ", r"\1 "),
    (r"\bawait ", ""),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"import Awaitable, Callable", "import Callable"),
    (r"\bAsyncReflexioClient\b", "ReflexioClient"),
    (r"\bAsync(Background|HttpClients)\b", r"\1"),
    (r"\bhttpx\.Async(\w+)", r"httpx.\1"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAsyncGenerator\[(\w+), None\]", r"Generator[\1, None, None]"),
    (r"\bAsyncGenerator\b", "Generator"),
    (r"\baclosing\b", "closing"),
    (r"\b__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\baclose\b", "close"),
    (r"\ba(iter_bytes|iter_lines|read)\b", r"\1"),
    (r"\bimport asyncio\n", ""),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\bclient\.aio\b", "client.sync"),
    (
        r"The asynchronous client\. The synchronous one in `reflexio\.client\.sync` is generated from this folder\.",
        "The synchronous client.",
    ),
)


def keywords(models: dict[type[BaseModel], list[str]]) -> str:
    """The module `client/fields.py`."""
    used: set[type] = set()
    classes = "".join(_typed_dict(model, left_out, used) for model, left_out in models.items())
    imports = "".join(f"from {kind.__module__} import {kind.__name__}\n" for kind in used)
    return _formatted(f"{FIELDS_HEAD}\n{imports}\n{classes}")


def _typed_dict(model: type[BaseModel], left_out: list[str], used: set[type]) -> str:
    lines = [f"    {name}: {_keyword_type(field, used)}" for name, field in _fields(model, left_out)]
    if WHOLE in left_out:
        used.add(model)
        lines.append(f"    {WHOLE}: {model.__name__} | dict[str, Any] | None")
    name = f"{model.__name__.removesuffix('Request')}Fields"
    return "\n".join([f"class {name}(TypedDict, total=False):", *lines, "\n\n"])


def _fields(model: type[BaseModel], left_out: list[str]) -> Iterator[tuple[str, FieldInfo]]:
    """The model's own fields, then those that it inherits."""
    own = sorted(model.model_fields, key=lambda name: name not in model.__annotations__)
    for name in own:
        if name not in left_out and name not in UNOFFERED:
            yield name, model.model_fields[name]


def _keyword_type(field: FieldInfo, used: set[type]) -> str:
    """None stands for the model's default; only switches, which are off, need no third value."""
    if field.is_required():
        raise SystemExit(f"A required field must be a parameter of the method: {field!r}")
    if field.annotation is bool and field.default is False:
        return "bool"
    return " | ".join(dict.fromkeys([*_types(field.annotation, used), "None"]))


def _types(annotation: Any, used: set[type]) -> list[str]:
    """What a caller may pass for a field: members of enums as text, models as dicts, any sequence for a list."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _types(inside[0], used)
    if origin in (Union, UnionType):
        return [name for part in inside if part is not NoneType for name in _types(part, used)]
    if origin is list:
        return [f"Sequence[{' | '.join(_types(inside[0], used))}]"]
    if origin is dict:
        return ["dict[str, Any]"]
    if origin is Literal:
        return ["str"]
    if issubclass(annotation, Enum):
        used.add(annotation)
        # On the wire, null is the status of what is current.
        return [annotation.__name__, "str", "None"] if annotation is Status else [annotation.__name__, "str"]
    if annotation in (bool, int, float, str, datetime):
        return [annotation.__name__]
    raise SystemExit(f"Say here what a caller may pass for {annotation!r}")


def synchronous(source: str, name: str) -> str:
    for pattern, replacement in REPLACEMENTS:
        source = re.sub(pattern, replacement, source)
    return _formatted(SYNC_NOTE.format(name=name) + source)


def _formatted(source: str) -> str:
    ruff = Path(sys.executable).parent / "ruff"
    for command in (["check", "--select", "I", "--fix-only", "--quiet"], ["format", "--quiet"]):
        done = subprocess.run(
            [ruff, *command, "--stdin-filename", CLIENT / "sync" / "generated.py", "-"],
            input=source,
            capture_output=True,
            text=True,
            check=True,
        )
        source = done.stdout
    return source


def main() -> int:
    generated = {CLIENT / "fields.py": keywords(MODELS)}
    for file in sorted((CLIENT / "aio").glob("*.py")):
        generated[CLIENT / "sync" / file.name] = synchronous(file.read_text(), file.name)
    present = {
        file: file.read_text() for file in [CLIENT / "fields.py", *(CLIENT / "sync").glob("*.py")] if file.exists()
    }
    if "--check" in sys.argv[1:]:
        if present == generated:
            return 0
        sys.stderr.write("client/fields.py or client/sync is out of date: run `make format`\n")
        return 1
    (CLIENT / "sync").mkdir(exist_ok=True)
    for file in present.keys() - generated.keys():
        file.unlink()
    for file, source in generated.items():
        file.write_text(source)
    return 0


if __name__ == "__main__":
    sys.exit(main())
