"""The page of the published tables: the columns of traffic, verdicts and recommendations."""

from __future__ import annotations

from typing import Final

from reconciler.model import RECOMMENDATIONS_SCHEMA, TRAFFIC_SCHEMA, VERDICTS_SCHEMA, FrameColumn, FrameSchema

_HEAD: Final = """\
# Tables

The columns of recorded traffic, and of the tables that a backtest writes with `--out parquet=` or returns
[on Spark](../from-python.md#backtest-on-spark).
A new column raises the number behind the dot of a version, any other change the number before it.
"""
_TITLES: Final = {"Recorded traffic": TRAFFIC_SCHEMA, "Verdicts": VERDICTS_SCHEMA, "Recommendations": RECOMMENDATIONS_SCHEMA}


def tables_page() -> str:
    """The whole page as Markdown."""
    return _HEAD + "".join(_chapter(title, schema) for title, schema in _TITLES.items())


def _chapter(title: str, schema: FrameSchema) -> str:
    rows = [f"| `{column.name}` | `{column.type}` | {_null(column)} | {column.meaning} |\n" for column in schema.columns]
    head = f"\n## {title}\n\n`{schema.name}`, version {schema.version}.\n\n"
    return head + "| column | type | null | meaning |\n|---|---|---|---|\n" + "".join(rows)


def _null(column: FrameColumn) -> str:
    if not column.required:
        return "yes, or no column"
    return "yes" if column.nullable else "no"
