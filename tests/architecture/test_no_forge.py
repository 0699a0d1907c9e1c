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


def named(tree: ast.Module) -> Iterator[str]:
    """Everything a module names or says but its docstrings: those may tell where a format is described."""
    documented = [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef))]
    docstrings = {id(node.body[0].value) for node in documented if isinstance(node.body[0], ast.Expr)}
    loose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.keyword(arg=str(name)) | ast.alias(name=name):
                yield name
            case ast.Constant(value=str(text)) if id(node) not in docstrings | loose:
                yield text


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
    assert [name for name in named(tree) if any(forge in name.lower() for forge in FORGES)] == []
    outside = {name for name in imported(tree) if name in SURROUNDINGS or name == "reconciler.http"}
    assert outside == set()


def test_a_module_that_named_a_forge_would_be_found() -> None:
    tree = ast.parse('"""GitHub."""\nimport os\nURL = "https://api.github.com"\ndef gitlab_note():\n    """Words."""\n')
    assert [name for name in named(tree) if any(forge in name.lower() for forge in FORGES)] == [
        "gitlab_note",
        "https://api.github.com",
    ]
    assert list(imported(tree)) == ["os"]
