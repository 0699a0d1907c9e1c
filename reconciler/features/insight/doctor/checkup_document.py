"""The checks of ``doctor`` as a document."""

from __future__ import annotations

from typing import Final

from reconciler.documents import VALUES, Document, row
from reconciler.features.insight.doctor.checks import Checkup

CHECKUP: Final = Document(
    cls=Checkup,
    name="checkup",
    title="kafka-quotas doctor",
    codec=VALUES.extended({Checkup: row("version cluster checks summary=counts")}),
)
