"""What an editor needs: every example names its schema, and the schemas of manifests explain every field."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path
    for suffix in ("yaml", "yml")
    for path in (ROOT / "examples").rglob(f"*.{suffix}")
    # Pipelines and overlays are no manifests.
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts) and path.name != "kustomization.yaml"
)
KINDS = ("client-quotas", "cluster", "repository")


def test_there_are_examples() -> None:
    assert DOCUMENTS


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_an_example_begins_with_the_schema_of_its_kind(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    modeline = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
    kinds = re.findall(r"^kind: (\w+)$", text, re.MULTILINE)
    assert modeline is not None
    schema = json.loads((path.parent / modeline[1]).read_text(encoding="utf-8"))
    assert {schema["properties"]["kind"]["const"]} == set(kinds)


NAMED = ("properties", "patternProperties", "$defs")
NO_SCHEMAS = ("const", "enum", "default", "examples", "required")


def schemas(schema: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Every schema within a schema: its place, itself, and whether it is that of a field."""
    if isinstance(schema, list):
        for number, item in enumerate(schema):
            yield from schemas(item, f"{place}/{number}")
    if not isinstance(schema, dict):
        return
    yield place, schema, place.rsplit("/", 2)[-2:-1] in (["properties"], ["patternProperties"])
    for word, inner in schema.items():
        if word in NAMED:
            for name, declared in inner.items():
                yield from schemas(declared, f"{place}/{word}/{name}")
        elif word not in NO_SCHEMAS:
            yield from schemas(inner, f"{place}/{word}")


def explained(declared: dict[str, Any], root: dict[str, Any]) -> bool:
    """True when an editor shows something: a description here, or where the reference leads."""
    if len(declared.get("description", "")) > 8:
        return True
    reference = declared.get("$ref", "")
    if not reference.startswith("#/$defs/"):
        return False
    return explained(root["$defs"][reference.removeprefix("#/$defs/")], root)


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_a_manifest_is_explained(kind: str) -> None:
    schema = json.loads((ROOT / "schemas" / f"{kind}.v1.schema.json").read_text(encoding="utf-8"))

    fields = [(place, declared) for place, declared, is_field in schemas(schema) if is_field]

    assert len(fields) > 5
    assert [place for place, declared in fields if not explained(declared, schema)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_mapping_of_a_manifest_refuses_what_it_does_not_know(kind: str) -> None:
    schema = json.loads((ROOT / "schemas" / f"{kind}.v1.schema.json").read_text(encoding="utf-8"))

    mappings = [(place, part) for place, part, _ in schemas(schema) if part.get("type") == "object"]

    assert mappings
    assert [place for place, part in mappings if "additionalProperties" not in part] == []
