"""Artifacts: content that lives beside the log, named by what it is."""

import re
from hashlib import sha256
from typing import Final, Literal, TypeAlias

from blocks._ids import ArtifactId

Sensitivity: TypeAlias = Literal["public", "internal", "confidential", "restricted"]
"""Who may see a piece of content; from `confidential` on it is encrypted at rest and never comes
back into a prompt by itself."""

ID_CHARACTERS: Final = 32
_PREFIX: Final = "art-"
_ID: Final = re.compile(rf"(?<![\w-]){_PREFIX}[0-9a-f]{{{ID_CHARACTERS}}}(?![\w-])")


def artifact_id(content: bytes) -> ArtifactId:
    """The id of a content: equal content has equal ids, on every machine."""
    return artifact_id_of_hash(sha256(content).hexdigest())


def artifact_id_of_hash(digest: str) -> ArtifactId:
    """The id of the content with this sha256, in hex; for content that is never whole in memory."""
    return ArtifactId(f"{_PREFIX}{digest[:ID_CHARACTERS]}")


def artifact_ids_in(text: str) -> tuple[ArtifactId, ...]:
    """The artifact ids that a text names as whole tokens, each once, in order."""
    found: list[str] = _ID.findall(text) if _PREFIX in text else []
    return tuple(dict.fromkeys(map(ArtifactId, found)))
