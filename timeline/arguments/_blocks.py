"""What is appended, as callers give it.

Blocks are of the kinds that there are, with the fields that those have.  More is not asked of them.  What
was recorded elsewhere comes in this way, and recorded logs hold results without calls, ids that repeat,
images that a redaction has made unreadable.

A response answers a request of this timeline.  It, and the result of a call, is taken only once; that is
looked up in the window before each try to commit, as another process may have been faster.
"""

from collections.abc import Sequence
from typing import Any, cast

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


def checked_blocks(blocks: Sequence[Block]) -> list[Block]:
    """The blocks as they will be read back.

    Raises:
        MisuseError: one is no block, has no id, a field of a wrong type, or a url that is none.
        CodecError: one holds what JSON cannot.
    """
    return [_checked(block, f"block {n} of the append") for n, block in enumerate(blocks, 1)]


def _checked(block: Any, call: str) -> Block:
    if not isinstance(block, Block | OpaqueBlock):
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
    """Ids that would be spelled differently once stored would not be found again."""
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
    """What the decoder says about a block that it does not take."""
    try:
        msgspec.json.decode(encode_block(block), type=type(block))
    except msgspec.ValidationError as error:
        return str(error)
    return "it cannot be read back"


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


def answered_by(rendered: Rendered | None, version: int, who: str = "record()") -> Answered | None:
    """The request that a response answers, if somebody says which; `version`: of the timeline.

    Raises:
        MisuseError: it is no request, or of another timeline.
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
