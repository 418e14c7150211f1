"""The importer of `docs/how-to/own-importer.md` reads what the page says."""

import json
from pathlib import Path
from runpy import run_path
from typing import Any

from blocks import ToolCall, ToolResult, UserPrompt, text_of
from persistence.sessions._source import open_source

PAGE = Path(__file__).parents[3] / "docs/how-to/own-importer.md"
LINES: list[dict[str, Any]] = [
    {"chatter": "m", "role": "user", "text": "go", "at": "2026-01-01T00:00:01Z"},
    {"chatter": "m", "role": "model", "id": "r1", "text": "I look.", "at": "2026-01-01T00:00:02Z",
     "calls": [{"id": "c1", "name": "read_file", "input": {"path": "a.py"}}]},
    {"role": "result", "id": "c1", "text": "import os", "at": "2026-01-01T00:00:05Z"},
    {"chatter": 7, "role": "model", "text": ["Done."], "calls": "none", "at": "later"},
]  # fmt: skip


def test_the_importer_of_the_page_reads_a_log(tmp_path: Path) -> None:
    code = PAGE.read_text(encoding="utf-8").split("```py\n", 1)[1].split("```", 1)[0]
    (tmp_path / "_chatter.py").write_text(code, encoding="utf-8")
    module = run_path(str(tmp_path / "_chatter.py"))
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join(map(json.dumps, LINES)), encoding="utf-8")
    source = open_source(str(path))
    assert module["CHATTER"].looks(source)
    session = module["CHATTER"].read(source)
    blocks = [block for item in session.items for block in item.blocks]
    assert [text_of(b) for b in blocks if isinstance(b, UserPrompt)] == ["go"]
    assert [b.input for b in blocks if isinstance(b, ToolCall)] == [{"path": "a.py"}]
    assert [text_of(b) for b in blocks if isinstance(b, ToolResult)] == ["import os"]
    assert (session.format, session.model, len(session.calls)) == ("chatter", "m", 1)
