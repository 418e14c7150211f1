"""What the Gemini API refuses: one member a rule, with its reason, its source and its words.

The name of a member, in lower case, is the stable name of the rule; its value is what the provider
answers, with `%s` where it names what it found. The words change without notice: nothing may depend on
them, they are here so that a violation can be searched for.

Sources: [docs] the provider's guides of October 2026; [sdk] the types of the `google-genai` package, 3.4;
[seen] an error text that users quoted in public.
"""

from enum import Enum, unique


@unique
class Rule(Enum):
    """See the module."""

    ################################################################
    # Shape
    ################################################################
    #
    # Checked only where a later rule would stumble over it: this is no type checker. [sdk]
    SHAPE = "Invalid value: expected %s"
    NO_CONTENTS = "GenerateContentRequest.contents: contents is not specified"  # [seen]
    ROLE = "Please use a valid role: user, model."  # [seen]
    PARTS_EMPTY = "GenerateContentRequest.contents: contents.parts must not be empty."  # [seen]
    # A part has one field with data: a text, a call, a response, a file, ... [sdk, seen]
    PART_DATA = (
        "GenerateContentRequest.contents.parts: required oneof field 'data' must have one "
        "initialized field"
    )
    # Empty text is fine where it carries a signature. [docs]
    TEXT_EMPTY = "Unable to submit request because it must have a text parameter."
    # Calls are the model's, responses the user's. [seen]
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
    # The response goes by the id where there is one, and repeats the name. [docs]
    RESPONSE_ID = "Function response with id '%s' answers no function call."
    RESPONSE_NAME = "Function response name '%s' does not match the function call."
    CALL_NAME = (
        "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric, "
        "underscores, dots, colons or dashes, with a maximum length of 64."
    )
    CALL_ARGS = "Invalid value at 'args' (type.googleapis.com/google.protobuf.Struct)"
    RESPONSE_FORM = "Invalid value at 'response' (type.googleapis.com/google.protobuf.Struct)"
    # From Gemini 3 on, of the first call of each step of the current turn. [docs, seen]
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
    # One of the two, and of type object. [sdk]
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
