"""Pools of user playbooks, and their clusters."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True)
class Pool:
    """The user playbooks of one agent version and type, which are clustered together.

    `fresh` counts those learned since they were last gathered, the first at `fresh_since`, the last at `signalled_at`.
    `similarity` is that of the last grouping of all, by vectors of a `model`, which were `grouped` in number; 0 before
    the first. `clusters` is the last number that a cluster was given. `retry_at` is when it is looked at again whatever
    is new, because one cluster failed or somebody left.
    """

    org_id: str
    agent_version: str
    name: str
    fresh: int = 0
    fresh_since: int = 0
    signalled_at: int = 0
    model: str = ""
    similarity: float = 0.0
    grouped: int = 0
    clusters: int = 0
    attempts: int = 0
    retry_at: int = 0


class Member(NamedTuple):
    """A current user playbook as clustering sees it; `vector` is None until it is embedded.

    `session_id` is that of the publish it was learned from; empty when it was added by hand.
    """

    id: int
    user_id: str
    cluster: int
    modified_at: int
    trigger: str
    content: str
    vector: bytes | None
    session_id: str = ""


@dataclass(frozen=True)
class Cluster:
    """The state of a cluster: the fingerprint of the members that the learner last summarised, or failed on.

    `playbook_id` is the agent playbook that came of it, 0 when what stood said it all. `centre` is the mean of its
    members' vectors in half precision. `statements` and `users` say how well it is supported.
    """

    number: int
    playbook_id: int = 0
    written: str = ""
    failed: str = ""
    attempts: int = 0
    error: str = ""
    size: int = 0
    centre: bytes | None = None
    statements: int = 0
    users: int = 0


class Pools(Protocol):
    """Pools of user playbooks, and the clusters within them."""

    def mark(self, agent_version: str, name: str, count: int, now: int) -> None:
        """Counts new user playbooks of a pool."""

    def get(self, agent_version: str, name: str) -> Pool:
        """The pool; an empty one if there is none yet."""

    def put(self, pool: Pool) -> None: ...

    def names(self, agent_version: str) -> list[str]:
        """The types with current user playbooks."""

    def members(
        self, agent_version: str, name: str, model: str, clusters: Collection[int] | None = None
    ) -> list[Member]:
        """Current user playbooks by id with their vectors, of all clusters or some. New ones are in cluster 0."""

    def assign(self, numbers: Mapping[int, int]) -> None:
        """Assigns learnings, by id, to clusters; nothing else of them changes."""

    def clusters(self, agent_version: str, name: str) -> dict[int, Cluster]: ...

    def cluster(self, agent_version: str, name: str, number: int) -> Cluster:
        """The cluster; an empty one if there is none."""

    def put_clusters(self, agent_version: str, name: str, *clusters: Cluster) -> None:
        """Replaces the clusters with the same numbers."""

    def replace_clusters(self, agent_version: str, name: str, clusters: Sequence[Cluster]) -> None:
        """Replaces all clusters of the pool."""
