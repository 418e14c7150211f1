"""The rules of the Responses API: each member is a rule, with its reason, its source and its error text.

The name of a member in lower case is the stable name of the rule. Its value is the provider's error text,
with `%s` for details. The texts change without notice, so nothing may depend on them; they only help to
search for an error.

Sources: [docs] the provider's guides of November 2026; [sdk] the types of the `openai` package, 3.54;
[seen] an error text that users quoted in public.
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
    NO_INPUT = (
        "One of 'input', 'previous_response_id', 'prompt' or 'conversation' must be provided."
    )
    UNKNOWN_ITEM = "Invalid value: '%s'. Supported values are the types of the input items."
    ROLE = (
        "Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
    )
    CONTENT_EMPTY = "Invalid '%s': empty array. Expected an array with minimum length 1."  # [seen]
    # The types of user parts begin with `input_`; the model's are `output_text` and `refusal`.
    # [seen]
    UNKNOWN_PART = "Invalid value: '%s'. Supported values are the types of the content parts."
    PHASE = "Invalid value: '%s'. Supported values are: 'commentary' and 'final_answer'."  # [sdk]

    ################################################################
    # Calls
    ################################################################
    #
    # Every call has one output anywhere after it, and every output a call before it. [seen]
    CALL_UNANSWERED = "No tool output found for function call %s."
    OUTPUT_UNEXPECTED = "No tool call found for function call output with call_id %s."
    # A function is answered by `function_call_output`, a custom tool by `custom_tool_call_output`. [sdk]
    OUTPUT_KIND = "No tool call found for %s"
    OUTPUT_DUPLICATE = "Duplicate item found with call_id %s."
    CALL_ID_DUPLICATE = "Duplicate function call with call_id %s."
    CALL_ID = "Invalid 'call_id': expected a string of 1 to 64 characters."  # [seen]
    CALL_NAME = (
        "Invalid 'name': string does not match pattern '^[a-zA-Z0-9_-]+$', up to 64."  # [seen]
    )
    # OpenAI accepts any text; compatible servers parse it, and fail if it is not an object.
    ARGUMENTS = "Invalid 'arguments': expected a JSON object as a string."

    ################################################################
    # Reasoning
    ################################################################
    #
    # Nothing is stored (`store` is false), so an item must include its content. [docs]
    REASONING_SEALED = (
        "Item with id '%s' not found. Items are not persisted when `store` is set to false."
    )
    # The item that the reasoning led to must come next. [seen]
    REASONING_ALONE = (
        "Item '%s' of type 'reasoning' was provided without its required following item."
    )
    TRIGGER_LAST = "Invalid 'compaction_trigger': it must be the final input item."  # [sdk]
    COMPACTION_SEALED = "Missing required parameter: 'encrypted_content'."  # [sdk]

    ################################################################
    # Cache marks
    ################################################################
    #
    # Allowed only on `input_text`, `input_image` and `input_file`, in messages or outputs; not in
    # the model's own items, tools or `instructions`. More than four are accepted; the latest four
    # are written. [docs]
    MARK_PLACE = "Unknown parameter: 'prompt_cache_breakpoint'."
    MARK_FORM = "Invalid 'prompt_cache_breakpoint': expected {'mode': 'explicit'}, with a ttl of '30m' or '12h'."
    # Models before GPT-5.6 support neither marks nor options. [docs, seen]
    MARK_MODEL = "prompt_cache_breakpoint is not supported with this model."
    CACHE_OPTIONS = "Invalid 'prompt_cache_options': mode is 'implicit' or 'explicit'."
    CACHE_KEY = (
        "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64."
    )

    ################################################################
    # Tools
    ################################################################
    TOOL_TYPE = "Invalid value: '%s'. Supported values are the types of the tools."
    TOOLS_ROLE = "Invalid value: '%s'. Supported values are: 'developer'."  # [sdk]
    TOOL_NAME = "Invalid 'tools.name': string does not match pattern '^[a-zA-Z0-9_-]+$', up to 64."
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
    FILE = "Invalid file: one of file_data, file_id or file_url must be provided."  # [sdk]
    REQUEST_BYTES = "Request exceeds the maximum size: %s > 52428800"  # [docs]
    MAX_TOKENS = "Invalid 'max_output_tokens': expected 16 to %s, found %s."  # [seen]
