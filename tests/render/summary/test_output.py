"""A result in what a harness says and what the command printed."""

from hypothesis import given
from hypothesis import strategies as st

from render.summary._calls import output_of
from tests._table import for_each

BEFORE = {
    "codex": "Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n",
    "codex, before": "Exit code: 0\nWall time: 0.1 seconds\nOutput:\n",
    "codex in 2025": "failed in sandbox None with execution error: denied, exit code: 1, stdout: ",
    "mini": "<returncode>0</returncode>\n<output>\n",
    "claude code": "<retrieval_status>success</retrieval_status>\n\n<task_id>b1</task_id>\n\n<exit_code>0</exit_code>\n\n<output>\n",
    "gemini": "Command: cat > F <<EOF\nx\nEOF\nDirectory: (root)\nOutput: ",
}
BEHIND = {
    "mini": "\n</output>",
    "openhands": "\n[Current working directory: /x]\n[Command finished with exit code 0]",
    "claude code": "\n</output>",
    "claude code, in a folder": "\nShell cwd was reset to /x",
    "copilot": "\n<shellId: 35 completed with exit code 0>",
    "gemini": "\nError: (none)\nExit Code: 0\nSignal: 0\nBackground PIDs: (none)\nProcess Group PGID: 7",
    "opencode": "\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>",
}


@for_each("harness", sorted({*BEFORE, *BEHIND}))
def test_what_a_harness_says_is_apart_from_the_output(harness: str) -> None:
    output = "one\ntwo: Output:\nError: three"
    before, behind = BEFORE.get(harness, ""), BEHIND.get(harness, "")
    whole = f"{before}{output}{behind}"
    start, end = output_of(whole)
    assert whole[start:end] == output


@given(st.text("abc \n") | st.sampled_from([*BEFORE.values(), *BEHIND.values()]))
def test_the_output_is_a_part_of_the_result(text: str) -> None:
    for whole in (text, f"{BEFORE['codex']}{text}", f"{text}{BEHIND['mini']}"):
        start, end = output_of(whole)
        assert 0 <= start <= end <= len(whole)
