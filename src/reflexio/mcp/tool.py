"""What a tool is: its name, the scope it needs, its arguments as a JSON schema, and its answer."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from reflexio.errors import InvalidRequest
from reflexio.mcp.access import MemoryAccess
from reflexio.models.access import KeyScope

USER_ID = {
    "type": "string",
    "maxLength": 255,
    "description": "Id of the user in your own system. Always the same id for the same person.",
}
OPTIONAL_USER_ID = {**USER_ID, "description": f"{USER_ID['description']} Without it: only what holds for everybody."}


class ToolInput(BaseModel):
    """The arguments of a tool. An argument that it does not have is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


@dataclass(frozen=True)
class ToolAnswer:
    """What a tool found: as text for the model, and as data for programs."""

    text: str
    content: dict[str, Any] = field(default_factory=dict)


Run: TypeAlias = Callable[[MemoryAccess, str, Any], Awaitable[ToolAnswer]]


@dataclass(frozen=True)
class ToolDefinition:
    """A tool. Its description tells a model when to call it and what comes back."""

    name: str
    title: str
    description: str
    scope: KeyScope
    arguments: type[ToolInput]
    run: Run
    user: Literal["required", "optional", "none"] = "none"
    is_destructive: bool = False

    @property
    def is_read_only(self) -> bool:
        return self.scope is KeyScope.READ

    def schema(self, access: MemoryAccess) -> dict[str, Any]:
        """The JSON schema of the arguments. A session that is bound to a user has no `user_id`."""
        schema = _schema(self.arguments)
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if self.user != "none" and not access.user_id:
            is_required = self.user == "required"
            properties = {"user_id": USER_ID if is_required else OPTIONAL_USER_ID, **properties}
            required = ["user_id", *required] if is_required else required
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    async def call(self, access: MemoryAccess, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Runs the tool. Raises InvalidRequest for arguments that it does not take."""
        given, user_id = dict(arguments), ""
        if self.user != "none":
            named = given.pop("user_id", "")
            if not isinstance(named, str):
                raise InvalidRequest("user_id: must be a text.")
            user_id = access.user(named.strip())
            if not user_id and self.user == "required":
                raise InvalidRequest("user_id: say which user this is about.")
        try:
            parsed = self.arguments.model_validate(given)
        except ValidationError as invalid:
            raise InvalidRequest(_faults(invalid)) from None
        return await self.run(access, user_id, parsed)


def _faults(invalid: ValidationError) -> str:
    lines = [f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in invalid.errors()]
    return "; ".join(lines[:5])


@cache
def _schema(arguments: type[ToolInput]) -> dict[str, Any]:
    """The schema without references and titles: some hosts do not follow the one, and the other repeat the names."""
    schema = arguments.model_json_schema()
    definitions = schema.get("$defs", {})
    for model in (schema, *definitions.values()):
        model.pop("description", None)  # the docstring of the class

    def inline(part: Any) -> Any:
        if isinstance(part, list):
            return [inline(entry) for entry in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            part = {**definitions[part["$ref"].rpartition("/")[2]], **{k: v for k, v in part.items() if k != "$ref"}}
        return {
            name: {key: inline(value) for key, value in entry.items()} if name == "properties" else inline(entry)
            for name, entry in part.items()
            if name not in ("$defs", "title")
        }

    inlined: dict[str, Any] = inline(schema)
    return inlined
