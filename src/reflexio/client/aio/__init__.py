"""The asynchronous client. The synchronous one in `reflexio.client.sync` is generated from this folder."""

from reflexio.client.aio.interactions import InteractionCalls
from reflexio.client.aio.learnings import LearningCalls, OutcomeCalls, ReviewCalls
from reflexio.client.aio.operations import GenerationCalls, OperationCalls, OptimisationCalls, SettingCalls
from reflexio.client.aio.search import SearchCalls
from reflexio.client.aio.transfer import TransferCalls
from reflexio.client.requests import SessionClient, show_keywords

__all__ = ["AsyncReflexioClient", "SessionClient"]


@show_keywords
class AsyncReflexioClient(
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
