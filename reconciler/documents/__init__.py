"""JSON documents: one codec from field types, and for each kind a ``Document`` with its JSON Schema's name.

A new kind: a frozen dataclass whose fields have docstrings, and ``Document(cls=..., name=..., title=...)``. ``make format`` makes
the schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.documents.apply_report import (
        APPLY_REPORT,
        AUDIT,
        AUDIT_ROWS,
        AuditedRun,
        AuditRecord,
        audit_line,
        failed_apply,
        read_apply_report,
    )
    from reconciler.documents.backtest import BACKTEST
    from reconciler.documents.backtest_headline import Tone, headline
    from reconciler.documents.codec import Row, RowMember, row
    from reconciler.documents.document import VALUES, Document, is_failure
    from reconciler.documents.findings import FINDINGS, FindingList
    from reconciler.documents.kinds import FieldError, parse
    from reconciler.documents.plan import (
        CLUSTERS,
        DRIFT,
        PLAN,
        ClusterChanges,
        cluster_failure_to_json,
        clusters_to_json,
        read_plan,
    )
    from reconciler.documents.snapshot import (
        BASELINE,
        SNAPSHOT,
        RecordedBaseline,
        baseline_of,
        parse_snapshot,
        read_baseline,
        read_snapshot,
        selector_to_json,
        snapshot_chunks,
        write_snapshot,
    )

__getattr__ = lazy_face(__name__)
