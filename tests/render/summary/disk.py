"""A file on a disk, and the log of the calls that show and change it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from blocks import (
    Block,
    BlockId,
    CallId,
    FoldState,
    Region,
    TextPart,
    ToolCall,
    ToolResult,
    TurnId,
    path_of,
)
from render.summary._working_set import Copy, VisibleLines, ranked, working_set
from render.view._view import Entry, Place

FILE = "src/cart.py"
FRAME = "Chunk ID: a1b2c3\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n"


def entry(version: int, pair: str, block: Block) -> Entry:
    return Entry(
        version=version,
        at=0.0,
        block=block,
        path=path_of(block),
        place=Place.RESPONSE if isinstance(block, ToolCall) else Place.RESULT,
        pair=pair,
        state=FoldState(),
    )


def ran(
    version: int, tool: str, said: str, given: dict[str, Any], *, is_error: bool = False
) -> list[Entry]:
    """A call and its result, at a version and the next."""
    turn, call_id, pair = TurnId("t1"), CallId(f"c{version}"), f"p{version}"
    call = ToolCall(id=BlockId(f"b{version}"), turn=turn, call_id=call_id, name=tool, input=given)
    result = ToolResult(
        id=BlockId(f"r{version}"),
        turn=turn,
        call_id=call_id,
        parts=(TextPart(text=said),),
        is_error=is_error,
    )
    return [entry(version, pair, call), entry(version + 1, pair, result)]


def code(*numbers: int) -> list[str]:
    """Long lines, which no short text is a whole of, with a name that makes each worth quoting."""
    return [f"    compute_the_value_{n:04}(from_item, with_option={n:04})" for n in numbers]


def viewed(lines: Sequence[str], first: int = 1) -> str:
    return "\n".join(f"{n:6}→{line}" for n, line in enumerate(lines, first))


def edit(
    version: int, old: Sequence[str], new: Sequence[str], *, is_error: bool = False
) -> list[Entry]:
    given = {"file_path": FILE, "old_string": "\n".join(old), "new_string": "\n".join(new)}
    return ran(version, "Edit", "done", given, is_error=is_error)


@attrs.define
class Disk:
    """A file, and the calls that showed and changed it."""

    lines: list[str]
    next: int = 1000
    calls: list[list[Entry]] = attrs.field(factory=list[list[Entry]])

    @property
    def version(self) -> int:
        return 2 * len(self.calls) + 1

    def fresh(self, number: int) -> list[str]:
        self.next += number
        return code(*range(self.next - number, self.next))

    def do(self, action: str, first: int, number: int, size: int) -> None:
        first = min(first, max(len(self.lines) - 1, 0))
        part = self.lines[first : first + number]
        getattr(self, action)(first, part, self.fresh(size))

    def read(self, first: int, part: list[str], _: list[str]) -> None:
        shown = viewed(part, first + 1)
        self.calls.append(
            ran(self.version, "Read", shown, {"file_path": FILE, "offset": first + 1})
        )

    def read_raw(self, first: int, part: list[str], _: list[str]) -> None:
        given = {"path": FILE, "offset": first + 1}
        self.calls.append(ran(self.version, "read", "\n".join(part), given))

    def read_by_shell(self, first: int, part: list[str], _: list[str]) -> None:
        shown = "\n".join([FRAME.rstrip(), *part, ""])
        command = f"cd src && sed -n '{first + 1},{first + max(len(part), 1)}p' cart.py"
        self.calls.append(ran(self.version, "exec_command", shown, {"cmd": command}))

    def read_end(self, _: int, part: list[str], __: list[str]) -> None:
        if end := self.lines[-len(part) :] if part else []:
            shown = "\n".join(["<returncode>0</returncode>", "<output>", *end, "</output>"])
            given = {"command": f"tail -n {len(end)} {FILE}"}
            self.calls.append(ran(self.version, "bash", shown, given))

    def write_by_shell(self, _: int, part: list[str], new: list[str]) -> None:
        self.lines = [*part, *new]
        command = "\n".join(["cat > cart.py <<'EOF'", *self.lines, "EOF", "make"])
        given = {"cmd": command, "workdir": "src"}
        self.calls.append(ran(self.version, "exec_command", f"{FRAME}done", given))

    def add_by_shell(self, _: int, __: list[str], new: list[str]) -> None:
        self.lines += new
        given = {"command": "\n".join([f"cat >> {FILE} <<'EOF'", *new, "EOF"])}
        self.calls.append(ran(self.version, "bash", "", given))

    def write(self, _: int, part: list[str], new: list[str]) -> None:
        self.lines = [*part, *new]
        content = "\n".join(self.lines)
        self.calls.append(
            ran(self.version, "Write", "done", {"file_path": FILE, "content": content})
        )

    def edit(self, first: int, part: list[str], new: list[str]) -> None:
        if part:
            self.calls.append(edit(self.version, part, new))
            self.lines[first : first + len(part)] = new

    def insert(self, first: int, part: list[str], new: list[str]) -> None:
        self.edit(first, part, [*part, *new])

    def rename(self, first: int, part: list[str], new: list[str]) -> None:
        """A part of a line becomes another one."""
        if part and new:
            name, other = (line.split("(")[0].strip() for line in (part[0], new[0]))
            self.calls.append(edit(self.version, [name], [other]))
            self.lines[first] = part[0].replace(name, other)

    def patch(self, first: int, part: list[str], new: list[str]) -> None:
        before, after = self.lines[max(first - 1, 0) : first], self.lines[first + len(part) :][:1]
        body = [
            *(f" {line}" for line in before),
            *(f"-{line}" for line in part),
            *(f"+{line}" for line in new),
            *(f" {line}" for line in after),
        ]
        text = "\n".join(["*** Begin Patch", f"*** Update File: {FILE}", "@@", *body])
        given = {"input": f"{text}\n*** End Patch"}
        tool = "apply_patch"
        if first % 2:
            tool, given = "bash", {"command": f"apply_patch <<'EOF'\n{given['input']}\nEOF\n"}
        self.calls.append(ran(self.version, tool, "done", given))
        self.lines[first : first + len(part)] = new


def regions_of(
    copies: Mapping[str, Copy],
    tokens: int = 9999,
    count: Callable[[str], int] = len,
    visible: VisibleLines | None = None,
    oldest: int = 0,
    wanted: frozenset[str] = frozenset(),
) -> tuple[Region, ...]:
    """The working set of these files."""
    return working_set(copies, ranked(copies, visible or {}, oldest, wanted), tokens, count)
