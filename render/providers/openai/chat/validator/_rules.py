"""The rules of Chat Completions: each member is a rule, with its reason, its source and its error text.

The name of a member in lower case is the stable name of the rule. Its value is the provider's error text,
with `%s` for details. The texts change without notice, so nothing may depend on them; they only help to
search for an error.

Sources: [docs] the provider's guides of November 2026; [sdk] the types of the `openai` package, 3.54;
[seen] an error text that users quoted in public; [servers] refused by vLLM, llama.cpp or the templates of
open models, though not by OpenAI.
"""

from enum import Enum, unique


@unique
class Rule(Enum):
    """One rule per member; see the module."""

    ################################################################
    # Shape
    ################################################################
    #
    # Checked only where a later rule depends on the shape; this is not a type checker. [sdk]
    SHAPE = "Invalid type: expected %s"
    NO_MESSAGES = (
        "Invalid 'messages': empty array. Expected an array with minimum length 1."  # [seen]
    )
    ROLE = (
        "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'tool', and"
        " 'developer'."
    )
    # Only an assistant message with calls may have no content. [seen]
    CONTENT_NULL = "Invalid value for 'content': expected a string, got null."
    CONTENT_EMPTY = (
        "Invalid 'content': empty array. Expected an array with minimum length 1."  # [seen]
    )
    # User messages may contain text, images, audio and files; tool and system messages only text.
    # [sdk]
    UNKNOWN_PART = "Invalid value: '%s'. Supported values are the types of the content parts."
    # Many templates refuse two user messages in a row. (Some refuse a system message between others, too; one that an
    # operator put there was accepted there.) [servers]
    NOT_ALTERNATING = "Conversation roles must alternate user/assistant/user/assistant/..."

    ################################################################
    # Calls
    ################################################################
    #
    # The results must follow their calls directly. [seen]
    CALL_UNANSWERED = (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. The following tool_call_ids did not have response messages: %s"
    )
    RESULT_UNEXPECTED = (
        "Invalid parameter: messages with role 'tool' must be a response to a preceding message with "
        "'tool_calls'."
    )
    RESULT_DUPLICATE = "Duplicate value for 'tool_call_id' of '%s' in message."
    CALL_ID_DUPLICATE = "Duplicate value for 'tool_calls.id' of '%s'."
    CALLS_EMPTY = (
        "Invalid 'tool_calls': empty array. Expected an array with minimum length 1."  # [seen]
    )
    CALL_ID = "Invalid 'tool_calls.id': expected a string of 1 to 40 characters."  # [seen]
    CALL_TYPE = "Invalid value: '%s'. Supported values are: 'function' and 'custom'."
    CALL_NAME = (
        "Invalid 'name': string does not match pattern '^[a-zA-Z0-9_-]+$', up to 64."  # [seen]
    )
    # OpenAI accepts any text; other servers parse it, and fail if it is not an object. [servers]
    ARGUMENTS = "Invalid 'arguments': expected a JSON object as a string."

    ################################################################
    # Cache marks
    ################################################################
    #
    # Allowed on text, images, audio and files, but not in assistant messages or tools. More than
    # four are accepted; the latest four are written. [docs]
    MARK_PLACE = "Unknown parameter: 'prompt_cache_breakpoint'."
    MARK_FORM = "Invalid 'prompt_cache_breakpoint': expected {'mode': 'explicit'}, with a ttl of '30m' or '12h'."
    # Models before GPT-5.6 and other servers support neither marks nor options. [docs, seen]
    MARK_MODEL = "prompt_cache_breakpoint is not supported with this model."
    CACHE_OPTIONS = "Invalid 'prompt_cache_options': mode is 'implicit' or 'explicit'."
    CACHE_KEY = (
        "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64."
    )

    ################################################################
    # Tools
    ################################################################
    TOOL_TYPE = "Invalid value: '%s'. Supported types of tools are: 'function' and 'custom'."
    TOOL_NAME = (
        "Invalid 'tools.function.name': string does not match pattern '^[a-zA-Z0-9_-]+$', up to 64."
    )
    TOOL_NAME_DUPLICATE = "Duplicate tool name: '%s'."
    TOOL_SCHEMA = (
        "Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"'."
    )

    ################################################################
    # Limits
    ################################################################
    IMAGES_MAX = "too many images in the request: %s > %s"  # [docs]
    URL = "Invalid 'image_url': expected an http(s) url, or a data url with base64."  # [seen]
    MEDIA_TYPE = (
        "You uploaded an unsupported image. Please make sure your image is one of: %s."  # [seen]
    )
    BASE64 = "Invalid base64 data."
    FILE = "Invalid file: one of file_data or file_id must be provided."  # [sdk]
    REQUEST_BYTES = "Request exceeds the maximum size: %s > 52428800"  # [docs]
    MAX_TOKENS = (
        "max_tokens is too large: %s. This model supports at most %s completion tokens."  # [seen]
    )
