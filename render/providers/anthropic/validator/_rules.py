"""What the Messages API refuses: one member a rule, with its reason, its source and its words.

The name of a member, in lower case, is the stable name of the rule; its value is what the provider
answers, with `%s` where it names what it found. The words change without notice: nothing may depend
on them, they are here so that a violation can be searched for.

Sources: [docs] the provider's documentation of October 2026; [sdk] the types of the `anthropic`
package, 2.11; [seen] an error text that users quoted in public.
"""

from enum import Enum, unique
from typing import Protocol


class ModelRules(Protocol):
    """What the rules must know of a model; without one, the strictest reading that all share."""

    @property
    def prefill(self) -> bool:
        """Whether the last message may be the assistant's."""
        ...

    @property
    def system_messages(self) -> bool:
        """Whether a message of role `system` may stand between the others."""
        ...

    @property
    def tokens_window(self) -> int:
        """What prompt and answer may have together."""
        ...

    @property
    def output_tokens_max(self) -> int:
        """What `max_tokens` may ask for."""
        ...


@unique
class Rule(Enum):
    """See the module."""

    ################################################################
    # Shape
    ################################################################
    #
    # The server parses a request into a tagged union before it looks at anything else. We check the
    # shape only where a later rule would stumble over it: this is no type checker. [sdk]
    SHAPE = "Input should be a valid %s"
    # A tag that no union has. We know the tags of the stable and the beta union; a newer tag needs
    # a newer table, and until then it is better to hear of it here than from the server. [sdk]
    UNKNOWN_BLOCK = "Input tag '%s' found using 'type' does not match any of the expected tags"

    ################################################################
    # Conversation
    ################################################################
    #
    # Consecutive messages of one role are joined by the server, so two in a row are no error; all
    # rules below speak about messages after joining. [sdk]
    NO_MESSAGES = "at least one message is required"
    MESSAGES_MAX = "at most 100000 messages are allowed, found %s"
    ROLE = "Input should be 'user' or 'assistant'"  # [sdk]
    # Newer models take `role: "system"` between other messages: after what the user sent (or after
    # the result of a server tool), before an answer of the assistant or at the end; so never first,
    # and never between calls and results. Several in a row count as one. [docs]
    SYSTEM_REFUSED = (
        'Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
        'not "system" as an input message role.'
    )
    SYSTEM_PLACE = "a `system` message must follow a user turn and precede an assistant turn or end"
    # One exception: an assistant message that opens with a `compaction` block stands for everything
    # before it. Whether the rule is still enforced is unverified; obeying it costs nothing. [seen]
    FIRST_NOT_USER = 'first message must use the "user" role'
    # A last assistant message is a prefill, which every model after the 4.5 generation refuses.
    # One exception: a turn the server paused (it ends in a block of a server tool, or in a
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
    # Wherever a text block stands: in a message, in `system`, inside a tool result, a search result
    # or a document. Servers were seen to be lenient about some of these (blank text beside other
    # text), but not all at all times; a text without a word is never worth the risk. Two plain
    # strings are legal when empty, because there they mean "nothing": `system`, and the content of
    # a tool result, which may be blank too (so is the output of many a command). [seen]
    TEXT_EMPTY = "text content blocks must be non-empty"
    TEXT_BLANK = "text content blocks must contain non-whitespace text"
    # Citations are the model's. Refused since version 2026-10-21, also in a search result. [docs]
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
    # JSON Schema 2020-12 whose outermost type is an object. Only tools of our own carry one; a
    # server tool brings its schema along. [sdk]
    TOOL_SCHEMA = "JSON schema is invalid: input_schema must be an object of type 'object'"

    ################################################################
    # Calls and results
    ################################################################
    #
    # The message right after a call answers all calls of the message before it: each exactly once,
    # results first, everything else after them. A call in the last message is unanswered too. [docs]
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
    # The signature is how the server knows its own thinking. Thinking of another provider, or of a
    # stream that broke off, has none; a signed block with an empty text is fine. [seen, sdk]
    #
    # Whether a signature still fits what comes before it (models with `thinking_bound`) cannot be
    # seen in one request: that is the encoder's to keep.
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
    # Tools, system and messages together; an automatic mark (`cache_control` of the request itself)
    # takes one of the four, unless the last block already carries the same. [docs, seen]
    MARKS_MAX = "A maximum of 4 blocks with cache_control may be provided. Found %s."
    MARK_ON_THINKING = "Extra inputs are not permitted"  # thinking and redacted_thinking [seen]
    MARK_ON_EMPTY_TEXT = "cache_control cannot be set for empty text blocks"  # [seen]
    # Billing walks the marks from the longest-lived to the shortest. [docs, seen]
    MARK_ORDER = (
        "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note "
        "that blocks are processed in the following order: tools, system, messages."
    )
    MARK_CONFLICT = "automatic cache_control conflicts with the ttl of the last block"  # [docs]

    ################################################################
    # Limits
    ################################################################
    #
    # 600 images, 100 where the window is 200,000 tokens; 10 MB of base64 each. The rule about sides
    # (2,000 pixels with more than 20 images) would need a look inside the images. [docs]
    IMAGES_MAX = "too many images in the request: %s > %s"
    IMAGE_BYTES = "image exceeds 10 MB maximum: %s bytes > 10485760 bytes"
    MEDIA_TYPE = "Input should be one of: %s"  # [sdk]
    SOURCE = "Input should be a source of one of the types: %s"  # [sdk]
    # The server fetches it; a path, a `data:` url or a bare name is none. [docs]
    URL = "Only HTTP and HTTPS URLs are supported"
    # Redacted logs hold placeholders where the image was; the first characters give them away.
    BASE64 = "Invalid base64 data"
    # 32 MB, refused before the server parses anything (413). We count characters of texts and
    # attachments, which is less than the bytes on the wire: what we refuse is surely refused. [docs]
    REQUEST_BYTES = "Request exceeds the maximum size: %s > 33554432"
    MAX_TOKENS = "%s > %s, which is the maximum allowed number of output tokens for this model"
