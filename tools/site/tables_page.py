"""The page of the columns of recorded traffic."""

from __future__ import annotations

from typing import Final

from reconciler.model import TRAFFIC_SCHEMA, FrameColumn

_HEAD: Final = """\
# Tables

The columns of [recorded traffic](../traffic.md#the-canonical-traffic-schema). Other columns are ignored.

| column | type | null | meaning |
|---|---|---|---|
"""


def tables_page() -> str:
    """The whole page as Markdown."""
    return _HEAD + "".join(
        f"| `{column.name}` | `{column.type}` | {_null(column)} | {column.meaning} |\n" for column in TRAFFIC_SCHEMA
    )


def _null(column: FrameColumn) -> str:
    if not column.required:
        return "yes, or no column"
    return "yes" if column.nullable else "no"
