"""Checks whether the write-ahead log of an SQLite file has commits that can no longer be read.

SQLite silently reads a log only up to its first damaged frame, because this may be the end of an unfinished commit.
But every commit is synced before the next one begins, so if there is a commit after the damage, acknowledged commits
were lost.

    header   magic, format, page size, number, two salts, checksum
    frame    page, 0 or at the end of a commit the size of the file, the salts, checksum of all so far; the page
"""

from pathlib import Path
from struct import Struct, iter_unpack
from typing import Final

HEADER: Final = Struct(">8I")
FRAME: Final = Struct(">6I")
MAGIC: Final = {0x377F0682: "<II", 0x377F0683: ">II"}
"""Magic numbers of a log, each with the byte order in which its checksums read words."""
_MASK: Final = 0xFFFFFFFF


def lost_commits(database: Path) -> str:
    """A sentence about unreadable commits in the write-ahead log; empty if there are none."""
    wal = database.with_name(f"{database.name}-wal")
    found = _lost(wal)
    return found if found and found == _lost(wal) else ""  # else the log changed meanwhile


def _lost(wal: Path) -> str:
    try:
        data = wal.read_bytes()
    except FileNotFoundError:
        return ""
    if len(data) <= HEADER.size:
        return ""
    magic, _, page, _, *salts, first, second = HEADER.unpack_from(data)
    sums = _sums((0, 0), data[: HEADER.size - 8], MAGIC.get(magic, "<II"))
    if magic not in MAGIC or sums != (first, second):
        return f"the beginning of {wal.name} is damaged: what was not in the file yet is lost"
    end = _readable(data, page, sums, MAGIC[magic])
    step = FRAME.size + page
    for at in range(end, len(data) - step + 1, step):
        _, commit, *rest = FRAME.unpack_from(data, at)
        if commit and rest[:2] == salts:
            return (
                f"{wal.name} is damaged at byte {end} of {len(data)}: commits behind that are lost"
            )
    return ""


def _readable(data: bytes, page: int, sums: tuple[int, int], words: str) -> int:
    """The position of the first frame that SQLite would not accept."""
    salts, at = data[16:24], HEADER.size
    while at + FRAME.size + page <= len(data):
        head, body = data[at : at + FRAME.size], data[at + FRAME.size : at + FRAME.size + page]
        sums = _sums(sums, head[:8] + body, words)
        if head[8:16] != salts or FRAME.unpack(head)[4:] != sums:
            break
        at += FRAME.size + page
    return at


def _sums(sums: tuple[int, int], data: bytes, words: str) -> tuple[int, int]:
    one, two = sums
    for left, right in iter_unpack(words, data):
        one = (one + left + two) & _MASK
        two = (two + right + one) & _MASK
    return one, two
