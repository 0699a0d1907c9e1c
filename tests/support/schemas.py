"""JSON documents against the schemas that are shipped."""

from __future__ import annotations

import functools
from typing import Any

from jsonschema import Draft202012Validator

from reconciler.formats.shapes import load_schema


@functools.cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(load_schema(name), format_checker=Draft202012Validator.FORMAT_CHECKER)


def valid(document: Any, name: str) -> Any:
    """The document, which keeps to ``schemas/NAME.v1.schema.json``."""
    _validator(name).validate(document)
    return document
