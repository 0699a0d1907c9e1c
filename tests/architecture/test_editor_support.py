"""What an editor needs: every example names its schema, and the schemas of manifests explain every field."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(path for suffix in ("yaml", "yml") for path in (ROOT / "examples").rglob(f"*.{suffix}"))
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


def properties(schema: Any, root: dict[str, Any], place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every property that is declared anywhere in a schema, with where it is."""
    if isinstance(schema, list):
        for number, item in enumerate(schema):
            yield from properties(item, root, f"{place}/{number}")
    if not isinstance(schema, dict):
        return
    for word, inner in schema.items():
        if word in ("properties", "patternProperties") and isinstance(inner, dict):
            for name, declared in inner.items():
                yield f"{place}/{name}", declared
        if word not in ("const", "enum", "default", "examples", "required"):
            yield from properties(inner, root, f"{place}/{word}")


def explained(declared: dict[str, Any], root: dict[str, Any]) -> bool:
    """True when an editor shows something: a description here, or where the reference leads."""
    if len(declared.get("description", "")) > 10:
        return True
    reference = declared.get("$ref", "")
    if not reference.startswith("#/$defs/"):
        return False
    return explained(root["$defs"][reference.removeprefix("#/$defs/")], root)


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_a_manifest_is_explained(kind: str) -> None:
    schema = json.loads((ROOT / "schemas" / f"{kind}.v1.schema.json").read_text(encoding="utf-8"))

    found = dict(properties(schema, schema, ""))

    assert len(found) > 5
    assert [place for place, declared in found.items() if not explained(declared, schema)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_mapping_of_a_manifest_refuses_what_it_does_not_know(kind: str) -> None:
    schema = json.loads((ROOT / "schemas" / f"{kind}.v1.schema.json").read_text(encoding="utf-8"))

    def open_mappings(part: Any, place: str) -> Iterator[str]:
        if isinstance(part, list):
            for number, item in enumerate(part):
                yield from open_mappings(item, f"{place}/{number}")
        if isinstance(part, dict):
            if isinstance(part.get("properties"), dict) and part.get("type") == "object" and "additionalProperties" not in part:
                yield place
            for word, inner in part.items():
                yield from open_mappings(inner, f"{place}/{word}")

    assert list(open_mappings(schema, "")) == []
