"""Text leaves the command in few places, all of which write to the streams that ``main`` put a sink in front of."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "reconciler"
PRINTERS = {"cli/diagnosis.py", "cli/main.py", "cli/output.py", "cli/writing.py"}
"""Modules that print lines for people; what they print is escaped there."""


def test_nothing_else_prints() -> None:
    printing = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "print(" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert printing <= PRINTERS


AROUND = re.compile(r"__std|\.\s*buffer|\bos\W+write\b")
"""Modules without any of it need not be parsed."""


def test_nothing_writes_around_the_sink() -> None:
    """``sys.__stdout__``, ``sys.stdout.buffer`` and file descriptors 1 and 2 are behind it."""
    around = []
    texts = {path: path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    for path in [path for path, text in texts.items() if AROUND.search(text)]:
        for node in ast.walk(ast.parse(texts[path])):
            if isinstance(node, ast.Attribute) and node.attr in {"__stdout__", "__stderr__"}:
                around.append((path.name, node.lineno))
            if isinstance(node, ast.Attribute) and node.attr == "buffer" and "stdin" not in ast.unparse(node):
                around.append((path.name, node.lineno))
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "os.write" and ast.unparse(node.args[0]) in {"1", "2"}:
                around.append((path.name, node.lineno))
    assert around == []
