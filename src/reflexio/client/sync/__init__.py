# Generated from client/aio/__init__.py by scripts/make_sync_client.py. Change that file and run `make format`.
"""The synchronous client."""

from reflexio.client.sync.generation import GenerationCalls
from reflexio.client.sync.interactions import InteractionCalls
from reflexio.client.sync.learnings import LearningCalls
from reflexio.client.sync.operations import OperationCalls
from reflexio.client.sync.optimisation import OptimisationCalls
from reflexio.client.sync.outcomes import OutcomeCalls
from reflexio.client.sync.reviewing import ReviewCalls
from reflexio.client.sync.searching import SearchCalls
from reflexio.client.sync.session import SessionClient
from reflexio.client.sync.settings import SettingCalls

__all__ = ["ReflexioClient", "SessionClient"]


class ReflexioClient(
    InteractionCalls,
    LearningCalls,
    OutcomeCalls,
    SearchCalls,
    SettingCalls,
    GenerationCalls,
    OptimisationCalls,
    OperationCalls,
    ReviewCalls,
):
    """Speaks to a Reflexio server.

    Without arguments it reads REFLEXIO_URL and REFLEXIO_API_KEY, and else expects a server on this machine.
    """

    def for_session(self, session_id: str) -> SessionClient:
        """This client, bound to one session: every call that takes `session_id` gets this one."""
        return SessionClient(self, session_id)
