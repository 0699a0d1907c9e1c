"""Writes the tables of docs/from-python.md: the columns of the published schemas. ``make format`` runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from reconciler.model import RECOMMENDATIONS_SCHEMA, SECONDS_SCHEMA, TRAFFIC_SCHEMA, VERDICTS_SCHEMA, FrameColumn, FrameSchema

PAGE: Final = Path(__file__).parents[1] / "docs" / "from-python.md"
_BEGIN: Final = "<!-- The rest is written by tools/frame_schemas.py. -->\n"
_TITLES: Final = {
    "Recorded traffic": TRAFFIC_SCHEMA,
    "Verdicts": VERDICTS_SCHEMA,
    "Seconds": SECONDS_SCHEMA,
    "Recommendations": RECOMMENDATIONS_SCHEMA,
}


def page() -> str:
    """The whole page, with what people wrote before the tables."""
    before = PAGE.read_text(encoding="utf-8").partition(_BEGIN)[0]
    return before + _BEGIN + "".join(_chapter(title, schema) for title, schema in _TITLES.items())


def _chapter(title: str, schema: FrameSchema) -> str:
    rows = [f"| `{column.name}` | `{column.type}` | {_null(column)} | {column.meaning} |\n" for column in schema.columns]
    head = f"\n### {title}\n\n`{schema.name}`, version {schema.version}.\n\n"
    return head + "| column | type | null | meaning |\n|---|---|---|---|\n" + "".join(rows)


def _null(column: FrameColumn) -> str:
    if not column.required:
        return "yes, or no column"
    return "yes" if column.nullable else "no"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
