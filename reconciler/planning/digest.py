"""The digest of a plan: equal exactly when the same keys change from and to the same values on the same cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from reconciler.formats import FORMAT_VERSION, Json, canonical_bytes, entity_to_json, number_text
from reconciler.model import Change


def digest(cluster_id: str | None, changes: Iterable[Change]) -> str:
    """``sha256:<hex>`` over the format's major version, the cluster id, and the changes sorted by entity and key.

    Time, tool version, source lines, notes and findings are left out on purpose: what is approved is what is written.
    """
    rows: list[Json] = [
        [entity_to_json(change.entity), key.key, _text(key.before), _text(key.after)]
        for change in sorted(changes, key=lambda c: c.entity.sort_key)
        for key in sorted(change.keys, key=lambda k: k.key)
    ]
    canonical: Json = {"format": FORMAT_VERSION.partition(".")[0], "cluster": cluster_id, "changes": rows}
    return "sha256:" + hashlib.sha256(canonical_bytes(canonical)).hexdigest()


def _text(value: float | None) -> str | None:
    return None if value is None else number_text(value)
