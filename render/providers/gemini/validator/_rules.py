"""The rules of the Gemini API: each member is a rule, with its reason, its source and its error text.

The name of a member in lower case is the stable name of the rule. Its value is the provider's error text,
with `%s` for details. The texts change without notice, so nothing may depend on them; they only help to
search for an error.

Sources: [docs] the provider's guides of October 2026; [sdk] the types of the `google-genai` package, 3.4;
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
    SHAPE = "Invalid value: expected %s"
    NO_CONTENTS = "GenerateContentRequest.contents: contents is not specified"  # [seen]
    ROLE = "Please use a valid role: user, model."  # [seen]
    PARTS_EMPTY = "GenerateContentRequest.contents: contents.parts must not be empty."  # [seen]
    # A part has one field with data: a text, a call, a response, a file, ... [sdk, seen]
    PART_DATA = (
        "GenerateContentRequest.contents.parts: required oneof field 'data' must have one "
        "initialized field"
    )
    # Empty text is valid if the part has a signature. [docs]
    TEXT_EMPTY = "Unable to submit request because it must have a text parameter."
    # Only the model may call; only the user may respond. [seen]
    PART_ROLE = "Part of type '%s' is not allowed in a content of role '%s'."
    # A conversation begins and ends with the user. [seen]
    FIRST_ROLE = "Please ensure that multiturn requests start with a user role."
    LAST_ROLE = "Please ensure that multiturn requests end with a user role or a function response."

    ################################################################
    # Calls
    ################################################################
    CALL_PLACE = (
        "Please ensure that function call turn comes immediately after a user turn or after a "
        "function response turn."
    )
    # As many responses as calls, in the very next content. [seen]
    CALL_UNANSWERED = (
        "Please ensure that the number of function response parts is equal to the number of "
        "function call parts of the function call turn."
    )
    RESPONSE_UNEXPECTED = (
        "Please ensure that function response turn comes immediately after a function call turn."
    )
    # A response is matched by its id, if it has one, and repeats the name. [docs]
    RESPONSE_ID = "Function response with id '%s' answers no function call."
    RESPONSE_NAME = "Function response name '%s' does not match the function call."
    CALL_NAME = (
        "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric, "
        "underscores, dots, colons or dashes, with a maximum length of 64."
    )
    CALL_ARGS = "Invalid value at 'args' (type.googleapis.com/google.protobuf.Struct)"
    RESPONSE_FORM = "Invalid value at 'response' (type.googleapis.com/google.protobuf.Struct)"
    # Since Gemini 3, required for the first call of each step of the current turn. [docs, seen]
    SIGNATURE_MISSING = (
        "Function call is missing a thought_signature in functionCall parts. This is required for "
        "tools to work correctly, and missing thought_signature may lead to degraded model "
        "performance. Additional data, function call `%s`, position %s."
    )
    SIGNATURE_FORM = "Invalid value at 'thought_signature' (TYPE_BYTES), Base64 decoding failed"

    ################################################################
    # Tools
    ################################################################
    TOOL_NAME = (
        "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric "
        "(a-z, A-Z, 0-9), underscores, dots, colons or dashes, with a maximum length of 64."
    )
    TOOL_NAME_DUPLICATE = "Duplicate function declaration found: %s"  # [seen]
    # Only one of the two fields, and of type object. [sdk]
    TOOL_SCHEMA = (
        "Invalid function declaration '%s': parameters schema should be of type OBJECT, given once."
    )

    ################################################################
    # Limits
    ################################################################
    IMAGES_MAX = "too many images in the request: %s > %s"  # [docs]
    MEDIA_TYPE = "Unsupported MIME type: %s"  # [seen]
    BASE64 = "Invalid value at 'inline_data.data' (TYPE_BYTES), Base64 decoding failed"  # [seen]
    URL = "Unsupported file uri: %s"  # [seen]
    REQUEST_BYTES = "Request payload size exceeds the limit: %s > 104857600 bytes."  # [docs]
    MAX_TOKENS = (
        "Unable to submit request because it has a maxOutputTokens value of %s but the supported "
        "range is from 1 (inclusive) to %s (inclusive)."  # [seen]
    )
