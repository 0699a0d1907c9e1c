"""Where the JSON Schemas are: inside the installed package, or beside it in a source tree."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

from reconciler.files import bundled_folder

_FILE: Final = re.compile(r"(?P<name>[a-z-]+)\.v(?P<version>[0-9]+)\.schema\.json")


def schema_folder() -> Path:
    """The folder that holds ``NAME.vVERSION.schema.json``. Raises ``FileAccessError`` when the installation lacks it."""
    return bundled_folder("schemas", holds="client-quotas.v1.schema.json")


@cache
def load_schema(name: str) -> dict[str, Any]:
    """The newest schema of a document kind by its short name, e.g. ``client-quotas``. Do not change what it returns."""
    path = schema_folder() / f"{name}.v{_newest()[name]}.schema.json"
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


def schema_names() -> tuple[str, ...]:
    """The short names of all schemas, sorted. Raises ``FileAccessError`` as ``schema_folder``."""
    return tuple(sorted(_newest()))


@cache
def _newest() -> dict[str, int]:
    """Every short name with its highest version, which is the one that this version writes."""
    found: dict[str, int] = {}
    for path in schema_folder().iterdir():
        if match := _FILE.fullmatch(path.name):
            found[match["name"]] = max(found.get(match["name"], 0), int(match["version"]))
    return found
