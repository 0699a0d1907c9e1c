"""The published schemas of tables: PySpark and Arrow read them as they stand."""

from __future__ import annotations

import pytest

from reconciler.client import RECOMMENDATIONS_SCHEMA, TRAFFIC_SCHEMA, VERDICTS_SCHEMA, FrameSchema

SCHEMAS = (TRAFFIC_SCHEMA, VERDICTS_SCHEMA, RECOMMENDATIONS_SCHEMA)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_spark_arrow_and_the_schema_agree(schema: FrameSchema) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    from reconciler.features.verdict_tables.verdict_rows import arrow_schema

    columns = StructType.fromJson(schema.to_spark())
    assert [(field.name, field.dataType.simpleString(), field.nullable) for field in columns] == [
        (column.name, column.type, column.nullable) for column in schema.columns
    ]
    arrow = arrow_schema(schema)
    of_spark = [field.type for field in to_arrow_schema(columns, timezone="UTC")]
    assert [str(kind).partition("<")[0] for kind in of_spark] == [str(field.type).partition("<")[0] for field in arrow]
    assert [field.nullable for field in arrow] == [column.nullable for column in schema.columns]
    assert all(column.meaning and "|" not in column.meaning for column in schema.columns)
