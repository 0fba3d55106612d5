"""Every error that Reflexio raises on purpose. The class says who must act, the docstring is the message.

ReflexioError
├─ InvalidRequest          the caller: correct the request
│  └─ TooLarge             the caller: send less
├─ NotAuthorised           the caller: send a valid key
│  ├─ KeyNeeded            the operator: create a key
│  └─ NotPermitted         the caller: send a key with the scope
│     ├─ ForeignOrigin     the operator: name the origin of the web page
│     └─ UpstreamKeyNeeded the caller: send a model key of your own
├─ NotFound                the caller: name something that exists
├─ Conflict                the caller: read the state again
├─ RateLimited             the caller: wait `retry_after` seconds
├─ ProviderError           a model or embedding provider
│  ├─ ProviderRefused      the operator: key or bill
│  ├─ ProviderUnavailable  nobody: it is retried automatically
│  │  └─ UpstreamUnavailable  the operator: the model server of the pass-through
│  │     └─ UpstreamTimeout   the same, it was silent for too long
│  └─ UnreadableAnswer     nobody: the model's answer is unusable, it is asked again
│     ├─ Declined          nobody: the model or its provider declined to answer
│     └─ ContextTooLong    nobody: it is asked again with less text
├─ AssistantFailed         the operator: the assistant that playbooks are tried with
├─ StorageUnavailable      the operator: the database
│  ├─ StorageNewer         written by a newer Reflexio
│  ├─ StorageUnfinished    made by an unreleased Reflexio
│  ├─ StorageCorrupt       damaged file
│  ├─ StorageReadOnly      folder or file without write permission
│  ├─ StorageTaken         another process works on it
│  ├─ LeaseLost            nobody: another worker has the job
│  ├─ NoWorker             no worker is running
│  └─ StorageFull          no space left
├─ ClientClosed            the caller: create another client
├─ ServerUnreachable       the client could not reach the server
└─ ServerFailed            the server answered with an internal error
"""

from typing import Any, Literal, Self


class ReflexioError(Exception):
    """Reflexio could not do that."""

    def __init__(self, detail: str = "", /, **values: Any) -> None:
        message = " ".join((type(self).__doc__ or "").split()).format(**values)
        self.detail = detail
        self.values = values
        super().__init__(f"{message} {detail}" if detail else message)

    @classmethod
    def with_message(cls, words: str, /, **values: Any) -> Self:
        """An error whose message another process has written already."""
        error = cls(**values)
        if words:
            error.detail = words
            error.args = (words,)
        return error


class InvalidRequest(ReflexioError):
    """The request cannot be understood."""

    def __init__(self, detail: str = "", /, *, errors: list[dict[str, Any]] | None = None, **values: Any) -> None:
        super().__init__(detail, **values)
        self.errors = errors or []

    def __str__(self) -> str:
        return self.detail or super().__str__()


class TooLarge(InvalidRequest):
    """The request body is larger than this server accepts; send it in parts or raise REFLEXIO_MAX_BODY_BYTES."""


class NotAuthorised(ReflexioError):
    """Authentication required: send `Authorization: Bearer <key>`; `reflexio keys create` creates a key."""


class KeyNeeded(NotAuthorised):
    """Without a key only callers on the same machine are served, and not through a proxy. Create a key with
    `reflexio keys create` on the server and send it as `Authorization: Bearer <key>`."""


class NotPermitted(NotAuthorised):
    """This key lacks the scope {scope!r}; `reflexio keys create --scopes {scope}` creates one that has it."""


class ForeignOrigin(NotPermitted):
    """Web pages of {origin!r} may not call this; the operator can name it in REFLEXIO_CORS_ORIGINS."""


class UpstreamKeyNeeded(NotPermitted):
    """With the operator's model key only single calls of models pass. For {path!r} send your own model key as
    `Authorization: Bearer <model key>`, and your Reflexio key as `X-Reflexio-Key: <key>`."""


class NotFound(ReflexioError):
    """There is no {what} {id!r}."""


class Conflict(ReflexioError):
    """This conflicts with what is stored."""

    def __str__(self) -> str:
        return self.detail or super().__str__()


class RateLimited(ReflexioError):
    """Too many requests; try again in {retry_after} s."""

    @property
    def retry_after(self) -> float:
        return float(self.values["retry_after"])


class ProviderError(ReflexioError):
    """The provider failed."""

    @property
    def spend(self) -> Any:
        """The spend of the calls up to the error, or None when it is not counted."""
        return self.values.get("spend")


class ProviderRefused(ProviderError):
    """The provider refused the key or the bill; check the key and the account."""

    @property
    def reason(self) -> Literal["auth", "billing"]:
        return "billing" if self.values.get("reason") == "billing" else "auth"


class ProviderUnavailable(ProviderError):
    """The provider cannot be reached or is overloaded; the call is retried automatically."""

    @property
    def retry_after(self) -> float:
        """Seconds that the provider asks to wait; 0 when it does not say."""
        return float(self.values.get("retry_after") or 0)

    @property
    def is_overloaded(self) -> bool:
        """Whether the provider is busy or away, whatever it was asked; otherwise the request may be the cause."""
        return bool(self.values.get("is_overloaded"))


class UpstreamUnavailable(ProviderUnavailable):
    """The model server behind this address cannot be reached; nothing was published. Check REFLEXIO_GATEWAY_URL."""


class UpstreamTimeout(UpstreamUnavailable):
    """The model server behind this address was silent for {seconds} s; REFLEXIO_GATEWAY_TIMEOUT is the limit."""


class UnreadableAnswer(ProviderError):
    """The model's answer cannot be used; it is asked again later."""


class Declined(UnreadableAnswer):
    """The model or its provider declined to answer; it is asked again later."""


class ContextTooLong(UnreadableAnswer):
    """The text is longer than the model can read; it is asked again with less. Raise the context size of a local
    server, or lower window_size."""


class AssistantFailed(ReflexioError):
    """The assistant that playbooks are tried with gave no usable answer."""

    def __str__(self) -> str:
        return self.detail or super().__str__()


class StorageUnavailable(ReflexioError):
    """The database cannot be used now; nothing was stored partially. Try again."""


class StorageNewer(StorageUnavailable):
    """The database {path!r} was written by a newer Reflexio (schema {found!r}, this one knows up to {known!r});
    install that version or restore a backup."""


class StorageUnfinished(StorageUnavailable):
    """The database {path!r} was created by an unreleased Reflexio ({missing} is missing); continue with that version,
    or move the file away to start empty. It was not changed."""


class StorageCorrupt(StorageUnavailable):
    """The database {path!r} is damaged or is not a Reflexio database; restore a backup, or move the file away
    to start empty. It was not changed."""


class StorageReadOnly(StorageUnavailable):
    """The database {path!r} cannot be written; give this user write permission on it and its folder, or choose
    another with --data."""


class StorageTaken(StorageUnavailable):
    """Another Reflexio process works on {path!r} already; stop it, or choose another folder with --data."""


class LeaseLost(StorageUnavailable):
    """Another worker has taken this job, or somebody cancelled it; what was done here is dropped."""


class NoWorker(StorageUnavailable):
    """No worker is running, so nothing is learned; start one with `reflexio worker`, or `reflexio serve` without
    --no-worker."""


class StorageFull(StorageUnavailable):
    """The disk of {path!r} is full; free some space and try again. Nothing that was confirmed is lost."""


class ClientClosed(ReflexioError, RuntimeError):
    """This client is closed; create another one."""


class ServerUnreachable(ReflexioError):
    """No Reflexio server answers at {url!r}; start one with `reflexio serve` or set REFLEXIO_URL."""


class ServerFailed(ReflexioError):
    """The server could not answer (HTTP {status})."""
