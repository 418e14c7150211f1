"""A result in what a harness says and what the command printed."""

from hypothesis import given
from hypothesis import strategies as st

from render.summary._identifiers import is_output, parts_of
from tests._table import for_each

BEFORE = {
    "codex": "Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n",
    "codex, before": "Exit code: 0\nWall time: 0.1 seconds\nOutput:\n",
    "mini": "<returncode>0</returncode>\n<output>\n",
}
BEHIND = {
    "mini": "\n</output>",
    "openhands": "\n[Current working directory: /x]\n[Command finished with exit code 0]",
    "claude code": "\nShell cwd was reset to /x",
}


@for_each("harness", sorted({*BEFORE, *BEHIND}))
def test_what_a_harness_says_is_apart_from_the_output(harness: str) -> None:
    output = "one\ntwo: Output:\nthree"
    parts = list(parts_of(f"{BEFORE.get(harness, '')}{output}{BEHIND.get(harness, '')}"))
    assert [part for part in parts if is_output(part)] == [output]


@given(st.text("abc \n") | st.sampled_from([*BEFORE.values(), *BEHIND.values()]))
def test_nothing_of_a_result_is_lost(text: str) -> None:
    for whole in (text, f"{BEFORE['codex']}{text}", f"{text}{BEHIND['mini']}"):
        assert "".join("".join(parts_of(whole)).split()) == "".join(whole.split())
