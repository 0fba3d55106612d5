"""Operations."""

from typing import Protocol

from reflexio.models.operation import Operation, Outcome


class Operations(Protocol):
    def add(self, operation: Operation) -> None:
        """Raises Conflict while another one of the same service is in progress."""
        ...

    def get(self, operation_id: str) -> Operation | None: ...

    def hold(self, operation_id: str) -> Operation | None:
        """The same, locked until this transaction ends."""
        ...

    def latest(self, service_name: str) -> Operation | None:
        """The one that began last."""
        ...

    def running(self, service_name: str | None = None) -> list[Operation]:
        """Running ones of one service or all, locked as by `hold`."""
        ...

    def put(self, operation: Operation) -> None:
        """Replaces the one with the same id."""
        ...

    def trim(self, service_name: str, keep: int) -> int:
        """Removes all but the newest of a service."""
        ...

    def note(self, operation_id: str, outcome: Outcome) -> Outcome | None:
        """Records the progress of a user; returns the previous record."""
        ...

    def outcomes(self, operation_id: str, limit: int) -> list[Outcome]:
        """The last ones, in the order of their recording."""
        ...

    def forget_user(self, user_id: str) -> None:
        """Removes a user from all operations; their counts stay."""
        ...
