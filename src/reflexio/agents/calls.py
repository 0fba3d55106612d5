"""Calling functions that users wrote: with or without the attempt as an argument, async or plain."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import Any, Generic, TypeVar

T = TypeVar("T")

LONGEST_SHOWN = 100

AsyncCall = Callable[[Any, Any], Awaitable[Any]]
"""A function that is awaited with a subject and the attempt."""

FAILURES = (Exception, SystemExit, asyncio.CancelledError)
"""What a user's function may raise when it fails; see `unless_cancelled`."""


def unless_cancelled(error: BaseException) -> BaseException:
    """The error, or raises it if it is the cancellation of this run.

    A user's function may also wait for a task that somebody else cancelled; that is a failure of the function.
    """
    task = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        raise error
    return error


def check_part(name: str, part: Any, kind: type, expected: str) -> None:
    """Raises a TypeError unless the part is None or an instance of `kind`; a class would pass for its instances."""
    if part is not None and (isinstance(part, type) or not isinstance(part, kind)):
        raise TypeError(f"{name}={shown(part)}: give {expected}.")


def check_function(name: str, function: Any, expected: str) -> None:
    """Raises a TypeError unless the function can be called with one argument, or with one and the attempt."""
    is_class_of_parts = isinstance(function, type) and any("__call__" in vars(base) for base in function.__mro__)
    if not callable(function) or is_class_of_parts:
        raise TypeError(f"{name}={shown(function)} cannot be called with an output or a record: give {expected}.")
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins have no signature
        return
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_one = any(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL) for p in parameters)
    if not takes_one or len(needed) > 2:
        raise TypeError(f"{name}={shown(function)} takes {len(needed)} arguments: give {expected}.")


def shown(part: Any) -> str:
    """The part in a message: a function by its name."""
    text = str(getattr(part, "__name__", "")) or repr(part)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def as_async_call(function: Callable[..., Any]) -> AsyncCall:
    """The function as one that is awaited with a subject and the attempt.

    Plain functions run in their own threads, so that a slow one blocks nobody. The thread of an abandoned call ends
    with its function or with the process.
    """
    call = with_attempt(function)
    if is_async(function):
        return call

    async def call_in_thread(subject: Any, attempt: Any) -> Any:
        answer = await in_thread(call, subject, attempt)
        return await answer if inspect.isawaitable(answer) else answer

    return call_in_thread


def is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def is_generator(function: Callable[..., Any]) -> bool:
    return inspect.isasyncgenfunction(function) or inspect.isasyncgenfunction(getattr(function, "__call__", None))  # noqa: B004


def with_attempt(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """The function as one of a subject and the attempt.

    It gets the attempt if it has a second positional parameter without a default, or any parameter named `attempt`.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some builtins have no signature
        parameters = []
    second = next((p for p in parameters[1:2] if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)), None)
    if second and (second.default is second.empty or second.name == "attempt"):
        return function
    if any(parameter.name == "attempt" for parameter in parameters[1:]):
        return lambda subject, attempt: function(subject, attempt=attempt)
    return lambda subject, _: function(subject)


async def in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Like `asyncio.to_thread`, but nothing waits for the thread of an abandoned call, not even closing the loop."""
    answer: Future[Any] = Future()
    answer.set_running_or_notify_cancel()
    context = copy_context()

    def work() -> None:
        try:
            answer.set_result(context.run(function, *args))
        except StopIteration:  # no future can hold it
            answer.set_exception(RuntimeError("StopIteration"))
        except BaseException as error:  # noqa: BLE001  it is raised where the answer is awaited
            answer.set_exception(error)

    Thread(target=work, name="reflexio-agent-call", daemon=True).start()
    return await asyncio.wrap_future(answer)


class closing(Generic[T]):  # noqa: N801  like contextlib's, for iterators that may not be generators
    """Closes an async iterator as soon as nobody reads it any longer, and not when it is garbage-collected."""

    __slots__ = ("_steps",)

    def __init__(self, steps: AsyncIterator[T]) -> None:
        self._steps = steps

    async def __aenter__(self) -> AsyncIterator[T]:
        return self._steps

    async def __aexit__(self, *_: object) -> None:
        close = getattr(self._steps, "aclose", None)
        if close is not None:
            await close()
