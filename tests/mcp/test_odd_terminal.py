"""What whoever types a command sees of an odd server: a result or one error, and never a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import toolpost, write_config
from tests.mcp.support import Table, answering, odd
from tests.mcp.test_odd_answers import told

DONE = '{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "done"}]}}\n'
MALFORMED = told("notifications/message", level=7) + told("notifications/resources/updated", uri=[1])
TOOLS: list[Any] = [7, {"name": "bad"}, {"name": "echo", "inputSchema": {}}]


def ends(result: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": "ID", **result}).replace('"ID"', "ID") + "\n"


ODD: dict[str, tuple[Table, int, str]] = {
    "noise and malformed notifications": (
        answering(
            {
                "tools/list": ["noise\n" + MALFORMED + ends({"result": {"tools": TOOLS}})],
                "tools/call": [MALFORMED + DONE],
            }
        ),
        0,
        "done",
    ),
    "an answer that is none": (answering({"tools/call": [{"error": "no"}]}), 1, "malformed error"),
    "a server that dies": (
        answering({"tools/call": [{"result": None}], "initialize": [{"result": 7}]}),
        1,
        "malformed",
    ),
    "headers in place of lines": (odd("content_length"), 1, "Content-Length headers"),
    "a result that does not fit": (
        answering(
            {
                "tools/list": [
                    {
                        "result": {
                            "tools": [{"name": "echo", "inputSchema": {}, "outputSchema": {"type": "object"}}]
                        }
                    }
                ]
            }
        ),
        1,
        "structured_content is missing",
    ),
}


@pytest.mark.parametrize(("table", "status", "said"), ODD.values(), ids=ODD)
def test_a_call_ends_with_its_answer_or_with_one_error(
    table: Table, status: int, said: str, tmp_path: Path
) -> None:
    config = write_config(tmp_path, {"tooling": {"it": table}})
    ended = toolpost("call", "-c", config, "it", "echo")

    assert ended.status == status, ended
    assert said in (ended.err if status else ended.out)
    assert "Traceback" not in ended.err
    assert ended.said.count("error: ") == status
