"""File formats: JSON Schema checks, canonical JSON, units of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.formats.canonical import (
        FORMAT_VERSION,
        Json,
        canonical_bytes,
        document_text,
        entity_from_json,
        entity_to_json,
        field_path,
        moment_to_json,
        plan_digest,
        quoted_json,
        value_to_json,
    )
    from reconciler.formats.shapes import (
        API_VERSION,
        TEXT,
        ChoiceShape,
        FlagShape,
        FreeShape,
        LabelsShape,
        ListShape,
        ManifestShape,
        NumberShape,
        RecordShape,
        SchemaProblem,
        Shape,
        TableShape,
        TextShape,
        check,
        load_schema,
        schema_folder,
        schema_names,
    )
    from reconciler.formats.units import (
        BINARY_UNITS,
        ValueRefusedError,
        declarable,
        no_limit_advice,
        parse_value,
        value_like,
        value_text,
    )

__getattr__ = lazy_face(__name__)
