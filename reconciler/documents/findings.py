"""Findings, their messages and their explanations as JSON.

Many documents carry findings. Documents of their own are ``schemas/findings.v1.schema.json`` and
``schemas/explanations.v1.schema.json``. A message is the sentence in ``message`` with its typed parts in ``parts``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from reconciler.documents.reading import FieldError, checked, items_from_json, read_document, value_from_json
from reconciler.formats import FORMAT_VERSION, Json, entity_from_json, entity_to_json, value_to_json
from reconciler.model import Explanation, Finding, Message, MessagePart, PartKind, Related, Severity, Span

SCHEMA: Final = "findings"


def findings_to_json(findings: Sequence[Finding], counts: Mapping[str, int] | None = None) -> dict[str, Json]:
    """The document; ``counts`` (files, clusters, entities) join the summary when they are known."""
    return {
        "format_version": FORMAT_VERSION,
        "findings": [finding_to_json(finding) for finding in findings],
        "summary": {**severity_counts(findings), **(counts or {})},
    }


def read_findings(text: str, *, name: str) -> tuple[Finding, ...]:
    """The findings of a document; ``name`` is the file's. Raises ``FileAccessError`` for text that is not such a document."""
    return read_document(
        text,
        lambda data: items_from_json(checked(data, SCHEMA)["findings"], finding_from_json, "findings"),
        name=name,
        kind="a list of findings",
        written_by="validate --format json",
    )


def finding_to_json(finding: Finding) -> dict[str, Json]:
    """``{id, severity, message, parts?, file, line, column, related, entity?, key?}``; the place is null when there is none."""
    document: dict[str, Json] = {"id": finding.id, "severity": finding.severity.value, **message_to_json(finding.message)}
    document |= span_to_json(finding.span)
    document["related"] = [{**span_to_json(r.span), "message": r.message} for r in finding.related]
    if finding.entity is not None:
        document["entity"] = entity_to_json(finding.entity)
    if finding.key is not None:
        document["key"] = finding.key
    return document


def span_to_json(span: Span | None) -> dict[str, Json]:
    """``{file, line, column}``, all null for no place."""
    if span is None:
        return {"file": None, "line": None, "column": None}
    return {"file": span.file, "line": span.line, "column": span.column}


def finding_from_json(row: Mapping[str, Any]) -> Finding:
    """The inverse of ``finding_to_json``."""
    nowhere = row["file"] is None and row["line"] is None and row["column"] is None
    return Finding(
        id=row["id"],
        severity=Severity(row["severity"]),
        message=message_from_json(row),
        span=None if nowhere else span_from_json(row),
        related=items_from_json(row["related"], _related, "related"),
        entity=entity_from_json(row["entity"]) if "entity" in row else None,
        key=row.get("key"),
    )


def span_from_json(row: Mapping[str, Any]) -> Span:
    """``{file, line, column}``, none of them null."""
    for part in ("file", "line", "column"):
        if row[part] is None:
            raise FieldError(part, "must be given, as the other parts of the place are, not null")
    return Span(file=row["file"], line=row["line"], column=row["column"])


def _related(row: Mapping[str, Any]) -> Related:
    return Related(span=span_from_json(row), message=row["message"])


def severity_counts(findings: Sequence[Finding]) -> dict[str, Json]:
    """``{error: 1, warning: 0, info: 2}``."""
    return {severity.value: sum(1 for f in findings if f.severity is severity) for severity in Severity}


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


def explanations_to_json(every: Sequence[Explanation]) -> dict[str, Json]:
    """The document of ``explanations.v1``: id, topic, severity, text and example of each explanation."""
    return {"format_version": FORMAT_VERSION, "explanations": [_explanation_to_json(explanation) for explanation in every]}


def _explanation_to_json(explanation: Explanation) -> dict[str, Json]:
    example = explanation.example
    return {
        "id": explanation.id,
        "topic": explanation.topic.value,
        "severity": explanation.severity.value if explanation.severity else None,
        "adjustable": explanation.adjustable,
        "text": explanation.text,
        "example": {"bad": example.bad, "good": example.good, "live": list(example.live), "commands": example.commands}
        if example
        else None,
    }
