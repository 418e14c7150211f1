"""The copy of a file is never wrong: every line that it shows is in the file, at that place and with that number."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from blocks import Region
from render.summary._calls import runs_of
from render.summary._working_set import Copy, VisibleLines, followed
from render.view._view import Entry
from tests._table import for_each
from tests.render.summary.disk import FILE, Disk, code, edit, ran, regions_of, viewed


def occurs_once(old: str, text: str) -> bool:
    """Whether a text has one occurrence of another, also if two would overlap."""
    return text.find(old) >= 0 and text.find(old) == text.rfind(old)


@attrs.define
class RealDisk(Disk):
    """A file with blank and repeated lines, and tools that refuse a text that does not occur once."""

    def fresh(self, number: int) -> list[str]:
        lines = super().fresh(number)
        return [("", "}", line, line)[(index + number) % 4] for index, line in enumerate(lines)]

    def edit(self, first: int, part: list[str], new: list[str]) -> None:
        self.replace(first, "\n".join(part), "\n".join(new))

    def rename(self, first: int, part: list[str], new: list[str]) -> None:
        """A part of a line becomes another one."""
        if part and new:
            self.replace(first, part[0][4:20], new[0][4:24])

    def edit_ends(self, first: int, part: list[str], new: list[str]) -> None:
        """Whole lines with their line ends."""
        self.replace(
            first, "".join(f"{line}\n" for line in part), "".join(f"{line}\n" for line in new)
        )

    def edit_within(self, first: int, part: list[str], new: list[str]) -> None:
        """From within a line to within another one."""
        text = "\n".join(part)
        self.replace(first, text[5:-5], "\n".join(new)[3:-3])

    def remove_end(self, first: int, part: list[str], _: list[str]) -> None:
        """From within a line to the end of it or of another one."""
        self.replace(first, "\n".join(part)[5:], "")

    def replace(self, first: int, old: str, new: str) -> None:
        text = "\n".join(self.lines)
        given = {"file_path": FILE, "old_string": old, "new_string": new}
        if first % 2:
            given = {"path": FILE, "oldText": old, "newText": new}
        is_error = not old.strip() or not occurs_once(old, text)
        self.calls.append(ran(self.version, "Edit", "done", given, is_error=is_error))
        if not is_error:
            gone = f"{old}\n" if not new and not old.endswith("\n") and f"{old}\n" in text else old
            self.lines = text.replace(gone, new).split("\n")

    def replace_all(self, first: int, part: list[str], new: list[str]) -> None:
        old, other = part[0].strip()[:9] if part else "", "x\ny"[: len(new)]
        if old:
            name = ("replaceAll", "replace_all")[first % 2]
            given = {"path": FILE, "oldText": old, "newText": other, name: True}
            self.calls.append(ran(self.version, "edit", "done", given))
            self.lines = "\n".join(self.lines).replace(old, other).split("\n")

    def multi_edit(self, _: int, part: list[str], new: list[str]) -> None:
        pairs, text = list[tuple[str, str]](), "\n".join(self.lines)
        for old, other in zip(part, new, strict=False):
            if len(old) > 1 and occurs_once(old, text) and other:
                text = text.replace(old, other)
                pairs.append((old, other))
        edits = [{"old_string": old, "new_string": other} for old, other in pairs]
        if pairs:
            given = {"file_path": FILE, "edits": edits}
            self.calls.append(ran(self.version, "MultiEdit", "done", given))
            self.lines = text.split("\n")

    def patch(self, first: int, part: list[str], new: list[str]) -> None:
        before = [*self.lines[max(first - 1, 0) : first], *part]
        text, old = "\n".join(["", *self.lines, ""]), "\n".join(["", *before, ""])
        if occurs_once(old, text) and part:
            super().patch(first, part, new)

    def diff(self, first: int, part: list[str], new: list[str]) -> None:
        body = [*(f"-{line}" for line in part), *(f"+{line}" for line in new)]
        head = [f"--- a/{FILE}", f"+++ b/{FILE}", f"@@ -{first + 1} +{first + 1} @@"]
        text = "\n".join(["git apply <<'EOF'", *head, *body, "EOF"])
        if part and occurs_once("\n".join(part), "\n".join(self.lines)):
            self.calls.append(ran(self.version, "bash", "", {"command": text}))
            self.lines[first : first + len(part)] = new

    def format(self, _: int, __: list[str], ___: list[str]) -> None:
        command = f"sed -i 's/compute/compile/' {FILE} && make"
        self.calls.append(ran(self.version, "bash", "", {"command": command}))
        self.lines = [line.replace("compute", "compile") for line in self.lines]


ACTIONS = (
    *("read", "read_raw", "read_by_shell", "write", "write_by_shell", "add_by_shell", "edit"),
    *(
        "edit_ends",
        "edit_within",
        "remove_end",
        "insert",
        "rename",
        "patch",
        "diff",
        "replace_all",
        "multi_edit",
    ),
    "format",
)
STEPS = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.integers(0, 30), st.integers(0, 12), st.integers(0, 12)),
    max_size=12,
)


def is_true(copy: Copy, lines: Sequence[str]) -> bool:
    """Whether the copy shows only what is in the file."""
    whole = "\n".join(["", *map(str.rstrip, lines), ""])
    for stretch in copy.stretches:
        texts = [row.text.rstrip() for row in stretch.rows]
        if stretch.line:
            start = stretch.line - 1
            if [line.rstrip() for line in lines[start : start + len(texts)]] != texts:
                return False
        elif "\n".join(["", *texts, ""]) not in whole:
            return False
    return True


def entries_of(calls: Sequence[Sequence[Entry]]) -> list[Entry]:
    return [entry for call in calls for entry in call]


@given(STEPS)
def test_a_copy_is_as_the_file_whatever_is_read_and_changed(
    steps: list[tuple[str, int, int, int]],
) -> None:
    disk = RealDisk(RealDisk([]).fresh(40))
    for step in steps:
        disk.do(*step)
    copies = followed((), runs_of(entries_of(disk.calls)).values(), 0)
    assert all(is_true(copy, disk.lines) for copy in copies.values())


def shown(regions: Sequence[Region]) -> Mapping[str, Copy]:
    """The regions of a page as copies."""
    return followed(regions, (), 0)


@given(st.lists(st.tuples(STEPS, st.integers(0, 400)), min_size=1, max_size=4))
def test_a_page_is_as_the_file_though_it_knows_only_the_page_before(
    pages: list[tuple[list[tuple[str, int, int, int]], int]],
) -> None:
    disk = RealDisk(RealDisk([]).fresh(40))
    regions, since, cut = tuple[Region, ...](), 0, 0
    for steps, tokens in pages:
        for step in steps:
            disk.do(*step)
        copies = followed(regions, runs_of(entries_of(disk.calls[cut:])).values(), since)
        assert all(is_true(copy, disk.lines) for copy in copies.values())
        cut = max(cut, len(disk.calls) - 3)
        visible: VisibleLines = dict.fromkeys(
            entry.version for entry in entries_of(disk.calls[cut:])
        )
        regions = regions_of(copies, tokens, lambda text: len(text) // 4, visible)
        since = disk.version
        assert all(is_true(copy, disk.lines) for copy in shown(regions).values())


def numbered(copies: Mapping[str, Copy], file: str = FILE) -> dict[int, str]:
    return {
        number: row.text
        for stretch in copies[file].stretches
        if stretch.line
        for number, row in enumerate(stretch.rows, stretch.line)
    }


READ = ran(1, "Read", viewed(code(*range(40))), {"file_path": FILE})


def test_an_edit_moves_the_numbers_behind_it() -> None:
    later = ran(3, "Read", viewed(code(60, 61), 61), {"file_path": FILE, "offset": 61})
    known = numbered(
        followed((), runs_of([*READ, *later, *edit(5, code(7), code(7, 70, 71))]).values(), 0)
    )
    assert [known[n] for n in (7, 8, 9, 10, 11)] == code(6, 7, 70, 71, 8)
    assert [known[n] for n in (63, 64)] == code(60, 61)


def test_an_edit_whose_place_is_not_known_leaves_no_number_that_may_be_wrong() -> None:
    copies = followed((), runs_of([*READ, *edit(3, code(50), code(51, 52))]).values(), 0)
    assert numbered(copies) == {}
    assert [len(stretch.rows) for stretch in copies[FILE].stretches] == [40]


def test_an_edit_of_the_first_line_that_is_known_leaves_it_where_it_was() -> None:
    read = ran(1, "Read", viewed(code(11, 12, 13), 11), {"file_path": FILE, "offset": 11})
    known = numbered(followed((), runs_of([*read, *edit(3, code(11), code(110, 11))]).values(), 0))
    assert known == dict(enumerate(code(110, 11, 12, 13), 11))


def test_the_last_line_that_is_known_is_changed_with_its_line_end() -> None:
    read = ran(1, "Read", viewed(code(1, 2, 3)), {"file_path": FILE})
    ends = edit(3, [*code(3), ""], [*code(30, 31), ""])
    copies = followed((), runs_of([*read, *ends]).values(), 0)
    assert numbered(copies) == dict(enumerate(code(1, 2, 30, 31), 1))


def test_of_a_change_whose_place_is_not_known_the_whole_lines_are_known() -> None:
    """The first and the last line of the new text may be parts of lines."""
    copies = followed((), runs_of(edit(1, code(1), code(11, 12, 13, 14))).values(), 0)
    (stretch,) = copies[FILE].stretches
    assert [row.text for row in stretch.rows] == code(12, 13)
    assert not stretch.line


def test_of_a_line_whose_end_is_removed_nothing_old_is_known() -> None:
    """Some tools remove the line end, too, so the next line is not known either, and the others have no number."""
    (line,) = code(3)
    copies = followed((), runs_of([*READ, *edit(3, [line[20:]], [])]).values(), 0)
    assert numbered(copies) == dict(enumerate(code(0, 1, 2), 1))
    (loose,) = (stretch for stretch in copies[FILE].stretches if not stretch.line)
    assert [row.text for row in loose.rows] == code(*range(5, 40))


def test_lines_without_a_number_get_none_when_the_first_of_them_are_forgotten() -> None:
    added = ran(
        1, "bash", "", {"command": "\n".join([f"cat >> {FILE} <<'EOF'", *code(1, 2, 3), "EOF"])}
    )
    over = edit(3, code(0, 1), code(10, 11))
    (stretch,) = followed((), runs_of([*added, *over]).values(), 0)[FILE].stretches
    assert (stretch.line, [row.text for row in stretch.rows]) == (0, code(2, 3))


def test_a_file_to_which_a_write_adds_keeps_what_is_known_of_it() -> None:
    more = {"path": FILE, "content": "\n".join(code(50, 51)), "mode": "append"}
    copies = followed((), runs_of([*READ, *ran(3, "WriteFile", "ok", more)]).values(), 0)
    assert len(numbered(copies)) == 40
    assert [row.text for row in copies[FILE].stretches[-1].rows] == code(50, 51)


def test_a_write_that_does_not_say_what_it_changes_makes_the_files_that_it_names_doubtful() -> None:
    given = {"replacements": [{"filePath": FILE, "code": "y = 1"}]}
    copies = followed((), runs_of([*READ, *ran(3, "edit", "ok", given)]).values(), 0)
    assert (len(numbered(copies)), copies[FILE].doubt) == (40, 4)
    copies = followed((), runs_of([*READ, *ran(3, "edit", "no", given, is_error=True)]).values(), 0)
    assert copies[FILE].doubt == 0


PATCH = "\n".join(
    ["*** Begin Patch", f"*** Update File: {FILE}", "@@", f"-{code(7)[0]}", "+a", "*** End Patch"]
)
OLD_TEXT = {"file_path": FILE, "old_string": code(7)[0], "new_string": "a"}


@for_each(
    ("tool", "said", "given", "doubt"),
    [
        ("apply_patch", "apply_patch verification failed: Failed to find", {"input": PATCH}, 0),
        ("shell", "Process exited with code 1\nOutput:\nFailed to find", {"command": f"apply_patch <<'E'\n{PATCH}\nE"}, 4),
        ("Edit", "<tool_use_error>File has been modified since read, either by the user", OLD_TEXT, 4),
        ("edit", f"Error: File {FILE} has been modified since it was last read.", OLD_TEXT, 4),
    ],
    ids=["Codex", "patch in a shell", "Claude Code", "opencode"],
)  # fmt: skip
def test_a_change_that_failed_is_in_no_copy_and_one_that_was_refused_says_that_the_file_is_another(
    tool: str, said: str, given: dict[str, Any], doubt: int
) -> None:
    copies = followed((), runs_of([*READ, *ran(3, tool, said, given)]).values(), 0)
    assert numbered(copies) == dict(enumerate(code(*range(40)), 1))
    assert copies[FILE].doubt == doubt


@for_each(
    "command",
    [
        f"sed -i 's/a/b/' {FILE}",
        f"sed -i '' 's|a;|b|' {FILE}",
        f"git -C /srv checkout -- {FILE}",
        f"cd x && mv {FILE} y.py",
        f"python3 - <<'EOF'\nfrom pathlib import Path\nPath('{FILE}').write_text('')\nEOF",
        f"make > {FILE}",
        "rm -rf ./src/ && make",
        "rm -f 'src'/*.py src/*.py",
        "git checkout -- src",
        f"cp /tmp/other.py {FILE}",
        "git mv lib/cart.py src/",
        f"cat > fix.py <<'EOF'\nopen('{FILE}', 'w').write('')\nEOF\npython fix.py",
        f'node -e \'fs.writeFileSync("{FILE}", "")\'',
        f"node -e 'fs.writeFileSync(`${{root}}/{FILE}`, \"\")'",
    ],
    ids=[
        *("sed", "quoted", "git", "mv", "python", "redirection", "folder", "pattern", "git folder"),
        *("copied over", "moved into", "a program that is written and run", "argument", "variable"),
    ],
)
def test_a_file_that_a_command_changes_is_forgotten(command: str) -> None:
    copies = followed((), runs_of([*READ, *ran(3, "bash", "", {"command": command})]).values(), 0)
    assert copies[FILE].stretches == []


@for_each(
    "command",
    ["ruff format", "npx prettier --write .", "git stash", "git rebase main", f"black {FILE}"],
    ids=["ruff", "prettier", "stash", "rebase", "black"],
)
def test_a_file_that_a_command_may_change_is_doubtful_until_it_is_seen_again(command: str) -> None:
    log = [*READ, *ran(3, "bash", "", {"command": command})]
    (region, *_) = regions_of(followed((), runs_of(log).values(), 0))
    assert region.doubt == 4
    again = [*log, *ran(5, "Read", viewed(code(*range(40))), {"file_path": FILE})]
    assert not any(r.doubt for r in regions_of(followed((), runs_of(again).values(), 0)))


@for_each(
    "command",
    [
        f"pytest {FILE}",
        f"git diff {FILE}",
        "git checkout -b new",
        f"grep -c x {FILE}",
        f"wc {FILE}",
        "sed -i 's/a/b/' other.py",
        "git checkout -- other.py",
        "git log $(git merge-base main HEAD)..HEAD",
        "gh api x --jq '.[] | .patch' 2>&1",
        "gh pr create --body '- [x] `black .` was run'",
        "git fetch origin && gh pr list",
        "cd src && python3 - <<'EOF'\nopen('other.txt', 'w').write('')\nEOF",
        "cargo fmt --all",
        f"sed -i '' 's|x|{FILE}|' other.py",
        f"cp {FILE} other.py",
        f"cp {FILE} src/lib/",
        f"git rm --cached {FILE}",
        "rm src/cart.py.bak cart src/car",
        f'python {FILE} && node -e \'fs.writeFileSync("other.txt", "")\'',
        'rm -rf "$TMP" $(mktemp)',
    ],
    ids=[
        *(
            "test",
            "diff",
            "branch",
            "grep",
            "wc",
            "other",
            "git",
            "base",
            "jq",
            "said",
            "fetch",
            "cd",
        ),
        *("other language", "text", "source", "beside", "index", "beginning"),
        *("other program", "unknown"),
    ],
)
def test_a_command_that_does_not_change_a_file_leaves_a_copy_as_it_is(command: str) -> None:
    log = [*READ, *ran(3, "bash", "1", {"command": command})]
    copies = followed((), runs_of(log).values(), 0)
    assert (len(numbered(copies)), copies[FILE].doubt) == (40, 0)


def test_a_relative_path_begins_where_the_command_runs() -> None:
    log = ran(1, "Read", viewed(code(1)), {"file_path": f"/work/{FILE}"})
    log += ran(3, "bash", "", {"command": "cd /elsewhere && rm -r src"})
    assert numbered(followed((), runs_of(log).values(), 0), f"/work/{FILE}")
    log += ran(5, "shell", "", {"command": "rm -r src", "workdir": "/work"})
    assert not numbered(followed((), runs_of(log).values(), 0), f"/work/{FILE}")


def test_where_a_relative_path_may_begin_in_several_folders_all_of_these_are_doubtful() -> None:
    log = [*READ, *ran(3, "Read", viewed(code(1)), {"file_path": "lib/src/a.py"})]
    copies = followed(
        (), runs_of([*log, *ran(5, "bash", "", {"command": "rm -r src"})]).values(), 0
    )
    assert {name: (len(copy.stretches), copy.doubt) for name, copy in copies.items()} == {
        FILE: (1, 6),
        "lib/src/a.py": (1, 6),
    }


def test_a_page_that_is_fetched_for_a_file_leaves_its_copy_as_it_is() -> None:
    log = [
        *READ,
        *ran(3, "WebFetch", "ok", {"url": "https://x.example", "prompt": f"As in {FILE}?"}),
    ]
    copies = followed((), runs_of(log).values(), 0)
    assert (len(numbered(copies)), copies[FILE].doubt) == (40, 0)


def test_of_a_file_that_something_else_changed_only_the_view_that_shows_it_is_known() -> None:
    changed = [*code(0), "a new line that nobody has written", *code(*range(1, 9))]
    view = ran(3, "Read", viewed(changed), {"file_path": FILE})
    copies = followed((), runs_of([*READ, *view]).values(), 0)
    assert [row.text for each in copies[FILE].stretches for row in each.rows] == changed


def test_when_a_change_is_undone_from_outside_those_of_other_files_are_doubtful_too() -> None:
    log = [
        *READ,
        *ran(5, "Write", "ok", {"file_path": "b.py", "content": "b"}),
        *edit(7, code(7), code(99)),
    ]
    undone = ran(9, "Read", viewed(code(7), 8), {"file_path": FILE, "offset": 8})
    copies = followed((), runs_of([*log, *undone]).values(), 0)
    assert [row.text for each in copies[FILE].stretches for row in each.rows] == code(7)
    assert copies["b.py"].doubt == 10


def test_what_is_hidden_is_in_no_copy() -> None:
    call, result = READ
    hidden = replace(result, original=result.block)
    assert not followed((), runs_of([call, hidden]).values(), 0)
    change, done = edit(3, code(7), code(99))
    hidden = replace(change, original=change.block)
    assert followed((), runs_of([*READ, hidden, done]).values(), 0)[FILE].stretches == []


def test_a_relative_path_is_the_known_file_that_ends_like_it() -> None:
    log = ran(1, "Read", viewed(code(1, 2)), {"file_path": f"/work/{FILE}"})
    log += ran(3, "bash", "\n".join(code(3)), {"command": f"sed -n 3p {FILE}"})
    assert numbered(followed((), runs_of(log).values(), 0), f"/work/{FILE}") == dict(
        enumerate(code(1, 2, 3), 1)
    )


def test_a_bare_name_is_the_file_in_the_folder_that_the_agent_works_in() -> None:
    """A patch names `cart.py`, a command ran in `/work`: what the command showed of the file is changed by the patch."""
    show = {"cmd": "sed -n 1,3p cart.py", "workdir": "/work"}
    log = ran(1, "exec_command", "\n".join(code(1, 2, 3)), show)
    hunk = "\n".join([f" {code(1)[0]}", f"-{code(2)[0]}", f"+{code(20)[0]}", f" {code(3)[0]}"])
    patch = f"*** Begin Patch\n*** Update File: cart.py\n@@\n{hunk}\n*** End Patch"
    log += ran(3, "apply_patch", "Done", {"input": patch})
    copies = followed((), runs_of(log).values(), 0)
    assert [*copies] == ["/work/cart.py"]
    assert numbered(copies, "/work/cart.py") == dict(enumerate(code(1, 20, 3), 1))


def test_a_relative_folder_of_one_call_is_not_where_the_others_run() -> None:
    """As Gemini CLI has it for a command: relative to the folder of the work, as are the names of files."""
    log = ran(1, "run_shell_command", "", {"command": "ls", "dir_path": "src"})
    log += ran(3, "write_file", "ok", {"file_path": FILE, "content": "a"})
    assert [*followed((), runs_of(log).values(), 0)] == [FILE]


@for_each(
    ("tool", "given"),
    [
        ("Write", {"file_path": FILE, "content": "a\nb\n"}),
        ("create", {"path": FILE, "file_text": "a\nb"}),
        ("write", {"filePath": FILE, "content": "a\nb\n"}),
        ("apply_patch", {"input": f"*** Begin Patch\n*** Add File: {FILE}\n+a\n+b\n*** End Patch"}),
        ("apply_patch", {"patchText": f"*** Begin Patch\n*** Add File: {FILE}\n+a\n+b\n*** End Patch"}),
        ("exec_command", {"cmd": f"cat > {FILE} <<'EOF'\na\nb\nEOF"}),
    ],
)  # fmt: skip
def test_a_file_that_was_written_is_known_as_a_whole(tool: str, given: dict[str, Any]) -> None:
    assert numbered(followed((), runs_of(ran(1, tool, "done", given)).values(), 0)) == {
        1: "a",
        2: "b",
    }


def test_a_file_whose_text_the_shell_makes_is_not_known() -> None:
    command = f"cat > {FILE} <<EOF\na\n$b\nEOF"
    assert (
        followed((), runs_of(ran(1, "bash", "", {"command": command})).values(), 0)[FILE].stretches
        == []
    )


NAMES = ("old_string", "new_string", "path", "input", "content", "edits", "command", "patch")
ANYTHING = st.recursive(
    st.text() | st.integers() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
)


@given(st.dictionaries(st.sampled_from(NAMES), ANYTHING), st.text(alphabet="1 :→-\tab\n"))
def test_whatever_a_call_was_given_it_can_be_followed(given: dict[str, Any], said: str) -> None:
    log = [
        entry
        for version, name in enumerate(("Edit", "apply_patch", "Read", "Bash", "Grep", "tool"))
        for entry in ran(2 * version + 1, name, said, given)
    ]
    copies = followed((), runs_of(log).values(), 0)
    regions = regions_of(copies, 50)
    assert followed(regions, runs_of(log).values(), 5) is not None
