"""Baselines: what a clean, verified apply wrote down of the desired state, for a later ``drift --baseline FILE``.

The digest covers the cluster and all values, so that a baseline which was edited, cut short or joined from two is noticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from reconciler.documents.codec import row
from reconciler.documents.document import Document
from reconciler.documents.values import VALUES
from reconciler.errors import BaselineError, FileAccessError
from reconciler.formats import FORMAT_VERSION, canonical_bytes
from reconciler.model import ClusterIdentity, DesiredState, Digest, Entity, ManifestCommit, Quotas


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedBaseline:
    """The desired state of a cluster as an apply recorded it."""

    cluster: ClusterIdentity
    """The cluster. A field is ``None`` when its value is not known."""
    source: ManifestCommit = field(default_factory=ManifestCommit)
    """Commit of the manifests. Its fields are ``None`` outside of git."""
    entities: Mapping[Entity, Quotas]
    """Every declared entity with its quotas, those without any included."""
    unmanaged: frozenset[Entity] = frozenset()
    """Entities in the scope that no manifest declared."""

    @property
    def digest(self) -> Digest:
        """Over the format's major version, the cluster id, the entities and those that no manifest declared."""
        canonical = {
            "format": FORMAT_VERSION.partition(".")[0],
            "cluster": self.cluster.id,
            "entities": _CODEC.kind(Mapping[Entity, Quotas]).written(self.entities),
            "unmanaged": _CODEC.kind(frozenset[Entity]).written(self.unmanaged),
        }
        return "sha256:" + hashlib.sha256(canonical_bytes(canonical)).hexdigest()


_CODEC: Final = VALUES.extended({RecordedBaseline: row("cluster source entities unmanaged digest!")})
BASELINE: Final = Document(
    cls=RecordedBaseline,
    name="baseline",
    title="kafka-quotas baseline",
    codec=_CODEC,
    called="a baseline written by 'apply --record-baseline'",
)


def baseline_of(
    desired: DesiredState, cluster: ClusterIdentity, source: ManifestCommit, *, unmanaged: Iterable[Entity] = ()
) -> RecordedBaseline:
    """Equal for equal state, cluster, commit and unmanaged entities of the scope."""
    entities = {
        entity: {key.value: quota.value for key, quota in declared.quotas.items()}
        for entity, declared in desired.entities.items()
    }
    return RecordedBaseline(cluster=cluster, source=source, entities=entities, unmanaged=frozenset(unmanaged))


def read_baseline(text: str, *, name: str) -> RecordedBaseline:
    """The baseline of a document. Raises ``BaselineError`` for any other text, and for another digest than its entities have."""
    try:
        return BASELINE.read(text, name=name)
    except FileAccessError as error:
        raise BaselineError(f"{error}. Record it again") from error
