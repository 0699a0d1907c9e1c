"""YAML: read into nodes with their places, and scalars written so that every reader gives them back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.yaml.editing import (
        ScalarEdit,
        ScalarEditError,
        edit_scalars,
        expand_scalars,
        field_before,
        insert,
        item_first,
        remove_field,
        scalar_text,
    )
    from reconciler.yaml.reading import Plain, YamlMapping, YamlNode, YamlScalar, YamlSequence, read_yaml

__getattr__ = lazy_face(__name__)
