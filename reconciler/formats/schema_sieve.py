"""Leaving out the good entries of a long document, so that only the bad ones are looked at in detail, which takes far longer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from reconciler.formats.schema_files import load_schema

PATH: Final = ("spec", "quotas")
"""Where the long list is, in the one kind of document that has one."""
_SCHEMA: Final = "client-quotas"


@cache
def _entry() -> Any:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator({"$ref": "#/$defs/entry", "$defs": load_schema(_SCHEMA)["$defs"]})


def sieved(data: Any, schema_name: str) -> tuple[Any, Sequence[int] | None]:
    """The same data with only the bad entries in its list, and their numbers in the whole list; ``None`` without such a list."""
    spec = data.get("spec") if schema_name == _SCHEMA and isinstance(data, dict) else None
    entries = spec.get("quotas") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(entries, list):
        return data, None
    valid = _entry().is_valid
    bad = [number for number, entry in enumerate(entries) if not valid(entry)]
    return {**data, "spec": {**spec, "quotas": [entries[number] for number in bad]}}, bad


def path_in_whole(path: tuple[str | int, ...], numbers: Sequence[int] | None) -> tuple[str | int, ...]:
    """A path in sieved data, as it is in the whole."""
    if numbers is None or path[:2] != PATH or len(path) < 3 or not isinstance(path[2], int):
        return path
    return (*path[:2], numbers[path[2]], *path[3:])
