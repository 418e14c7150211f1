"""The access rules for artifacts, and nothing else.

They are checked in this order, and the first that fails decides:

    unknown      nobody has put it
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
"""What it takes; least strict first."""


_RANKS: dict[str, int] = {each: rank for rank, each in enumerate(reversed(PERMISSIONS))}
"""The strictest comes first."""

_ADVICE: dict[Refusal, str] = {
    "unknown": "this store holds no such artifact for this requester",
    "permission": "the requester lacks the permission for its sensitivity",
    "expired": "its time is over; get the content from its source again",
    "key": "its key is not in the key ring, or does not fit; open the store with the right keys",
}


def granted(entries: Sequence[Entry], requester: Requester, now: float) -> list[Entry] | Refusal:
    """The entries of one artifact in force for the requester, strictest first, or why there are none."""
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
    """Among equally strict ones the oldest answers, so that answers stay the same."""
    return _RANKS[entry.metadata.sensitivity], entry.metadata.created_at, entry.slot


def refused(artifact: str, reason: Refusal) -> AccessRefusedError:
    """The error for the requester, who must not learn that another tenant has the content."""
    told: Refusal = "unknown" if reason == "tenant" else reason
    return AccessRefusedError(artifact, told, _ADVICE[told])
