"""The reference of ``reconciler.client``, from its docstrings and signatures, read as text: pages of the site.

One page has functions and results, the other the fields of values, and the errors.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import reconciler

_SOURCES: Final = Path(reconciler.__file__).parents[1]
PACKAGE: Final = "reconciler.client"
ERRORS: Final = "reconciler.errors"

_HEAD: Final = """\
# Python interface

The package `reconciler.client` comes with the base install and is typed (`py.typed`). Every example below is run by the tests, on
a real broker in place of `b1:9092`. Each begins with `from reconciler.client import ...`, which is left out here.
[Values and errors](values.md) has the fields of
plans, reports and answers. [From Python](../from-python.md) shows whole tasks.

"""
_VALUES_HEAD: Final = """\
# Values and errors

The values that the functions of [the Python interface](python.md) take and return. All are frozen.

"""
_ERRORS_HEAD: Final = """\
## Errors

Of `reconciler.errors`. A child is caught by the name of its parent, too.

"""
_CHAPTERS: Final = {
    "A live cluster": "reconciler.client.live",
    "Manifests and their cluster": "reconciler.client.manifest_cluster",
    "Results": "reconciler.client.outcomes",
    "Naming entities": "reconciler.client.naming",
}

_Definition = ast.ClassDef | ast.FunctionDef | ast.Assign | ast.AnnAssign


def python_page() -> str:
    """The page of functions and of what they return."""
    exported = _exported()
    parts = [_HEAD, _prose("\n\n".join(_docstring(_tree(PACKAGE)).split("\n\n")[:2]))]
    for title, module in _CHAPTERS.items():
        names = [name for name, home in exported.items() if home == module]
        parts.append(f"## {title}\n\n")
        parts += [_entry(name, _definitions(module)) for name in _in_order(names, exported)]
    return "".join(parts).rstrip() + "\n"


def values_page() -> str:
    """The page of the values, which are not defined in the package itself, and of the errors."""
    exported = {name: module for name, module in _exported().items() if module not in _CHAPTERS.values()}
    names = _in_order(list(exported), exported)
    entries = "".join(_entry(name, _definitions(exported[name])) for name in names)
    values = entries.replace("\n### ", "\n## ").replace("\n#### ", "\n### ").replace("### ", "## ", 1)
    return f"{_VALUES_HEAD}{values}{_ERRORS_HEAD}{''.join(_errors())}"


def _exported() -> dict[str, str]:
    """What the package exports, and the module where it is defined: imports below ``if TYPE_CHECKING:``."""
    blocks = [node for node in _tree(PACKAGE).body if isinstance(node, ast.If)]
    imported = _imported(ast.Module([node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)], []))
    return {name: _home(module, name) for name, module in imported.items()}


def _home(module: str, name: str) -> str:
    """The module that defines ``name``: a package only names it."""
    return _imported(_tree(module))[name] if _SOURCES.joinpath(*module.split(".")).is_dir() else module


def _imported(tree: ast.Module) -> dict[str, str]:
    """The module that each name comes from; a package has its imports below ``if TYPE_CHECKING:``."""
    nodes = [inner for node in tree.body for inner in (node.body if isinstance(node, ast.If) else [node])]
    return {alias.name: node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module for alias in node.names}


def _tree(module: str) -> ast.Module:
    path = _SOURCES.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def _in_order(names: list[str], exported: dict[str, str]) -> list[str]:
    """Of our own modules as they are written, of others by name; functions first, since with them one begins."""
    placed = {name: list(_definitions(exported[name])).index(name) for name in names}
    is_function = {name: isinstance(_definitions(exported[name])[name][0], ast.FunctionDef) for name in names}
    ours = all(exported[name].startswith(PACKAGE) for name in names)
    return sorted(names, key=lambda name: (not is_function[name], placed[name] if ours else 0, name.lower()))


def _definitions(module: str) -> dict[str, tuple[_Definition, str]]:
    return _documented(_tree(module).body)


def _documented(body: list[ast.stmt]) -> dict[str, tuple[_Definition, str]]:
    """Each definition with its docstring, which for a constant or a field is the string below it."""
    found: dict[str, tuple[_Definition, str]] = {}
    for node, following in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found[node.name] = (node, _docstring(node))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            found[ast.unparse(target)] = (node, _string(following))
    return found


def _docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> str:
    return ast.get_docstring(node) or ""


def _string(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value.value
    return ""


def _entry(name: str, definitions: dict[str, tuple[_Definition, str]]) -> str:
    node, text = definitions[name]
    if isinstance(node, ast.FunctionDef):
        return f"### {name}\n\n{_signature(name, node)}{_prose(text)}"
    if isinstance(node, ast.ClassDef):
        return f"### {name}\n\n{_prose(text)}{''.join(_members(name, node))}"
    return f"### {name}\n\n{_prose(text)}"


def _members(name: str, node: ast.ClassDef) -> Iterator[str]:
    """Fields in one list, then properties and methods."""
    members = {member: one for member, one in _documented(node.body).items() if not member.startswith("_")}
    fields = [_field(member, one, text) for member, (one, text) in members.items() if not isinstance(one, ast.FunctionDef)]
    properties = [
        f"- `{member}: {_returned(one)}`{_inline(text)}\n"
        for member, (one, text) in members.items()
        if isinstance(one, ast.FunctionDef) and _decorated(one, "property")
    ]
    if fields or properties:
        yield "".join(fields + properties) + "\n"
    for member, (one, text) in members.items():
        if isinstance(one, ast.FunctionDef) and not _decorated(one, "property"):
            yield f"#### {name}.{member}\n\n{_signature(member, one)}{_prose(text)}"


def _field(member: str, node: _Definition, text: str) -> str:
    if isinstance(node, ast.AnnAssign):
        return f"- `{member}: {ast.unparse(node.annotation)}`{_inline(text)}\n"
    value = ast.unparse(node.value) if isinstance(node, ast.Assign) else ""
    return f"- `{member} = {value}`{_inline(text)}\n"


def _decorated(node: ast.FunctionDef, by: str) -> bool:
    return any(ast.unparse(decorator) == by for decorator in node.decorator_list)


def _returned(node: ast.FunctionDef) -> str:
    return ast.unparse(node.returns) if node.returns else "None"


def _signature(name: str, node: ast.FunctionDef) -> str:
    given = node.args
    plain = [arg for arg in given.args if arg.arg not in {"self", "cls"}]
    defaults = [None] * (len(plain) - len(given.defaults)) + list(given.defaults)
    shown = [_parameter(arg, default) for arg, default in zip(plain, defaults, strict=True)]
    if given.kwonlyargs:
        shown.append("*")
        shown += [_parameter(arg, default) for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    line = f"{name}({', '.join(shown)}) -> {_returned(node)}"
    if len(line) > 100:
        line = f"{name}(\n" + "".join(f"    {one},\n" for one in shown) + f") -> {_returned(node)}"
    return f"```python\n{line}\n```\n\n"


def _parameter(arg: ast.arg, default: ast.expr | None) -> str:
    typed = f"{arg.arg}: {ast.unparse(arg.annotation)}" if arg.annotation else arg.arg
    return typed if default is None else f"{typed} = {ast.unparse(default)}"


def _inline(text: str) -> str:
    """A short docstring behind a field."""
    return f": {' '.join(_code(text).split())}" if text else ""


def _prose(text: str) -> str:
    """A docstring as Markdown: its paragraphs, and its examples in fences."""
    blocks = []
    for block in text.split("\n\n"):
        if block.startswith(">>>"):
            blocks.append(f"```pycon\n{block}\n```")
        elif block:
            blocks.append(_code(block))
    return "".join(f"{block}\n\n" for block in blocks)


def _code(text: str) -> str:
    return re.sub(r"``(.+?)``", r"`\1`", text)


def _errors() -> Iterator[str]:
    for name, (node, text) in _definitions(ERRORS).items():
        if isinstance(node, ast.ClassDef):
            parent = ast.unparse(node.bases[0])
            yield f"- `{name}`{'' if parent == 'Exception' else f' (`{parent}`)'}{_inline(text)}\n"
