"""The published schemas of tables: the page shows them, and PySpark reads them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from reconciler.client import RECOMMENDATIONS_SCHEMA, SECONDS_SCHEMA, TRAFFIC_SCHEMA, VERDICTS_SCHEMA, FrameSchema

TOOL = Path(__file__).parents[2] / "tools" / "frame_schemas.py"
SCHEMAS = (TRAFFIC_SCHEMA, VERDICTS_SCHEMA, SECONDS_SCHEMA, RECOMMENDATIONS_SCHEMA)


def test_the_page_is_what_its_generator_writes() -> None:
    spec = importlib.util.spec_from_file_location("frame_schemas", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    sys.modules["frame_schemas"] = tool
    try:
        spec.loader.exec_module(tool)
        assert tool.page() == tool.PAGE.read_text(encoding="utf-8"), "run make format, or python tools/frame_schemas.py"
    finally:
        del sys.modules["frame_schemas"]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_spark_arrow_and_the_schema_agree(schema: FrameSchema) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    from reconciler.traffic.verdict_rows import arrow_schema

    columns = StructType.fromJson(schema.to_spark())
    assert [(field.name, field.dataType.simpleString(), field.nullable) for field in columns] == [
        (column.name, column.type, column.nullable) for column in schema.columns
    ]
    arrow = arrow_schema(schema)
    of_spark = [field.type for field in to_arrow_schema(columns, timezone="UTC")]
    assert [str(kind).partition("<")[0] for kind in of_spark] == [str(field.type).partition("<")[0] for field in arrow]
    assert [field.nullable for field in arrow] == [column.nullable for column in schema.columns]
    assert all(column.meaning and "|" not in column.meaning for column in schema.columns)
