"""JSON documents: for each kind one module with the schema's name, ``to_json`` and ``from_json`` side by side.

What is read is checked against the shipped schema first and built then. An error names the field, what it must be and what it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.documents.apply_report import (
        ApplySummary,
        apply_report_to_json,
        failed_apply_to_json,
        read_apply_report,
        read_apply_summary,
    )
    from reconciler.documents.audit import AuditedRun, audit_text, audit_to_json, failed_audit_to_json
    from reconciler.documents.backtest import backtest_to_json, read_backtest
    from reconciler.documents.backtest_headline import Tone, headline
    from reconciler.documents.baseline import RecordedBaseline, baseline_to_json, read_baseline
    from reconciler.documents.bucket_names import bucket_tags
    from reconciler.documents.clusters import cluster_failure_to_json, clusters_to_json
    from reconciler.documents.drift import DRIFT_FORMAT_VERSION, drift_to_json
    from reconciler.documents.expiry import expiry_to_json
    from reconciler.documents.findings import (
        explanations_to_json,
        finding_to_json,
        findings_to_json,
        message_to_json,
        read_findings,
        severity_counts,
        span_to_json,
    )
    from reconciler.documents.notification import notification_to_json
    from reconciler.documents.plan import plan_digest, plan_to_json, read_plan
    from reconciler.documents.reading import checked, cluster_from_json, moment_from_json, parse
    from reconciler.documents.resolve import answer_json_lines, answer_list_chunks, comparison_to_json, resolution_to_json
    from reconciler.documents.snapshot import parse_snapshot, read_snapshot, selector_to_json, snapshot_chunks, write_snapshot
    from reconciler.documents.traffic_check import contract_to_json
    from reconciler.documents.units import unit_to_json

__getattr__ = lazy_face(__name__)
