"""Messages of other programs: one reader for each format.

    anthropic          the Messages API
    openai.chat        Chat Completions, and compatible APIs
    openai.responses   items of the Responses API
    gemini             contents of the Gemini API
    langchain          messages of LangChain
    pydantic_ai        messages of Pydantic AI

All of them return the same form (`Message`): parts; the model's text, thinking and tool calls; and results.

The form loads with the package; a reader, when the first message of a client or an API is read.
"""

from typing import TYPE_CHECKING

from blocks._lazy_names import later as _later

# For the rooms of this house; not public.
from blocks.formats._message import Answer as Answer
from blocks.formats._message import BlockMaker as BlockMaker
from blocks.formats._message import Call as Call
from blocks.formats._message import Content as Content
from blocks.formats._message import Format as Format
from blocks.formats._message import Json as Json
from blocks.formats._message import Message as Message
from blocks.formats._message import ModelText as ModelText
from blocks.formats._message import Response as Response
from blocks.formats._message import Result as Result
from blocks.formats._message import Shape as Shape
from blocks.formats._message import Thought as Thought
from blocks.formats._message import Verbatim as Verbatim
from blocks.formats._message import answer_of as answer_of
from blocks.formats._message import as_json as as_json
from blocks.formats._message import count as count
from blocks.formats._message import dumped as dumped
from blocks.formats._message import fingerprint as fingerprint
from blocks.formats._message import items as items
from blocks.formats._message import obj as obj
from blocks.formats._message import objs as objs
from blocks.formats._message import parts_in as parts_in
from blocks.formats._message import parts_of as parts_of
from blocks.formats._message import plain as plain
from blocks.formats._message import spelled as spelled
from blocks.formats._message import string as string
from blocks.formats._message import tier_of as tier_of
from blocks.formats._message import tool_input as tool_input

if TYPE_CHECKING:
    from blocks.formats._anthropic import anthropic_usage_in as anthropic_usage_in
    from blocks.formats._chat import REASONING as REASONING
    from blocks.formats._chat import usage_in as usage_in
    from blocks.formats._client_texts import INTERRUPTION as INTERRUPTION
    from blocks.formats._client_texts import ClientText as ClientText
    from blocks.formats._client_texts import appended_texts as appended_texts
    from blocks.formats._client_texts import client_text as client_text
    from blocks.formats._client_texts import command_in as command_in
    from blocks.formats._client_texts import lays_down as lays_down
    from blocks.formats._client_texts import operator_text as operator_text
    from blocks.formats._client_texts import without_reminders as without_reminders
    from blocks.formats._formats import RESPONSES as RESPONSES
    from blocks.formats._formats import SHAPES as SHAPES
    from blocks.formats._formats import Stream as Stream
    from blocks.formats._formats import checked_format as checked_format
    from blocks.formats._formats import event_of as event_of
    from blocks.formats._formats import messages_from as messages_from
    from blocks.formats._formats import messages_in as messages_in
    from blocks.formats._formats import parts_from as parts_from
    from blocks.formats._formats import response_from as response_from
    from blocks.formats._formats import stream_of as stream_of
    from blocks.formats._gemini import gemini_field as gemini_field
    from blocks.formats._gemini import gemini_usage_in as gemini_usage_in
    from blocks.formats._responses import CLIENT_TOOLS as CLIENT_TOOLS
    from blocks.formats._responses import client_call as client_call
    from blocks.formats._responses import client_result as client_result

__getattr__, __dir__ = _later(
    globals(),
    {
        "blocks.formats._anthropic": "anthropic_usage_in",
        "blocks.formats._chat": "REASONING usage_in",
        "blocks.formats._client_texts": (
            "INTERRUPTION ClientText appended_texts client_text command_in lays_down operator_text "
            "without_reminders"
        ),
        "blocks.formats._formats": (
            "RESPONSES SHAPES Stream checked_format event_of messages_from messages_in "
            "parts_from response_from stream_of"
        ),
        "blocks.formats._gemini": "gemini_field gemini_usage_in",
        "blocks.formats._responses": "CLIENT_TOOLS client_call client_result",
    },
)
