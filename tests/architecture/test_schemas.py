"""Every JSON Schema we ship is one, says which, and is versioned in its name."""

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.support.tools import load_script

ROOT = Path(__file__).parents[2]
SCHEMAS = sorted((ROOT / "schemas").glob("*.json"))


def test_the_schemas_of_documents_are_what_their_generator_writes():
    written = load_script("tools/document_schemas.py").schemas()

    stale = [name for name, text in written.items() if (ROOT / "schemas" / name).read_text(encoding="utf-8") != text]
    assert stale == [], "run make format, or python tools/document_schemas.py"


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_a_schema_is_valid_and_has_the_id_of_its_file_alone(path):
    schema = json.loads(path.read_text(encoding="utf-8"))

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)
    assert re.fullmatch(r"[a-z-]+\.v[0-9]+\.schema\.json", path.name)
    name, version = path.name.split(".")[:2]
    assert schema["$id"].endswith(f":{name}:{version}")
    assert len(schema["title"]) > 3
    assert len(schema["description"]) > 10


def parts(node, pointer=""):
    """Every mapping in a schema, with its JSON pointer."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    if isinstance(node, dict):
        yield pointer, node
    for name, inner in items:
        yield from parts(inner, f"{pointer}/{name}")


def fields(schema):
    """The definition of every field in a schema, with its JSON pointer."""
    return [
        (f"{pointer}/{word}/{name}", field)
        for pointer, part in parts(schema)
        for word in ("properties", "patternProperties")
        for name, field in (part.get(word) if isinstance(part.get(word), dict) else {}).items()
        if isinstance(field, dict)
    ]


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


@pytest.mark.parametrize("kind", ["client-quotas", "cluster", "repository"])
def test_every_mapping_of_a_manifest_refuses_what_it_does_not_know(kind):
    schema = json.loads((ROOT / "schemas" / f"{kind}.v1.schema.json").read_text(encoding="utf-8"))
    mappings = [(pointer, part) for pointer, part in parts(schema) if part.get("type") == "object"]

    assert mappings
    assert [pointer for pointer, part in mappings if "additionalProperties" not in part] == []
