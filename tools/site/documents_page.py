"""The page of all document kinds, from their JSON Schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

_HEAD: Final = """\
# Documents

What the tool reads (manifests) and what it prints with `--format json`. Each has a JSON Schema of draft 2020-12, which
`kafka-quotas schema KIND` prints. A printed document carries `format_version`: a change of its first number may break a reader,
of its second only adds.
In JSON an entity is an object of type to name, where `null` is the default entity: `{"user": "alice", "client-id": null}`.
"""
_DEEPEST: Final = 6


def documents_page(folder: Path) -> str:
    """Markdown, a chapter a schema."""
    return "\n".join((_HEAD, *(_chapter(path) for path in sorted(folder.glob("*.json")))))


def _chapter(path: Path) -> str:
    schema = json.loads(path.read_text(encoding="utf-8"))
    rows = list(_rows(schema, schema, ""))
    table = "| field | type | what |\n|---|---|---|\n" + "\n".join(rows) + "\n" if rows else ""
    return f"## {path.name.split('.')[0]}\n\n{_text(schema)}\n\nSchema: [{path.name}](schemas/{path.name})\n\n{table}"


def _rows(node: Mapping[str, Any], root: Mapping[str, Any], prefix: str, seen: tuple[str, ...] = ()) -> Iterator[str]:
    """One row a field, nested ones by their path; a recursive definition is followed once."""
    if prefix.count(".") > _DEEPEST:
        return
    node, seen = _followed(node, root, seen)
    if node is None:
        return
    for name, field in node.get("properties", {}).items():
        path = f"{prefix}.{name}" if prefix else name
        yield _row(path, field, root, required=name in node.get("required", ()))
        yield from _rows(field, root, path, seen)
    for part in ("oneOf", "anyOf", "allOf"):
        for option in node.get(part, ()):
            yield from _rows(option, root, prefix, seen)
    if isinstance(node.get("items"), Mapping):
        yield from _rows(node["items"], root, f"{prefix}[]", seen)
    if isinstance(node.get("additionalProperties"), Mapping):
        yield from _rows(node["additionalProperties"], root, f"{prefix}.*", seen)


def _followed(
    node: Mapping[str, Any], root: Mapping[str, Any], seen: tuple[str, ...]
) -> tuple[Mapping[str, Any] | None, tuple[str, ...]]:
    reference = node.get("$ref", "")
    if not reference.startswith("#/"):
        return node, seen
    if reference in seen:
        return None, seen
    target: Any = root
    for step in reference.removeprefix("#/").split("/"):
        target = target[step]
    return {**target, **{key: value for key, value in node.items() if key != "$ref"}}, (*seen, reference)


def _row(path: str, field: Mapping[str, Any], root: Mapping[str, Any], *, required: bool) -> str:
    followed = _followed(field, root, ())[0] or {}
    return f"| `{path}`{'' if required else ' (optional)'} | {_type(followed, root)} | {_text(followed)} |"


def _type(node: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    if "const" in node:
        return f"`{json.dumps(node['const'])}`"
    if "enum" in node:
        return " ".join(f"`{json.dumps(one)}`" for one in node["enum"])
    for part in ("oneOf", "anyOf"):
        if part in node:
            options = [_type(_followed(one, root, ())[0] or {}, root) for one in node[part]]
            return " or ".join(dict.fromkeys(option for option in options if option))
    kind = node.get("type", "")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _text(node: Mapping[str, Any]) -> str:
    text = " ".join(str(node.get("description", "")).split())
    for letter, spelled in {"\\": "\\\\", "|": "\\|", "<": "&lt;", ">": "&gt;", "*": "\\*", "_": "\\_"}.items():
        text = text.replace(letter, spelled)
    return text
