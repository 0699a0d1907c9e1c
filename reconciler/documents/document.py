"""One kind of document: a class, the name of its JSON Schema, and how it is written and read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from reconciler.collector import pause_collector
from reconciler.documents.codec import Codec
from reconciler.documents.kinds import TEXT, UnlikeError
from reconciler.documents.reading import FieldError, parse
from reconciler.documents.values import VALUES
from reconciler.errors import DocumentVersionError, FileAccessError
from reconciler.formats import FORMAT_VERSION, Json, document_text
from reconciler.model import escaped

T = TypeVar("T")


class ForeignVersionError(ValueError):
    """A document of another major version."""

    def __init__(self, version: str, supported: str) -> None:
        super().__init__(f"of format {escaped(version)}, and this version reads format {supported}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document(Generic[T]):
    """``schemas/NAME.v1.schema.json`` is made of this by ``make format``: the title, and the docstrings of classes and fields."""

    cls: type[T]
    name: str
    title: str
    codec: Codec = VALUES
    called: str = "a document"
    """For messages, with the command that writes one: ``a plan written by 'plan --format json'``."""
    check: Callable[[T], None] | None = None
    """Refuses a value whose members do not fit each other. Raises ``FieldError``."""

    def write(self, value: T) -> dict[str, Json]:
        """The data of a value; equal values give equal documents."""
        return {"format_version": FORMAT_VERSION, **self.codec.row(self.cls).write(value)}

    def text(self, value: T) -> str:
        """The document for a file or for stdout."""
        return document_text(self.write(value))

    def build(self, data: Any) -> T:
        """The value of data. Raises ``ForeignVersionError``, and ``FieldError`` that names the field."""
        try:
            _require_version(data)
            value: T = self.codec.row(self.cls).read(data)
            if self.check is not None:
                self.check(value)
        except FieldError as error:
            raise (error if error.path else error.below("the document")) from error.__cause__
        return value

    def read(self, text: str | bytes, *, name: str) -> T:
        """The value of a text; ``name`` is the file's.

        Raises ``DocumentVersionError`` for a document of another major version, and ``FileAccessError`` for any other text.
        """
        try:
            with pause_collector():
                return self.build(parse(text))
        except ForeignVersionError as error:
            raise DocumentVersionError(f"{name} is {self.called.partition(' written by')[0]} {error}") from error
        except (ValueError, RecursionError) as error:
            raise FileAccessError(f"{name} is not {self.called}: {error}") from error


def _require_version(data: Any) -> None:
    if type(data) is not dict:
        raise UnlikeError("an object", data)
    if "format_version" not in data:
        raise FieldError("", "lacks 'format_version'")
    try:
        version = TEXT.read(data["format_version"])
    except FieldError as error:
        raise error.below("format_version") from None
    supported = FORMAT_VERSION.partition(".")[0]
    if version.partition(".")[0] != supported:
        raise ForeignVersionError(version, supported)
