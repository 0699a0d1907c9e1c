"""Manifests: documents, overlays, and the desired state of each cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.manifest.client_quotas import match_text, name_problems
    from reconciler.manifest.desired import cluster_findings, desired_state
    from reconciler.manifest.discovery import (
        REPOSITORY_FILE,
        Discovery,
        IncludedFiles,
        ManifestFile,
        UnreadableError,
        discover,
        file_span,
        find_root,
        path_matcher,
        read_file,
    )
    from reconciler.manifest.documents import (
        ClientQuotasDocument,
        ClusterDocument,
        Document,
        FindingsBaseline,
        KnownFinding,
        Owner,
        QuotaEntry,
        RepositoryDocument,
        SizingRules,
        ValueLimit,
    )
    from reconciler.manifest.limits import OwnerBudget, allocations, budget_findings, budgets_of, limit_findings
    from reconciler.manifest.ownership import clusters_without_id, endpoints, misplaced_clusters, ownership_findings
    from reconciler.manifest.reading import API_VERSION, Collector, FileContent, finding, read_documents
    from reconciler.manifest.safety_fields import DAY
    from reconciler.manifest.units import compute_units, part_of_total

__getattr__ = lazy_face(__name__)
