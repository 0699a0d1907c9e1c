"""Where the JSON Schemas are: inside the installed package, or beside it in a source tree."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from reconciler.formats.bundled import bundled

_SUFFIX: Final = ".v1.schema.json"


def schema_folder() -> Path:
    """The folder that holds ``NAME.v1.schema.json``. Raises ``FileAccessError`` when the installation lacks it."""
    return bundled("schemas", holds=f"client-quotas{_SUFFIX}")


@cache
def load_schema(name: str) -> dict[str, Any]:
    """The schema of a document kind by its short name, e.g. ``client-quotas``. Do not change what it returns."""
    path = schema_folder() / f"{name}{_SUFFIX}"
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


def schema_names() -> tuple[str, ...]:
    """The short names of all schemas, sorted. Raises ``FileAccessError`` as ``schema_folder``."""
    return tuple(sorted(path.name.removesuffix(_SUFFIX) for path in schema_folder().glob(f"*{_SUFFIX}")))
