"""The pages of all document kinds, from their JSON Schemas: a list of them, and one page for each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

_HEAD: Final = """\
# Documents

Manifests are what you write. The other documents are what a command prints with `--format json`, or reads.

```sh
kafka-quotas tool schema client-quotas
```

prints the JSON Schema (draft 2020-12) of one of them. A printed document has a `format_version`. A change of its first number may
break a reader. A change of its second number only adds optional fields.

In JSON an entity is an object of type to name, where `null` is the default entity: `{"user": "alice", "client-id": null}`.
"""
_KINDS: Final = {
    "client-quotas": "ClientQuotas",
    "cluster": "Cluster",
    "findings-baseline": "FindingsBaseline",
    "repository": "Repository",
    "traffic-mapping": "TrafficMapping",
}
"""Documents that users write, with their names in YAML."""
_DEEPEST: Final = 6
_OTHER_DOCUMENT: Final = re.compile(r"urn:kafka-quotas:schema:([\w-]+):v(\d+)")


def documents_pages(folder: Path) -> dict[str, str]:
    """Markdown by path: the list, and a page for each schema. The newest version of a document has the short name."""
    paths = sorted(folder.glob("*.json"))
    newest = {_name(path): path for path in sorted(paths, key=_version)}
    pages = {path: _name(path) if newest[_name(path)] == path else f"{_name(path)}-v{_version(path)}" for path in paths}
    schemas = {path: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    parts = [_HEAD]
    for title, written in (("## Manifests", True), ("## Printed documents", False)):
        parts.append(f"{title}\n")
        parts += [
            f"[{_title(path, page)}](documents/{page}.md)\n: {_text(schemas[path])}\n"
            for path, page in pages.items()
            if (_name(path) in _KINDS) is written
        ]
    parts.append(_toctree(f"documents/{page}" for page in pages.values()))
    return {
        "documents.md": "\n".join(parts),
        **{f"documents/{page}.md": _page(path, page, schemas[path]) for path, page in pages.items()},
    }


def _name(path: Path) -> str:
    return path.name.split(".")[0]


def _version(path: Path) -> int:
    return int(path.name.split(".")[1].removeprefix("v"))


def _title(path: Path, page: str) -> str:
    name = _name(path)
    title = f"{_KINDS[name]} manifest" if name in _KINDS else f"{name} document"
    return title if page == name else f"{title}, version {_version(path)}"


def _toctree(pages: Iterator[str]) -> str:
    return "```{toctree}\n:hidden:\n" + "\n".join(pages) + "\n```\n"


def _page(path: Path, page: str, schema: Mapping[str, Any]) -> str:
    kind = _KINDS.get(_name(path))
    use = f"`kind: {kind}` in YAML." if kind else f"`format_version`: {_version(path)}.x."
    if page != _name(path):
        use += f" An earlier version, which is not printed any more: [{_name(path)}]({_name(path)}.md) is the current one."
    fields = "\n".join(_fields(schema, schema, ""))
    return (
        f"# {_title(path, page)}\n\n{_text(schema)}\n\n{use}\n\nJSON Schema: [{path.name}](../schemas/{path.name})\n\n"
        f"## Fields\n\nA dot leads into an object, `[]` into each item of an array, `.*` into each value of a map.\n\n{fields}\n"
    )


def _fields(node: Mapping[str, Any], root: Mapping[str, Any], prefix: str, seen: tuple[str, ...] = ()) -> Iterator[str]:
    """One entry for each field, nested ones by their path. A recursive definition is followed once."""
    if prefix.count(".") > _DEEPEST:
        return
    followed, seen = _followed(node, root, seen)
    if followed is None:
        return
    for name, field in followed.get("properties", {}).items():
        path = f"{prefix}.{name}" if prefix else name
        yield _entry(path, field, root, required=name in followed.get("required", ()))
        yield from _fields(field, root, path, seen)
    for part in ("oneOf", "anyOf", "allOf"):
        for option in followed.get(part, ()):
            yield from _fields(option, root, prefix, seen)
    if isinstance(followed.get("items"), Mapping):
        yield from _fields(followed["items"], root, f"{prefix}[]", seen)
    if isinstance(followed.get("additionalProperties"), Mapping):
        yield from _fields(followed["additionalProperties"], root, f"{prefix}.*", seen)


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


def _entry(path: str, field: Mapping[str, Any], root: Mapping[str, Any], *, required: bool) -> str:
    followed = _followed(field, root, ())[0] or {}
    kind = ", ".join(part for part in (_type(followed, root), "" if required else "optional") if part)
    other = _OTHER_DOCUMENT.match(followed.get("$ref", ""))
    text = _text(followed) or (f"As in [{other[1]}]({other[1]}.md)." if other else "")
    return f"`{path}`\n: {f'*{kind}*. ' if kind else ''}{text}\n"


def _type(node: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    if "const" in node:
        return f"`{json.dumps(node['const'])}`"
    if "enum" in node:
        return " or ".join(f"`{json.dumps(one)}`" for one in node["enum"])
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
