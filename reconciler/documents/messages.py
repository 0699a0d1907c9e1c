"""Messages in JSON documents: the sentence in ``message``, its typed parts in ``parts``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.documents.reading import value_from_json
from reconciler.formats import Json, value_to_json
from reconciler.model import Message, MessagePart, PartKind, Span


def message_to_json(text: str) -> dict[str, Json]:
    """``{message, parts?}``; a message without any typed part has no ``parts``."""
    document: dict[str, Json] = {"message": str.__str__(text)}
    if isinstance(text, Message) and any(part.kind is not PartKind.TEXT for part in text.parts):
        document["parts"] = [_part_to_json(part) for part in text.parts]
    return document


def message_from_json(row: Mapping[str, Any]) -> str:
    """The inverse. Parts whose texts joined are not the message are ignored."""
    text: str = row["message"]
    if "parts" not in row:
        return text
    whole = Message(_part_from_json(part) for part in row["parts"])
    return whole if whole == text else text


def _part_to_json(part: MessagePart) -> Json:
    document: dict[str, Json] = {"kind": part.kind.value, "text": part.text}
    if part.value is not None:
        document["value"] = value_to_json(part.value)
    if part.span is not None:
        document |= {"file": part.span.file, "line": part.span.line, "column": part.span.column}
    return document


def _part_from_json(row: Mapping[str, Any]) -> MessagePart:
    span = Span(file=row["file"], line=row["line"], column=row["column"]) if {"file", "line", "column"} <= row.keys() else None
    value = value_from_json(row.get("value"), "value")
    return MessagePart(kind=PartKind(row["kind"]), text=row["text"], value=value, span=span)
