"""Writes the JSON Schemas: of documents from their classes, whose docstrings describe them, and of manifests from their shapes.

``make format`` runs it.

A test fails while a schema is not what this would write.
"""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import reconciler
from reconciler.documents import Document, Row, RowMember
from reconciler.formats import ManifestShape, Shape

FOLDER: Final = Path(__file__).parents[1] / "schemas"
_VERSION: Final = "Version of this format. The first number changes when readers may break, the second when members are added."


def schemas() -> dict[str, str]:
    """The text of each file of ``schemas``."""
    texts: dict[str, str] = {}
    for module in pkgutil.walk_packages(reconciler.__path__, "reconciler."):
        if not module.name.endswith("__main__"):
            for each in vars(importlib.import_module(module.name)).values():
                if isinstance(each, Document) and each.title:
                    texts[each.name] = _text(each)
                elif isinstance(each, ManifestShape):
                    name = _dashed(each.word)
                    definitions: dict[str, Any] = {}
                    schema = {**_about(name, each.schema()["title"]), **_shape(each.schema(), definitions)}
                    texts[name] = _json({**schema, "$defs": definitions})
    return {f"{name}.v1.schema.json": text for name, text in sorted(texts.items())}


def _shape(part: Any, definitions: dict[str, Any]) -> Any:
    """The same with the schemas of shapes in their place. A shape with a name is a definition."""
    if isinstance(part, Shape):
        if part.name is None:
            return _shape(part.schema(), definitions)
        if part.name not in definitions:
            definitions[part.name] = {}
            definitions[part.name] = _shape(part.schema(), definitions)
        return {"$ref": f"#/$defs/{part.name}"}
    if isinstance(part, Mapping):
        own = {key: _shape(value, definitions) for key, value in part.items() if key != "$of"}
        return {**_shape(part["$of"], definitions), **own} if "$of" in part else own
    return [_shape(each, definitions) for each in part] if isinstance(part, list | tuple) else part


def _dashed(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def _about(name: str, title: str) -> dict[str, str]:
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "$id": f"urn:kafka-quotas:schema:{name}:v1", "title": title}


def _json(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _text(document: Document[Any]) -> str:
    definitions: dict[str, Any] = {}
    row = document.codec.row(document.cls)
    version = {"type": "string", "pattern": r"^1\.[0-9]+$", "description": _VERSION}
    whole = _object(row, definitions)
    whole["required"].insert(0, "format_version")
    whole["properties"] = {"format_version": version, **whole["properties"]}
    return _json({**_about(document.name, document.title), **whole, "$defs": dict(sorted(definitions.items()))})


def _object(row: Row, definitions: dict[str, Any]) -> dict[str, Any]:
    properties, required = _members(row, definitions)
    return {
        "description": _plain(inspect.getdoc(row.cls) or ""),
        "type": "object",
        "required": required,
        "additionalProperties": False,
        "properties": properties,
    }


def _members(row: Row, definitions: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for member in row.members:
        if member.name:
            properties[member.name] = {**_resolved(member.kind.schema, definitions), "description": _described(row.cls, member)}
            required += [] if member.is_optional else [member.name]
        else:
            inner, needed = _members(member.kind.schema["row"], definitions)
            properties |= inner
            required += [] if member.is_optional else needed
    return properties, required


def _counted(members: type[enum.Enum], each: Mapping[str, Any]) -> dict[str, Any]:
    """An object of the members of an enum."""
    texts = _docstrings(members)
    properties = {
        member.value: {**each, "description": _plain(texts.get(name, ""))} for name, member in members.__members__.items()
    }
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _resolved(schema: Any, definitions: dict[str, Any]) -> Any:
    """The same with a reference for each class and each definition."""
    if isinstance(schema, list):
        return [_resolved(part, definitions) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    if (row := schema.get("row")) is not None:
        name = _dashed(row.cls.__name__)
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = _object(row, definitions)
        return {"$ref": f"#/$defs/{name}"}
    if (members := schema.get("members")) is not None:
        return _counted(members, _resolved(schema["each"], definitions))
    if (name := schema.get("define")) is not None:
        definitions[name] = {key: _resolved(value, definitions) for key, value in schema.items() if key != "define"}
        return {"$ref": f"#/$defs/{name}"}
    return {key: _resolved(value, definitions) for key, value in schema.items()}


def _described(cls: type, member: RowMember) -> str:
    """The docstring of the field, property or function that a member is of."""
    if inspect.isfunction(member.get):
        return _plain(inspect.getdoc(member.get) or "")
    texts = (_docstrings(each).get(member.attribute) for each in cls.__mro__ if each is not object)
    return _plain(next(filter(None, texts), ""))


@cache
def _docstrings(cls: type) -> dict[str, str]:
    """Those of the fields and properties of a class: the string below a field."""
    tree = ast.parse(Path(inspect.getfile(cls)).read_text(encoding="utf-8"))
    body = next(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == cls.__name__)
    return dict(_documented(body))


def _documented(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node, following in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.FunctionDef):
            yield node.name, ast.get_docstring(node) or ""
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            value = following.value if isinstance(following, ast.Expr) else None
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            yield ast.unparse(target), str(value.value) if isinstance(value, ast.Constant) else ""


def _plain(text: str) -> str:
    """A docstring for readers of JSON."""
    text = re.sub(r"(^|[.:?] )``None``", r"\1Null", " ".join(text.split()))
    for word, known in (("None", "null"), ("True", "true"), ("False", "false")):
        text = text.replace(f"``{word}``", known)
    return text.replace("``", "")


if __name__ == "__main__":
    for file, text in schemas().items():
        (FOLDER / file).write_text(text, encoding="utf-8")
