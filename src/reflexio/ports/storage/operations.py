"""Long work that somebody asked for and follows."""

from typing import Protocol

from reflexio.models.operation import Operation, Outcome


class Operations(Protocol):
    def add(self, operation: Operation) -> None:
        """Raises Conflict when another one of the same service is in progress."""
        ...

    def get(self, operation_id: str) -> Operation | None: ...

    def hold(self, operation_id: str) -> Operation | None:
        """The same, and nobody else changes it before this transaction ends."""
        ...

    def latest(self, service_name: str) -> Operation | None:
        """The one that was begun last."""
        ...

    def running(self, service_name: str | None = None) -> list[Operation]:
        """Those in progress, held as by `hold`; of all services unless one is named."""
        ...

    def put(self, operation: Operation) -> None:
        """The one of the same id becomes this one."""
        ...

    def trim(self, service_name: str, keep: int) -> int:
        """Removes all but the newest of a service."""
        ...

    def note(self, operation_id: str, outcome: Outcome) -> Outcome | None:
        """Keeps what became of a user, and tells what was kept before."""
        ...

    def outcomes(self, operation_id: str, limit: int) -> list[Outcome]:
        """The last ones, in the order they were noted."""
        ...

    def forget_user(self, user_id: str) -> None:
        """No operation names this user any more; their counts stay."""
        ...
