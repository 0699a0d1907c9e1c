"""What manifests of one text desire of their first cluster."""

from __future__ import annotations

import datetime

from reconciler.manifest.desired import DesiredResult, desired_state
from reconciler.manifest.documents import ClientQuotasDocument, ClusterDocument, RepositoryDocument
from reconciler.manifest.reading import read_documents


def desired_of(*texts: str, at: datetime.datetime | None = None) -> tuple[DesiredResult, tuple[str, ...]]:
    """The desired state, and the ids of what is found in the documents and in the state."""
    content = read_documents("---\n".join(texts).encode(), "all.yaml")
    specs = [document.spec for document in content.documents if isinstance(document, ClusterDocument)]
    layers = [document.profiles for document in content.documents if isinstance(document, RepositoryDocument)]
    entries = [document for document in content.documents if isinstance(document, ClientQuotasDocument)]
    result = desired_state(entries, specs[0], profiles=[*layers, *(spec.profiles for spec in specs)], at=at)
    return result, tuple(finding.id for finding in (*content.findings, *result.findings))
