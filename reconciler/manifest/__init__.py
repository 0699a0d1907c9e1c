"""Manifests: documents, overlays, the desired state of each cluster, and export back to YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.manifest.catalogue import RULES, UNREAD
    from reconciler.manifest.cluster_places import clusters_without_id, endpoints, misplaced_clusters
    from reconciler.manifest.collector import finding
    from reconciler.manifest.desired import cluster_findings, desired_state
    from reconciler.manifest.discover import REPOSITORY_FILE, Discovery, ManifestFile, at, find_root
    from reconciler.manifest.documents import ClientQuotasDocument, ClusterDocument, Document, Owner, RepositoryDocument
    from reconciler.manifest.emit import MARK, SCHEMA_FOLDER, Export, ExportedFile, emit_clusters, entries_document
    from reconciler.manifest.examples import EXAMPLES
    from reconciler.manifest.files import UnreadableError, read_file
    from reconciler.manifest.globs import path_matcher
    from reconciler.manifest.names import name_problems
    from reconciler.manifest.ownership import ownership_findings
    from reconciler.manifest.reading import FileContent, read_documents

__all__ = [
    "EXAMPLES",
    "MARK",
    "REPOSITORY_FILE",
    "RULES",
    "SCHEMA_FOLDER",
    "UNREAD",
    "ClientQuotasDocument",
    "ClusterDocument",
    "Discovery",
    "Document",
    "Export",
    "ExportedFile",
    "FileContent",
    "ManifestFile",
    "Owner",
    "RepositoryDocument",
    "UnreadableError",
    "at",
    "cluster_findings",
    "clusters_without_id",
    "desired_state",
    "emit_clusters",
    "endpoints",
    "entries_document",
    "find_root",
    "finding",
    "misplaced_clusters",
    "name_problems",
    "ownership_findings",
    "path_matcher",
    "read_documents",
    "read_file",
]

__getattr__ = lazy_face(__name__)
