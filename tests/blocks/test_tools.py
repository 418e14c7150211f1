"""What calls do, also those that a program makes."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from blocks import inner_call, tool_kind, tool_target, written_paths
from tests._table import for_each

PATCH = '*** Begin Patch\n*** Update File: a.py\n@@\n-x = "1"\n+x = `2`\n*** End Patch'


def called(program: str) -> tuple[str, Any]:
    return inner_call("exec", {"input": program})


@for_each(
    ("program", "call"),
    [
        (
            'const r = await tools.exec_command({cmd:"ls \\"a\\"","workdir":"/w", yield_time_ms: 10});\ntext(r.output);',
            ("exec_command", {"cmd": 'ls "a"', "workdir": "/w", "yield_time_ms": 10}),
        ),
        (f"const patch = {json.dumps(PATCH)};\ntext(await tools.apply_patch(patch));", ("apply_patch", {"input": PATCH})),
        ("text(await tools.apply_patch(`*** a\n\\`b\\` \\${c} it's`))", ("apply_patch", {"input": "*** a\n`b` ${c} it's"})),
        ("tools.web__run({search_query:[{q:'it\\'s \\x41'}], deep: true, at: null})", ("web__run", {"search_query": [{"q": "it's A"}], "deep": True, "at": None})),
        ('text("tools.other({})"); tools.wait({cell_id:"7"})', ("wait", {"cell_id": "7"})),
        (
            f'await tools.apply_patch({json.dumps(PATCH)}); text(await tools.exec_command({{cmd:"make"}}))',
            ("apply_patch", {"input": PATCH}),
        ),
    ],
)  # fmt: skip
def test_a_program_that_calls_one_tool_is_that_call(program: str, call: tuple[str, Any]) -> None:
    assert called(program) == call


@for_each(
    "program",
    [
        "const x = 1",
        'Promise.all([tools.exec_command({cmd:"a"}), tools.web__run({cmd:"b"})])',
        'Promise.all([tools.exec_command({cmd:"cd a"}), tools.exec_command({cmd:"b"})])',
        'const a = await tools.exec_command({cmd:"a"}); if (a.exit_code) await tools.exec_command({cmd:"b"})',
        "ids.map(id => tools.exec_command({cmd:`rm ${id}`}))",
        'tools.exec_command({cmd: "a" + b})',
        "tools.apply_patch(patch)",
        'tools.exec_command({cmd:"never ends',
        "tools.exec_command({cmd: command})",
        "",
    ],
)
def test_a_program_that_computes_what_it_calls_is_itself(program: str) -> None:
    assert called(program) == ("exec", {"input": program})
    assert tool_kind("exec", {"input": program}) == "other"


def test_a_program_that_runs_several_commands_is_one_where_all_of_them_run() -> None:
    program = """Promise.all([tools.exec_command({cmd:"a",workdir:"/w",yield_time_ms:9}),
        tools.exec_command({cmd:"b",workdir:"/w",yield_time_ms:10})])"""
    assert called(program) == ("exec_command", {"cmd": "a\nb", "workdir": "/w"})


def test_only_the_tool_that_takes_programs_has_them() -> None:
    arguments = {"input": 'tools.exec_command({cmd:"ls"})'}
    assert inner_call("other", arguments) == ("other", arguments)
    assert inner_call("exec", {"command": "ls"}) == ("exec", {"command": "ls"})


def test_a_program_does_what_its_call_does() -> None:
    patch = {"input": f"text(await tools.apply_patch({json.dumps(PATCH)}))"}
    assert tool_kind("exec", patch) == "write"
    assert written_paths("exec", patch) == ("a.py",)
    assert tool_target({"input": 'tools.exec_command({cmd:"go test ./..."})'}) == "go test ./..."
    assert tool_kind("exec", {"input": "tools.web__run({q:'x'})"}) == "web"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES), st.sampled_from(["r", "const"]), st.booleans())
def test_arguments_are_read_as_they_were_written(
    arguments: dict[str, Any],
    name: str,
    pretty: bool,  # noqa: FBT001 -- data
) -> None:
    written = json.dumps(arguments, indent=2 if pretty else None, ensure_ascii=pretty)
    assert called(f"const {name}_ = await tools.look({written}); text(r)") == ("look", arguments)


@given(st.text("tools.x(){}[]\"'`\\$:,a1 \n=const"))
def test_any_text_is_a_program_or_none(program: str) -> None:
    name, arguments = called(f"tools.x({program}")
    assert name == "exec" or isinstance(arguments, dict)
    assert name != "exec" or arguments == {"input": f"tools.x({program}"}
