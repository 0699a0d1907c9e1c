"""JSON documents against the schemas that are shipped."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from reconciler.formats.shapes import load_schema

_SCHEMAS = [json.loads(path.read_text("utf-8")) for path in (Path(__file__).parents[2] / "schemas").glob("*.json")]
_REGISTRY: Registry[Any] = Registry().with_resources([(schema["$id"], Resource.from_contents(schema)) for schema in _SCHEMAS])
"""Some refer to others."""


@functools.cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(load_schema(name), registry=_REGISTRY, format_checker=Draft202012Validator.FORMAT_CHECKER)


def valid(document: Any, name: str) -> Any:
    """The document, which keeps to ``schemas/NAME.v1.schema.json``."""
    _validator(name).validate(document)
    return document
