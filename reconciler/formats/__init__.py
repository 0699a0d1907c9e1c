"""File formats: YAML with positions, JSON Schema checks, canonical JSON, units of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.formats.append_line import require_appendable
    from reconciler.formats.canonical import (
        FORMAT_VERSION,
        Json,
        canonical_bytes,
        cluster_to_json,
        document_text,
        entity_from_json,
        entity_to_json,
        moment_to_json,
        number_text,
        value_to_json,
    )
    from reconciler.formats.document_check import document_problem, field_path, quoted_json
    from reconciler.formats.entity_text import DEFAULT_TEXT, quoted, word
    from reconciler.formats.schema_check import SchemaProblem, SchemaProblemKind, check
    from reconciler.formats.schema_files import load_schema, schema_folder, schema_names
    from reconciler.formats.units import BINARY_UNITS, ValueRefusedError, declarable, parse_value, value_text
    from reconciler.formats.whole_file import write_whole
    from reconciler.formats.wording import did_you_mean, shown
    from reconciler.formats.yaml_nodes import YamlMapping, YamlNode, YamlProblem, YamlScalar, YamlSequence
    from reconciler.formats.yaml_reading import read_yaml
    from reconciler.formats.yaml_writing import scalar_text

__all__ = [
    "BINARY_UNITS",
    "DEFAULT_TEXT",
    "FORMAT_VERSION",
    "Json",
    "SchemaProblem",
    "SchemaProblemKind",
    "ValueRefusedError",
    "YamlMapping",
    "YamlNode",
    "YamlProblem",
    "YamlScalar",
    "YamlSequence",
    "canonical_bytes",
    "check",
    "cluster_to_json",
    "declarable",
    "did_you_mean",
    "document_problem",
    "document_text",
    "entity_from_json",
    "entity_to_json",
    "field_path",
    "load_schema",
    "moment_to_json",
    "number_text",
    "parse_value",
    "quoted",
    "quoted_json",
    "read_yaml",
    "require_appendable",
    "scalar_text",
    "schema_folder",
    "schema_names",
    "shown",
    "value_text",
    "value_to_json",
    "word",
    "write_whole",
]

__getattr__ = lazy_face(__name__)
