# Generated from client/aio/__init__.py by scripts/make_sync_client.py. Change that file and run `make format`.
"""The synchronous client."""

from reflexio.client.requests import SessionClient, show_keywords
from reflexio.client.sync.interactions import InteractionCalls
from reflexio.client.sync.learnings import LearningCalls, OutcomeCalls, ReviewCalls
from reflexio.client.sync.operations import GenerationCalls, OperationCalls, OptimisationCalls, SettingCalls
from reflexio.client.sync.search import SearchCalls
from reflexio.client.sync.transfer import TransferCalls

__all__ = ["ReflexioClient", "SessionClient"]


@show_keywords
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
    TransferCalls,
):
    """Speaks to a Reflexio server.

    Without arguments it reads REFLEXIO_URL and REFLEXIO_API_KEY, or else expects a server on this machine.
    """

    def for_session(self, session_id: str) -> SessionClient:
        """This client, bound to one session: every call that takes a `session_id` gets this one."""
        return SessionClient(self, session_id)
