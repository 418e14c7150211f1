"""Artifacts: content that is stored beside the log. `persistence` exports the public names."""

from persistence.artifacts._artifacts import ArtifactStore as ArtifactStore
from persistence.artifacts._artifacts import MemoryArtifacts as MemoryArtifacts
from persistence.artifacts._artifacts import copy_artifacts as copy_artifacts
from persistence.artifacts._artifacts import open_artifacts as open_artifacts
from persistence.artifacts._crypt import KeyRing as KeyRing
from persistence.artifacts._crypt import Keys as Keys
from persistence.artifacts._store import ArtifactDescription as ArtifactDescription
from persistence.artifacts._store import ArtifactMetadata as ArtifactMetadata
from persistence.artifacts._store import AuditRecord as AuditRecord
from persistence.artifacts._store import Entry as Entry
from persistence.artifacts._store import MemoryBackend as MemoryBackend
from persistence.artifacts._store import Requester as Requester
