"""Calling what others wrote: functions with or without an attempt to look at, asynchronous or plain."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import copy_context
from threading import Thread
from typing import Any, Generic, TypeVar

from reflexio.agents.attempt import Attempt

T = TypeVar("T")

Called = Callable[[Any, Any], Awaitable[Any]]
"""Something that is awaited with a subject and the attempt."""

FAILURES = (Exception, SystemExit, asyncio.CancelledError)
"""What a part that others wrote may raise when it fails; see `own`."""


def own(error: BaseException) -> BaseException:
    """The error, if it is the part's own. A task that the part waits for may have been cancelled; so may this run.

    Only the second is the caller's wish, and is raised again.
    """
    task = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        raise error
    return error


def prepared(function: Callable[..., Any]) -> Called:
    """The function as one that is awaited with a subject and the attempt.

    Plain functions run in a thread of their own, so that a slow one holds up nobody. When it is given up, its
    thread ends by itself or with the process.
    """
    called = with_attempt(function)
    if is_async(function):
        return called

    async def call(subject: Any, attempt: Attempt | None) -> Any:
        answer = await in_thread(called, subject, attempt)
        return await answer if inspect.isawaitable(answer) else answer

    return call


def is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def is_generator(function: Callable[..., Any]) -> bool:
    return inspect.isasyncgenfunction(function) or inspect.isasyncgenfunction(getattr(function, "__call__", None))  # noqa: B004


def with_attempt(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """The function as one of a subject and the attempt.

    It is handed the attempt if it has a second parameter that must be given, or one called `attempt` anywhere.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some builtins do not say
        parameters = []
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    second = positional[1] if len(positional) > 1 else None
    if second and (second.default is second.empty or second.name == "attempt"):
        return function
    if any(each.name == "attempt" for each in parameters[1:]):
        return lambda subject, attempt: function(subject, attempt=attempt)
    return lambda subject, _: function(subject)


async def in_thread(function: Callable[..., Any], *given: Any) -> Any:
    """Like `asyncio.to_thread`, but nothing waits for a thread that was given up, not even the end of the loop."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()
    context = copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(RuntimeError("StopIteration") if isinstance(error, StopIteration) else error)

    def work() -> None:
        value, failure = None, None
        try:
            value = context.run(function, *given)
        except BaseException as error:  # noqa: BLE001  it is raised where the answer is awaited
            failure = error
        try:
            loop.call_soon_threadsafe(settle, value, failure)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    Thread(target=work, name="reflexio-agent-call", daemon=True).start()
    return await answer


class closing(Generic[T]):  # noqa: N801  like contextlib's, for iterators that may not be generators
    """Ends what others yield when nobody listens any longer: here and now, and not when it is collected."""

    __slots__ = ("_steps",)

    def __init__(self, steps: AsyncIterator[T]) -> None:
        self._steps = steps

    async def __aenter__(self) -> AsyncIterator[T]:
        return self._steps

    async def __aexit__(self, *_: object) -> None:
        close = getattr(self._steps, "aclose", None)
        if close is not None:
            await close()
