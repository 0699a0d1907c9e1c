"""What PySpark 3.5 and 4.0 lack, made of what they have; newer versions use their own methods."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from reconciler.errors import TrafficError
from reconciler.text import shown
from reconciler.traffic.shuffle.block import pack_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PACKED: Final = pa.schema([("batch", pa.binary())])


def collect_table(frame: DataFrame) -> pa.Table:
    """All rows of a frame, in its order. PySpark 3.5 has no ``toArrow``: workers pack batches there, and Spark collects those."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    schema = to_arrow_schema(frame.schema)
    packed = frame.mapInArrow(_pack, from_arrow_schema(_PACKED)).collect()
    batches = (batch for row in packed for batch in pa.ipc.open_stream(bytes(row[0])))
    return pa.Table.from_batches([batch.cast(schema) for batch in batches], schema)


def _pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([pack_rows(batch)], pa.binary())], schema=_PACKED)


def repartition_by_number(frame: DataFrame, count: int, column: str) -> DataFrame:
    """``count`` partitions, of which each gets whole numbers of ``column``: 0 to ``count - 1``, one each.

    ``repartitionById`` came with PySpark 4.1. Older ones hash, so that a partition may get several numbers.
    """
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(count, column)
    return frame.repartition(count, column)


def refuse_foreign_types() -> None:
    """Let no file and no table bring a type of Python of its own, for the rest of this process.

    The schema of a Parquet file or of a table may name a class, and have it as a pickle, which PySpark before
    4.3 unpickles. All versions import the module that it names.
    """
    from pyspark.sql.types import UserDefinedType

    types: Any = UserDefinedType
    known = types.fromJson

    def from_json(json: dict[str, Any]) -> Any:
        module, _, name = str(json.get("pyClass")).rpartition(".")
        if not hasattr(sys.modules.get(module), name):
            raise TrafficError(
                f"the schema of the traffic has a type of its own, {shown(f'{module}.{name}')}: its class is code, which is not "
                "loaded. Write the columns as plain values, or leave this column out"
            )
        return known(json)

    if known.__name__ != from_json.__name__:
        types.fromJson = staticmethod(from_json)
