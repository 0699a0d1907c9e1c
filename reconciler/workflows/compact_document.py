"""What ``compact`` did, as a document."""

from __future__ import annotations

from typing import Final

from reconciler.documents import VALUES, Document, row
from reconciler.traffic import SmallerDay
from reconciler.workflows.compact import CompactResult

COMPACT: Final = Document(
    cls=CompactResult,
    name="compact",
    title="kafka-quotas compact",
    codec=VALUES.extended(
        {
            CompactResult: row("compacted known empty requests copies segments? samples? removed? days? left_out?"),
            SmallerDay: row("date broker kind before now"),
        }
    ),
)
