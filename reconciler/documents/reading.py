"""Read a JSON document: its text, its version, its schema; then the few values that a schema cannot describe.

The builders beside each ``to_json`` get data that fit the shipped schema, so they take fields without looking. What only they
can refuse (a time without a zone, a number that no double has) is a ``FieldError``, whose path grows on the way out.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NoReturn, TypeVar

from reconciler.collector import pause_collector
from reconciler.errors import DocumentVersionError, FileAccessError
from reconciler.formats import document_problem, entity_from_json, load_schema, quoted_json
from reconciler.model import ClusterIdentity, Entity, ManifestCommit, Observed, ObservedFrom, escaped

_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

T = TypeVar("T")


class FieldError(ValueError):
    """A field that cannot be read. ``path`` leads to it, e.g. ``changes[3].entity``; empty: the whole document."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path} {problem}" if path else problem)
        self.path = path
        self.problem = problem

    def below(self, parent: str) -> FieldError:
        """The same error as seen from a field around it."""
        between = "" if not self.path or self.path.startswith("[") else "."
        return FieldError(f"{parent}{between}{self.path}", self.problem)


class ForeignVersionError(ValueError):
    """A document of another major version."""

    def __init__(self, version: str, supported: str) -> None:
        super().__init__(f"of format {escaped(version)}, and this version reads format {supported}")


def read_document(text: str | bytes, build: Callable[[Any], T], *, name: str, kind: str, written_by: str) -> T:
    """What ``build`` makes of the data of a JSON text.

    ``name``, ``kind`` (with its article) and ``written_by`` are the file, its document and the command that writes one, for
    messages. Raises ``DocumentVersionError`` where ``build`` raises ``ForeignVersionError``, and ``FileAccessError`` for other
    text: where it is not JSON or ``build`` raises another ``ValueError``.
    """
    try:
        with pause_collector():
            return build(parse(text))
    except ForeignVersionError as error:
        raise DocumentVersionError(f"{name} is {kind} {error}") from error
    except (ValueError, RecursionError) as error:
        raise FileAccessError(f"{name} is not {kind} written by '{written_by}': {error}") from error


def parse(text: str | bytes, *, unique: bool = False) -> Any:
    """The data of a JSON text. Raises ``ValueError`` or ``RecursionError``; with ``unique`` also for a key that occurs twice."""
    hook = _unique if unique else None
    with pause_collector():
        return json.loads(text, object_pairs_hook=hook, parse_constant=_refuse_constant)


def checked(data: object, schema_name: str) -> dict[str, Any]:
    """``data`` when it is a document of this schema and of its major version, with or without fields of a later minor one.

    Raises ``ForeignVersionError``, and ``FieldError`` that names the first field that is wrong.
    """
    if not isinstance(data, dict):
        raise FieldError("", f"the document must be an object, not {quoted_json(data)}")
    version, supported = data.get("format_version"), load_schema(schema_name)["$id"].rpartition(":v")[2]
    if isinstance(version, str) and version.partition(".")[0] != supported:
        raise ForeignVersionError(version, supported)
    if problem := document_problem(data, schema_name):
        raise FieldError("", problem)
    return data


@contextmanager
def within(path: str) -> Iterator[None]:
    """Put ``path`` before the path of a ``FieldError``."""
    try:
        yield
    except FieldError as error:
        raise error.below(path) from error.__cause__


def items_from_json(rows: Sequence[Any], read: Callable[[Any], T], path: str) -> tuple[T, ...]:
    """Each row as ``read`` returns it."""
    built: list[T] = []
    try:
        for row in rows:
            item = read(row)
            built.append(item)
    except FieldError as error:
        raise error.below(f"{path}[{len(built)}]") from error.__cause__
    return tuple(built)


def value_from_json(value: float | str | None, path: str) -> float | None:
    """A quota value or null; NaN and infinities are strings."""
    return None if value is None else number_from_json(value, path)


def number_from_json(value: float | str, path: str) -> float:
    """A quota value, which is a string when JSON has no such number."""
    if isinstance(value, str):
        return _NOT_FINITE[value]
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise FieldError(path, f"must be a number in the range of a double, not {quoted_json(value)}")
    return number


def moment_from_json(text: str, path: str) -> datetime.datetime:
    """A time with its offset, in UTC."""
    try:
        at = datetime.datetime.fromisoformat(text)
        in_utc = at.astimezone(datetime.UTC)
    except (ValueError, OverflowError) as error:
        raise FieldError(path, f"must be a time in ISO 8601, not {quoted_json(text)}") from error
    if at.tzinfo is None:
        raise FieldError(path, f"must be a time with its offset from UTC, not {quoted_json(text)}")
    return in_utc


def cluster_from_json(row: Mapping[str, Any]) -> ClusterIdentity:
    """The inverse of ``cluster_to_json``."""
    return ClusterIdentity(
        name=row["name"], id=row["id"], kafka_version=row["kafka_version"], quota_callback=row.get("quota_callback")
    )


def source_from_json(row: Mapping[str, Any]) -> ManifestCommit:
    """``{commit, dirty}``."""
    return ManifestCommit(commit=row["commit"], dirty=row["dirty"])


def observed_from_json(row: Mapping[str, Any]) -> Observed:
    """``{at, from}``."""
    return Observed(at=moment_from_json(row["at"], "observed.at"), origin=ObservedFrom(row["from"]))


def optional_entity(row: Mapping[str, Any] | None) -> Entity | None:
    """An entity or null."""
    return None if row is None else entity_from_json(row)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise FieldError("", "an object has the same key twice")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise FieldError("", f"{name} is not JSON. Write it in quotes")
