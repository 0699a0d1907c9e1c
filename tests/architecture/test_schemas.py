"""Every JSON Schema we ship is one, says which, and is versioned in its name."""

import importlib.util
import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

ROOT = Path(__file__).parents[2]
SCHEMAS = sorted((ROOT / "schemas").glob("*.json"))


def test_there_are_schemas_and_nothing_else_beside_them():
    assert SCHEMAS
    assert {path.name for path in (ROOT / "schemas").iterdir()} == {path.name for path in SCHEMAS}


def test_the_schemas_of_documents_are_what_their_generator_writes():
    spec = importlib.util.spec_from_file_location("document_schemas", ROOT / "tools" / "document_schemas.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    written = tool.schemas()

    stale = [name for name, text in written.items() if (ROOT / "schemas" / name).read_text(encoding="utf-8") != text]
    assert stale == [], "run make format, or python tools/document_schemas.py"


def test_no_two_schemas_share_an_id():
    ids = [json.loads(path.read_text(encoding="utf-8"))["$id"] for path in SCHEMAS]

    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_a_schema_is_valid_draft_2020_12(path):
    schema = json.loads(path.read_text(encoding="utf-8"))

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_a_schema_says_what_it_is(path):
    schema = json.loads(path.read_text(encoding="utf-8"))

    assert re.fullmatch(r"[a-z-]+\.v[0-9]+\.schema\.json", path.name)
    name, version = path.name.split(".")[:2]
    assert schema["$id"].endswith(f"{name}:{version}")
    assert len(schema["title"]) > 3
    assert len(schema["description"]) > 10


def fields(node, pointer=""):
    """The definition of every field in a schema, with its JSON pointer."""
    if isinstance(node, dict):
        named = node.get("properties")
        if isinstance(named, dict):
            yield from ((f"{pointer}/properties/{name}", field) for name, field in named.items() if isinstance(field, dict))
        for name, part in node.items():
            yield from fields(part, f"{pointer}/{name}")
    elif isinstance(node, list):
        for index, part in enumerate(node):
            yield from fields(part, f"{pointer}/{index}")


def description(field, schema):
    """Its own, or that of the definition it refers to; another document's definition describes itself."""
    text = field.get("description")
    reference = field.get("$ref", "")
    if text or not reference:
        return text
    if not reference.startswith("#/"):
        return reference
    target = schema
    for step in reference.removeprefix("#/").split("/"):
        target = target[step]
    return description(target, schema)


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_every_field_has_a_description(path):
    schema = json.loads(path.read_text(encoding="utf-8"))

    assert [pointer for pointer, field in fields(schema) if not description(field, schema)] == []
