"""GitHub's published OpenAPI description against what a server on loopback was asked and answered.

npm brings the description to the cache when a test asks for it; the repository has no copy. Answers of the server have the fields
that are read, and few others. So required fields may be missing, and no field may be there that the description lacks.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
import tarfile
import tempfile
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from reconciler.files import cache_folder

VERSION = "23.0.2"
INTEGRITY = "sha512-pV8M7L9GY23AybNvTmo2nyjmpmnt6+2sRE/tqr0ZLQcPS4lnw7u5eZGNmwRNkBC3D7gZXbFx5AHzLUVRBXGDhg=="
_MEMBER = "package/generated/api.github.com.json"
_UNDESCRIBED = {401, 403, 404, 422}
"""Statuses that GitHub documents for every request, and describes for some."""


@functools.cache
def description() -> dict[str, Any]:
    """The description as the pinned archive has it."""
    file = cache_folder() / f"octokit-openapi-{VERSION}.json"
    if not file.exists():
        with tempfile.TemporaryDirectory() as folder:
            command = ["npm", "pack", f"@octokit/openapi@{VERSION}", "--json", "--silent"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=300)
            (packed,) = json.loads(done.stdout)
            assert packed["integrity"] == INTEGRITY, "npm gave another archive than the pinned one"
            with tarfile.open(Path(folder, packed["filename"])) as archive:
                member = archive.extractfile(_MEMBER)
                assert member is not None
                file.parent.mkdir(parents=True, exist_ok=True)
                new = file.with_suffix(".new")
                new.write_bytes(member.read())
                new.rename(file)
    return dict(json.loads(file.read_text("utf-8")))


def complaints(exchange: Mapping[str, Any]) -> Iterator[str]:
    """What the description has against a request and its answer. ``exchange``: method, path, body, status, document."""
    url = urllib.parse.urlsplit(exchange["path"])
    found = _operation(exchange["method"].lower(), url.path)
    if found is None:
        yield f"{exchange['method']} {url.path}: no such operation"
        return
    name, operation = found
    parameters = {each["name"]: each for each in map(_resolved, operation.get("parameters", ())) if each["in"] == "query"}
    for key, value in urllib.parse.parse_qsl(url.query):
        schema = parameters[key]["schema"] if key in parameters else None
        if schema is None:
            yield f"{name}: the query has {key}"
        else:
            yield from _errors(f"{name} {key}", int(value) if schema.get("type") == "integer" else value, schema, whole=True)
    if exchange["status"] < 400 and exchange["body"] is not None:
        yield from _errors(f"{name} body", exchange["body"], _content(operation["requestBody"]), whole=True)
    answers = operation["responses"]
    status = str(exchange["status"])
    if status not in answers:
        if exchange["status"] not in _UNDESCRIBED:
            yield f"{name}: the answer has status {status}"
    elif exchange["document"] is not None:
        schema = _content(_resolved(answers[status]))
        if schema is not None:
            yield from _errors(f"{name} answer {status}", exchange["document"], schema, whole=False)


def _operation(method: str, path: str) -> tuple[str, dict[str, Any]] | None:
    """The operation with the most literal path."""
    fitting = [
        (template.count("{"), template, operations[method])
        for template, operations in description()["paths"].items()
        if method in operations and re.fullmatch(re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(template)), path)
    ]
    if not fitting:
        return None
    _, template, operation = min(fitting, key=lambda each: each[:2])
    return f"{method.upper()} {template}", operation


def _resolved(node: Any) -> Any:
    while "$ref" in node:
        target: Any = description()
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


def _content(node: Any) -> Any:
    content = _resolved(node).get("content", {})
    return content.get("application/json", {}).get("schema")


def _errors(about: str, value: Any, schema: Any, *, whole: bool) -> Iterator[str]:
    validator = Draft202012Validator(_closed(schema, whole=whole, closed=True, within=()))
    for error in validator.iter_errors(value):
        yield f"{about} {error.json_path}: {error.message[:200]}"


def _closed(schema: Any, *, whole: bool, closed: bool, within: tuple[str, ...]) -> Any:
    """A schema of OpenAPI 3.0 as one of JSON Schema that takes no other fields, and (``whole``) asks for all required ones."""
    if "$ref" in schema:
        # A schema within itself is not looked into again.
        if schema["$ref"] in within:
            return {}
        return _closed(_resolved(schema), whole=whole, closed=closed, within=(*within, schema["$ref"]))
    inner = functools.partial(_closed, whole=whole, within=within)
    made = {key: value for key, value in schema.items() if key in ("type", "enum", "items", "minimum", "maximum", "minLength")}
    if "items" in made:
        made["items"] = inner(schema["items"], closed=True)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            # Of several fitting ones each is right here.
            kind = "anyOf" if several == "oneOf" else several
            made[kind] = [inner(each, closed=several != "allOf") for each in schema[several]]
    if "properties" in schema:
        made["properties"] = {name: inner(each, closed=True) for name, each in schema["properties"].items()}
        if closed and not ({"anyOf", "oneOf", "allOf"} & set(schema)) and schema.get("additionalProperties") is None:
            made["additionalProperties"] = False
    if whole and "required" in schema:
        made["required"] = schema["required"]
    return {"anyOf": [made, {"type": "null"}]} if schema.get("nullable") else made
