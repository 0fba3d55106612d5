"""The names that end in `_async`, which published clients have for calls that can be awaited."""

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar, overload

P = ParamSpec("P")
R = TypeVar("R")


@overload
def awaited(method: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]: ...
@overload
def awaited(method: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]: ...
def awaited(method: Callable[P, Any]) -> Callable[P, Coroutine[Any, Any, Any]]:
    """The method itself where it is awaited anyway, else one that runs it in a thread, so that no loop stands still."""
    if inspect.iscoroutinefunction(method):
        return method

    @functools.wraps(method)
    async def twin(*args: P.args, **values: P.kwargs) -> Any:
        return await asyncio.to_thread(method, *args, **values)

    return twin
