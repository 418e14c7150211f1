"""What a log takes only once: a response, and the result of a call.

Looked up in the window, before each try to commit: another process may have been faster.  Logs that
were recorded elsewhere may repeat ids as they like; they come in through `append`.
"""

from blocks import AlreadyRecordedError, CallId, UnknownCallError
from render import View


def refuse_repeated_response(view: View, response: str) -> None:
    """Refuse a response whose id is in the log.

    Raises:
        AlreadyRecordedError: with the version of its last event.
    """
    version = view.recorded_at(response) if response else 0
    if version:
        raise AlreadyRecordedError(f"response {response!r}", version)


def refuse_repeated_result(view: View, call_id: CallId) -> None:
    """Refuse the result of a call that nobody made, or that has its result.

    Raises:
        UnknownCallError: with the open calls.
        AlreadyRecordedError: with the version of that result.
    """
    unanswered = view.unanswered(call_id)
    if unanswered is None:
        raise UnknownCallError(call_id, view.groups[-1].open_calls if view.groups else ())
    if unanswered <= 0:
        version = view.answered_at(call_id)
        raise AlreadyRecordedError(f"the result of call {call_id!r}", version)
