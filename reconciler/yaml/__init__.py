"""YAML: read into nodes with their places, and scalars written so that every reader gives them back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.yaml.editing import (
        ScalarEdit,
        ScalarEditError,
        add_field,
        add_item,
        edit_scalars,
        expand_scalars,
        has_only,
        read_value,
        remove_field,
        scalar_text,
    )
    from reconciler.yaml.reading import Plain, YamlMapping, YamlNode, YamlScalar, YamlSequence, read_yaml

__getattr__ = lazy_face(__name__)
