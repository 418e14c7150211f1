"""Checks of blocks and results that callers append.

A block must be of a known kind, with fields of the right types.  Nothing else is required, because content that was
recorded elsewhere is also appended this way, and such logs have results without calls, repeated ids, and images that a
redaction has made unreadable.

A response and the result of a call can be recorded only once.  This is checked in the window before each try to
commit, because another process may have been faster.
"""

from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec

from blocks import (
    AlreadyRecordedError,
    Answered,
    Block,
    CallId,
    DocumentPart,
    ImagePart,
    MisuseError,
    OpaqueBlock,
    UnknownCallError,
    canonical_block,
    encode_block,
    images_of,
    in_words,
    is_web_url,
    tag_of,
)
from render import Rendered, View
from timeline.arguments._checks import checked_text, checked_words

_BLOCKS: Final = Block | OpaqueBlock


def checked_blocks(blocks: Sequence[Block]) -> list[Block]:
    """The blocks as the store will give them back.

    Raises:
        MisuseError: an argument is not a block, or it has no id, a field of a wrong type, or an invalid URL.
        CodecError: a block holds a value that JSON cannot represent.
    """
    return [_checked(block, f"block {n} of the append") for n, block in enumerate(blocks, 1)]


def _checked(block: Any, call: str) -> Block:
    if not isinstance(block, _BLOCKS):
        raise MisuseError(f"{call} is no block but {in_words(block)}; see the classes of `blocks`")
    _check_names(block, call)
    made = canonical_block(block)
    if isinstance(made, OpaqueBlock) and not isinstance(block, OpaqueBlock):
        raise MisuseError(f"{call} is no {tag_of(block)}: {_reason(block)}")
    for part in images_of(made):
        if isinstance(part, ImagePart | DocumentPart) and part.url and not is_web_url(part.url):
            raise MisuseError(f"{call}: {in_words(part.url)} is no http(s) url")
    return made


def _check_names(block: Block, call: str) -> None:
    """Refuse ids that would change when they are stored, because they could not be found again."""
    if isinstance(block, OpaqueBlock):
        checked_words(block.tag, call, "the tag")
        fields: Any = block.fields
        if not isinstance(fields, dict):
            raise MisuseError(f"{call}: the fields are a dict, not {in_words(fields)}")
        named = block.fields.get("id"), block.fields.get("turn", "")
    else:
        named = block.id, block.turn
    checked_words(named[0], call, "the id")
    checked_text(named[1], call, "the turn")


def _reason(block: Block) -> str:
    """The decoder's message about a block that it refuses."""
    try:
        msgspec.json.decode(encode_block(block), type=type(block))
    except msgspec.ValidationError as error:
        return str(error)
    return "it cannot be read back"


def refuse_repeated_response(view: View, response: str) -> None:
    """Refuse a response whose id is in the log.

    Raises:
        AlreadyRecordedError: the response is in the log; the error has the version of its last event.
    """
    version = view.recorded_at(response) if response else 0
    if version:
        raise AlreadyRecordedError(f"response {response!r}", version)


def refuse_repeated_result(view: View, call_id: CallId) -> None:
    """Refuse the result of a call that was not made, or that already has a result.

    Raises:
        UnknownCallError: there is no such call; the error names the open calls.
        AlreadyRecordedError: the call has a result; the error has its version.
    """
    unanswered = view.unanswered(call_id)
    if unanswered is None:
        raise UnknownCallError(call_id, view.groups[-1].open_calls if view.groups else ())
    if unanswered <= 0:
        version = view.answered_at(call_id)
        raise AlreadyRecordedError(f"the result of call {call_id!r}", version)


def answered_by(rendered: Rendered | None, version: int, who: str = "record()") -> Answered | None:
    """The reference to the request that a response answers; None: `rendered` is None. `version` is the timeline's
    version.

    Raises:
        MisuseError: `rendered` is not a rendered request, or is of another timeline.
    """
    if rendered is None:
        return None
    given = cast("object", rendered)
    if not isinstance(given, Rendered):
        raise MisuseError(f"{who}: rendered is what render() returned, not {in_words(given)}")
    if rendered.shown > version:
        raise MisuseError(
            f"{who}: this request showed version {rendered.shown}, and the timeline has {version}: "
            "record the response where the request came from"
        )
    return Answered(shown=rendered.shown, sent=rendered.sent)
