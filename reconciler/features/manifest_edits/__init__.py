"""Manifests with other values, in place: what adopting drift, temporary values and rightsizing write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.features.manifest_edits.entries import (
        entry_at,
        entry_of_value,
        require_values,
        with_field,
        with_override,
        with_revisions,
        without_field,
    )
    from reconciler.features.manifest_edits.files import (
        clusters_of_values,
        in_place,
        read_manifest,
        rewrite_file,
        write_revisions,
    )

__getattr__ = lazy_face(__name__)
