"""The access rules for artifacts, and nothing else.

They are checked in this order, and the first that fails decides:

    unknown      it was never put
    tenant       it was put, but not for the requester's tenant; the requester is told `unknown`
    permission   the requester lacks the permission for its sensitivity
    expired      it has expired, whether it has been swept or not
    key          it is encrypted, and its key is missing or wrong

Several timelines of one tenant may have put the same content.  It lasts until the latest of their expiries, and
the strictest sensitivity in force applies: if one timeline calls it restricted, requesters who may only read
internal content do not get it.
"""

from collections.abc import Sequence

from blocks import AccessRefusedError, Refusal, Sensitivity
from persistence.artifacts._backend import Entry
from persistence.artifacts._types import Requester

PERMISSIONS: dict[Sensitivity, str] = {
    "public": "read",
    "internal": "read",
    "confidential": "read:confidential",
    "restricted": "read:restricted",
}
"""The permission that reading each sensitivity needs; the least strict first."""


_RANKS: dict[str, int] = {each: rank for rank, each in enumerate(reversed(PERMISSIONS))}
"""A rank for each sensitivity; the strictest has the lowest."""

_ADVICE: dict[Refusal, str] = {
    "unknown": "this store holds no such artifact for this requester",
    "permission": "the requester lacks the permission for its sensitivity",
    "expired": "its time is over; get the content from its source again",
    "key": "its key is not in the key ring, or does not fit; open the store with the right keys",
}


def granted(entries: Sequence[Entry], requester: Requester, now: float) -> list[Entry] | Refusal:
    """The entries of one artifact that the requester may read and that have not expired, strictest first; or the reason
    for refusing."""
    if not entries:
        return "unknown"
    own = [entry for entry in entries if entry.metadata.tenant == requester.tenant]
    if not own:
        return "tenant"
    in_force = [entry for entry in own if not entry.metadata.is_expired(now)]
    ranked = sorted(in_force or own, key=_rank)
    if PERMISSIONS[ranked[0].metadata.sensitivity] not in requester.permissions:
        return "permission"
    return ranked if in_force else "expired"


def _rank(entry: Entry) -> tuple[int, float, str]:
    """A sort key: strictest first; of equally strict entries the oldest, so that answers do not change."""
    return _RANKS[entry.metadata.sensitivity], entry.metadata.created_at, entry.slot


def refused(artifact: str, reason: Refusal) -> AccessRefusedError:
    """The error for a requester, which does not reveal that another tenant has the content."""
    told: Refusal = "unknown" if reason == "tenant" else reason
    return AccessRefusedError(artifact, told, _ADVICE[told])
