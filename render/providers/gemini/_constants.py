"""Constants of the Gemini API that encoder and rules share.

Sources: the types of the `google-genai` package, 3.4, and the provider's guides of October 2026.
"""

from typing import Final

from blocks.formats import SHAPES
from render.view._view import Json

SIGNATURE: Final = SHAPES["gemini"].seal
UNSIGNED: Final = "skip_thought_signature_validator"
"""Replaces the signature of a call that the model did not make itself. (Guide to thought signatures,
questions and answers: histories of other models.)"""

IMAGE_MEDIA_TYPES: Final = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
PICTURES_MAX: Final = 900
"""Images per request: the smallest of the documented numbers."""
PICTURE_BYTES_MAX: Final = 45_000_000
"""Bytes of base64; PDFs may have 50 MB, a whole request 100 MB."""

NAME: Final = r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"
"""Pattern of a function name; newer versions accept 128 characters."""

TAG_PREFIX: Final = "provider.gemini."
"""Tag prefix of blocks that only this provider understands."""
DATA: Final = (
    "text",
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)
"""The data fields of a part, of which it has exactly one: its kind."""
REPLAYED: Final = frozenset(
    {"codeExecutionResult", "executableCode", "fileData", "inlineData", "toolCall", "toolResponse"}
)
"""Kinds of parts by the model or the server that are sent back unchanged."""


def kind_of(part: Json) -> str:
    """The data field that a part has; empty if it has none."""
    return next((name for name in DATA if name in part), "")
