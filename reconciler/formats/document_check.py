"""Check JSON documents against their shipped schemas, as a later minor version of each schema would: unknown fields pass.

A compiled validator (jsonschema-rs) does it; its first error becomes one sentence that begins with the path of the field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from reconciler.formats.schema_check import load_schema
from reconciler.model import escaped

_TYPES: Final = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}
_LONGEST: Final = 60
_PROOF_OF_NAMES: Final = str.maketrans({"\\": "\\\\"})


def document_problem(data: object, schema_name: str) -> str | None:
    """The first problem of ``data`` (as ``json.loads`` returns it), e.g. ``changes[3].entity must be an object, not 5``.

    ``None`` for data that fit the newest schema of that name. Fields that the schema does not know are accepted. Raises
    ``ValueError`` or ``RecursionError`` for data that are nested too deep to be checked.
    """
    validator = _validator(schema_name)
    try:
        error = next(validator.iter_errors(data), None)
    except UnicodeEncodeError:  # The validator reads UTF-8, which has no lone surrogates; JSON and Kafka's names may have them.
        error = next(validator.iter_errors(_spelled_out(data)), None)
    return None if error is None else _sentence(error)


def field_path(parts: Iterable[str | int]) -> str:
    """A path of keys and indices as text for a message: ``changes[3].entity``, or ``the document`` for the root."""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{escaped(part)}" for part in parts)
    return path.removeprefix(".") or "the document"


def quoted_json(value: object) -> str:
    """A value for a message: as JSON, escaped, and cut when it is long."""
    text = escaped(json.dumps(value))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


@cache
def _validator(schema_name: str) -> Any:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(_open(load_schema(schema_name)))


def _open(schema: Any) -> Any:
    """The same schema where objects may have other fields, too."""
    if isinstance(schema, dict):
        return {k: _open(v) for k, v in schema.items() if (k, v) != ("additionalProperties", False)}
    return [_open(part) for part in schema] if isinstance(schema, list) else schema


def _spelled_out(data: Any) -> Any:
    r"""The same data with ``\ud800`` spelled out; no two strings become the same one."""
    if isinstance(data, str):
        return data.translate(_PROOF_OF_NAMES).encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(data, Mapping):
        return {_spelled_out(key): _spelled_out(value) for key, value in data.items()}
    return [_spelled_out(part) for part in data] if isinstance(data, list) else data


def _sentence(error: Any) -> str:
    error = _innermost(error)
    path, kind = field_path(error.instance_path), error.kind
    if kind.name == "required":
        return f"{path} lacks {escaped(kind.property)!r}"
    return f"{path} must be {_wanted(error)}, not {quoted_json(error.instance)}"


def _wanted(error: Any) -> str:
    kind = error.kind
    wanted = f"as the schema requires ({kind.name})"
    match kind.name:
        case "type":
            wanted = " or ".join(_TYPES[type_name] for type_name in sorted(kind.types, key="null".__eq__))
        case "enum":
            wanted = f"one of {', '.join(option if isinstance(option, str) else json.dumps(option) for option in kind.options)}"
        case "minimum" | "maximum":
            wanted = f"at {'least' if kind.name == 'minimum' else 'most'} {kind.limit}"
        case "pattern":
            wanted = f"a string of the form {kind.pattern}"
        case "minProperties" | "minItems" | "minLength":
            wanted = "filled"
        case "anyOf" | "oneOf":
            forms = sorted((_wanted(branch[0]) for branch in kind.context if branch), key="null".__eq__)
            wanted = " or ".join(dict.fromkeys(filter(None, forms))) or wanted
    return wanted


def _innermost(error: Any) -> Any:
    """Of a value that fits none of several forms, what is wrong deeper inside in the form that it comes closest to."""
    while branches := getattr(error.kind, "context", None):
        inner = [branch[0] for branch in branches if branch and len(branch[0].instance_path) > len(error.instance_path)]
        missing = [branch[0] for branch in branches if branch and branch[0].kind.name == "required"]
        if not (nearest := inner or missing):
            return error
        error = nearest[0]
    return error
