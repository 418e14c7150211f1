"""The rules of the Messages API: each member is a rule, with its reason, its source and its error text.

The name of a member in lower case is the stable name of the rule. Its value is the provider's error text,
with `%s` for details. The texts change without notice, so nothing may depend on them; they only help to
search for an error.

Sources: [docs] the provider's documentation of October 2026; [sdk] the types of the `anthropic` package,
2.11; [seen] an error text that users quoted in public.
"""

from enum import Enum, unique
from typing import Protocol


class ModelRules(Protocol):
    """The properties of a model that the rules use; without a model, the strictest rules apply."""

    @property
    def prefill(self) -> bool:
        """Whether the last message may be the assistant's."""
        ...

    @property
    def system_messages(self) -> bool:
        """Whether a message of role `system` may occur between the others."""
        ...

    @property
    def tokens_window(self) -> int:
        """Tokens that prompt and answer may have together."""
        ...

    @property
    def output_tokens_max(self) -> int:
        """Largest value of `max_tokens`."""
        ...


@unique
class Rule(Enum):
    """One rule per member; see the module."""

    ################################################################
    # Shape
    ################################################################
    #
    # The server parses a request into a tagged union first. Shapes are checked here only where a
    # later rule depends on them; this is not a type checker. [sdk]
    SHAPE = "Input should be a valid %s"
    # The types of the stable and the beta union are known here. A newer type needs a newer table;
    # until then, an error from this check is better than one from the server. [sdk]
    UNKNOWN_BLOCK = "Input tag '%s' found using 'type' does not match any of the expected tags"

    ################################################################
    # Conversation
    ################################################################
    #
    # The server joins consecutive messages of one role, so two in a row are no error; the rules
    # below apply to the joined messages. [sdk]
    NO_MESSAGES = "at least one message is required"
    MESSAGES_MAX = "at most 100000 messages are allowed, found %s"
    ROLE = "Input should be 'user' or 'assistant'"  # [sdk]
    # Newer models accept `role: "system"` between other messages: after a user message (or the
    # result of a server tool), and before an assistant message or at the end. So never first, and
    # never between calls and results. Several in a row count as one. [docs]
    SYSTEM_REFUSED = (
        'Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
        'not "system" as an input message role.'
    )
    SYSTEM_PLACE = "a `system` message must follow a user turn and precede an assistant turn or end"
    # One exception: an assistant message that begins with a `compaction` block replaces everything
    # before it. Whether the rule is still enforced is unverified; obeying it costs nothing. [seen]
    FIRST_NOT_USER = 'first message must use the "user" role'
    # A last assistant message is a prefill, which every model after the 4.5 generation refuses. One
    # exception: a turn that the server paused (it ends in a block of a server tool, or in a
    # compaction) is sent back as it is. [docs]
    LAST_NOT_USER = (
        "This model does not support assistant message prefill. "
        "The conversation must end with a user message."
    )
    PREFILL_TRAILING_SPACE = "final assistant content cannot end with trailing whitespace"  # [seen]
    CONTENT_EMPTY = (  # [seen]
        "all messages must have non-empty content except for the optional final assistant message"
    )

    ################################################################
    # Text
    ################################################################
    #
    # These rules apply to all text blocks: in a message, in `system`, in a tool result, a search
    # result or a document. Servers sometimes accept blank text next to other text, but not
    # reliably, so it is never sent. Two plain strings may be empty: `system`, and the content of a
    # tool result, which may also be blank, because many commands have no output. [seen]
    TEXT_EMPTY = "text content blocks must be non-empty"
    TEXT_BLANK = "text content blocks must contain non-whitespace text"
    # Only the model may cite. Refused since version 2026-10-21, also in a search result. [docs]
    CITATIONS_IN_USER = "citations are not allowed on text blocks in user messages"

    ################################################################
    # Which message may hold which block
    ################################################################
    DOCUMENT_IN_ASSISTANT = "document blocks are not allowed in assistant messages"  # [docs]
    WRONG_ROLE = "`%s` blocks can only be in `%s` messages"  # [seen]

    ################################################################
    # Tools
    ################################################################
    TOOL_USE_ID = "String should match pattern '^[a-zA-Z0-9_-]+$'"  # [seen]
    SERVER_TOOL_USE_ID = "String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'"  # [seen]
    TOOL_USE_ID_DUPLICATE = "`tool_use` ids must be unique"  # in the whole request [seen]
    TOOL_INPUT = "Input should be a valid dictionary"  # never a string, list or null [seen]
    # The documentation says 64; servers were seen to quote 128. 64 satisfies both. [docs, seen]
    TOOL_NAME = "String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"
    TOOL_NAME_DUPLICATE = "Tool names must be unique."  # [seen]
    # JSON Schema 2020-12 whose outermost type is an object. Only user-defined tools have one; a
    # server tool has its own. [sdk]
    TOOL_SCHEMA = "JSON schema is invalid: input_schema must be an object of type 'object'"

    ################################################################
    # Calls and results
    ################################################################
    #
    # The message right after a call answers all calls of the message before it: each exactly once,
    # results first, other content after them. A call in the last message counts as unanswered.
    # [docs]
    TOOL_USE_UNANSWERED = (
        "`tool_use` ids were found without `tool_result` blocks immediately after: %s. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )
    TOOL_RESULT_UNEXPECTED = (
        "unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block "
        "must have a corresponding `tool_use` block in the previous message."
    )
    TOOL_RESULT_DUPLICATE = (
        "each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s"
    )
    TOOL_RESULT_LATE = (
        "`tool_use` ids were found without `tool_result` blocks immediately after: %s. "
        "All `tool_result` blocks must come before any other content of the message."
    )

    ################################################################
    # Thinking
    ################################################################
    #
    # The signature identifies the server's own thinking. Thinking of another provider, or of an
    # interrupted stream, has none; a signed block with an empty text is valid. [seen, sdk]
    #
    # Whether a signature still matches the content before it (models with `thinking_bound`) cannot
    # be checked in a single request; the encoder is responsible for that.
    THINKING_UNSIGNED = "each thinking block must contain thinking and its `signature`"
    THINKING_LAST = "The final block in an assistant message cannot be `thinking`."  # [seen]
    # Only under `thinking: {"type": "enabled"}`, the manual mode of older models, and only for the
    # assistant message whose tool results the request delivers. [seen]
    THINKING_FIRST = (
        "Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, "
        "a final `assistant` message must start with a thinking block"
    )

    ################################################################
    # Cache marks
    ################################################################
    MARK_FORM = "Input should be {'type': 'ephemeral'} with an optional ttl"  # [sdk]
    MARK_TTL = "Input should be '5m' or '1h'"  # [sdk]
    # Tools, system and messages together. An automatic mark (`cache_control` of the request itself)
    # counts as one of the four, unless the last block already has the same. [docs, seen]
    MARKS_MAX = "A maximum of 4 blocks with cache_control may be provided. Found %s."
    MARK_ON_THINKING = "Extra inputs are not permitted"  # thinking and redacted_thinking [seen]
    MARK_ON_EMPTY_TEXT = "cache_control cannot be set for empty text blocks"  # [seen]
    # Marks must be ordered from the longest to the shortest time to live. [docs, seen]
    MARK_ORDER = (
        "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note "
        "that blocks are processed in the following order: tools, system, messages."
    )
    MARK_CONFLICT = "automatic cache_control conflicts with the ttl of the last block"  # [docs]

    ################################################################
    # Limits
    ################################################################
    #
    # 600 images, or 100 with a window of 200,000 tokens; 10 MB of base64 each. The rule about image
    # sides (2,000 pixels with more than 20 images) is not checked, because the images are not
    # decoded. [docs]
    IMAGES_MAX = "too many images in the request: %s > %s"
    IMAGE_BYTES = "image exceeds 10 MB maximum: %s bytes > 10485760 bytes"
    MEDIA_TYPE = "Input should be one of: %s"  # [sdk]
    SOURCE = "Input should be a source of one of the types: %s"  # [sdk]
    # The server fetches the URL, so a path, a `data:` URL or a bare name is refused. [docs]
    URL = "Only HTTP and HTTPS URLs are supported"
    # Redacted logs have placeholders instead of images; their first characters are not base64.
    BASE64 = "Invalid base64 data"
    # 32 MB, refused before the server parses anything (413). Only the characters of texts and
    # attachments are counted, which is less than the bytes sent, so a refusal here is certain.
    # [docs]
    REQUEST_BYTES = "Request exceeds the maximum size: %s > 33554432"
    MAX_TOKENS = "%s > %s, which is the maximum allowed number of output tokens for this model"
