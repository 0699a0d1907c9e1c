"""Plans and their renderings know no forge: what a forge needs of them is a format, and text is all that they give."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import reconciler

PACKAGE = Path(reconciler.__file__).parent
MODULES = sorted(path for name in ("planning", "render", "policy", "model", "apply") for path in (PACKAGE / name).rglob("*.py"))
FORGES = ("github", "gitlab", "gitea", "forgejo", "bitbucket")
SURROUNDINGS = {"os", "socket", "subprocess", "urllib.request", "http", "requests"}


def without_docstrings(tree: ast.Module) -> str:
    """The code of a module in lower case: docstrings may tell where a format is described."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = ...
    return ast.unparse(tree).lower()


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (one.name for one in names)
            case ast.ImportFrom(module=str(module)):
                yield module


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_plan_and_no_rendering_names_a_forge_or_asks_its_surroundings(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    outside = {name for name in imported(tree) if name in SURROUNDINGS or name == "reconciler.http"}
    assert outside == set()
    code = without_docstrings(tree)
    assert [forge for forge in FORGES if forge in code] == []
