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
        APPLY_SUMMARY,
        ApplySummary,
        failed_apply,
        read_apply_report,
    )
    from reconciler.documents.audit import AuditedRun, audit_line
    from reconciler.documents.backtest import BACKTEST
    from reconciler.documents.backtest_headline import Tone, headline
    from reconciler.documents.baseline import BASELINE, RecordedBaseline, baseline_of, read_baseline
    from reconciler.documents.clusters import CLUSTERS, ClusterChanges, cluster_failure_to_json, clusters_to_json
    from reconciler.documents.codec import row
    from reconciler.documents.document import Document
    from reconciler.documents.drift import DRIFT
    from reconciler.documents.findings import EXPLANATIONS, FINDINGS, ExplanationList, FindingCounts, FindingList
    from reconciler.documents.plan import PLAN, plan_digest, read_plan
    from reconciler.documents.reading import FieldError, parse
    from reconciler.documents.resolve import (
        RESOLVE,
        RESOLVE_DIFF,
        ResolveAnswer,
        answer_json_lines,
        answer_list_chunks,
    )
    from reconciler.documents.rows import Row, RowMember
    from reconciler.documents.snapshot import (
        SNAPSHOT,
        parse_snapshot,
        read_snapshot,
        selector_to_json,
        snapshot_chunks,
        write_snapshot,
    )
    from reconciler.documents.values import VALUES, is_failure

__getattr__ = lazy_face(__name__)
