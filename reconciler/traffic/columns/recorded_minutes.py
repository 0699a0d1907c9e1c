"""In which minutes each broker was recorded: of every row that says when and where, whatever else it lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from reconciler.traffic.columns.chunk import moments
from reconciler.traffic.columns.numbering import numbered
from reconciler.traffic.columns.parts import Part

SCHEMA: Final = "broker int, minute bigint"
_ARROW: Final = pa.schema([("broker", pa.int32()), ("minute", pa.int64())])
_MINUTE_US: Final = 60_000_000


def recorded_minutes(parts: Iterable[Part]) -> Iterator[pa.RecordBatch]:
    """Rows of ``SCHEMA``, minutes since 1970, each once."""
    found: set[tuple[int, int]] = set()
    for part in parts:
        for batch in part.batches(("ts", "broker")):
            ts_us, broker = moments(batch)
            if not len(ts_us):
                continue
            minute = ts_us // _MINUTE_US
            first, lowest = int(minute.min()), int(broker.min())
            span = int(minute.max()) - first + 1
            codes, _ = numbered((broker - lowest) * span + minute - first, (int(broker.max()) - lowest + 1) * span)
            found.update((code // span + lowest, code % span + first) for code in codes.tolist())
    rows = [{"broker": broker, "minute": minute} for broker, minute in sorted(found)]
    yield pa.RecordBatch.from_pylist(rows, schema=_ARROW)
