"""Plans with their effects as documents, and the digest of the changes in one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from reconciler.documents.codec import row
from reconciler.documents.document import Document
from reconciler.documents.kinds import ENTITY
from reconciler.documents.reading import FieldError
from reconciler.documents.values import VALUES
from reconciler.errors import AlteredDocumentError
from reconciler.formats import FORMAT_VERSION, Json, canonical_bytes, field_path
from reconciler.model import BrokerFacts, Change, KeptEntity, Plan, PlanEffects, same_value
from reconciler.text import number_text


def require_differences(changes: Iterable[Change]) -> None:
    """Raise ``FieldError`` for a key that has equal values before and after."""
    for index, change in enumerate(changes):
        for key in change.keys:
            if same_value(key.before, key.after):
                path = field_path(("changes", index, "keys", key.key))
                raise FieldError(path, "must be two different values in 'before' and 'after'")


PLAN: Final = Document(
    cls=Plan,
    name="plan",
    title="kafka-quotas plan",
    codec=VALUES.extended(
        {
            BrokerFacts: row("brokers? leaders?"),
            KeptEntity: row("entity quotas declared_at=since"),
            Plan: row(
                "cluster source observed complete applyable! errored! summary changes guards notes findings effects? unmanaged? "
                "kept? withheld? *totals digest"
            ),
            PlanEffects: row("unknown left_out moves=effects groups?"),
        }
    ),
    called="a plan written by 'plan --format json'",
    check=lambda plan: require_differences(plan.changes),
)


def read_plan(text: str, *, name: str) -> Plan:
    """The plan of a document.

    Raises as ``Document.read``, and ``AlteredDocumentError`` for another digest than its changes have.
    """
    plan = PLAN.read(text, name=name)
    require_digest(plan.digest, plan.cluster.id, plan.changes, name=name)
    return plan


def require_digest(recorded: str | None, cluster_id: str | None, changes: Iterable[Change], *, name: str) -> None:
    """Raise ``AlteredDocumentError`` unless the digest that the document ``name`` records is that of its changes."""
    actual = plan_digest(cluster_id, changes)
    if recorded != actual:
        msg = f"{name} was changed after it was written: its digest is {recorded}, but that of its changes is {actual}"
        raise AlteredDocumentError(msg)


def plan_digest(cluster_id: str | None, changes: Iterable[Change]) -> str:
    """``sha256:<hex>`` over the format's major version, the cluster id, and the changes sorted by entity and key.

    Time, tool version, source lines, notes, findings and withheld changes are left out on purpose: what is approved is what is
    written.
    """
    rows: list[Json] = [
        [ENTITY.written(change.entity), key.key, _number_text(key.before), _number_text(key.after)]
        for change in sorted(changes, key=lambda c: c.entity.sort_key)
        for key in sorted(change.keys, key=lambda k: k.key)
    ]
    canonical: Json = {"format": FORMAT_VERSION.partition(".")[0], "cluster": cluster_id, "changes": rows}
    return "sha256:" + hashlib.sha256(canonical_bytes(canonical)).hexdigest()


def _number_text(value: float | None) -> str | None:
    return None if value is None else number_text(value)
