"""The mapping file: which columns of files have what the canonical traffic schema needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.errors import ManifestError
from reconciler.formats import ChoiceShape, FreeShape, ManifestShape, RecordShape, TextShape, check
from reconciler.model import Finding, Severity, Span
from reconciler.yaml import YamlMapping, YamlNode, read_yaml

_SCHEMA: Final = "traffic-mapping"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Where one thing is: in a ``column``, or the same ``constant`` for all rows, and how its cells are read."""

    column: str | None = None
    constant: str | int | float | None = None
    pattern: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    unit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficMapping:
    """``fields`` by the names of the schema. ``delimiter``: between the cells of CSV."""

    fields: Mapping[str, Field]
    semantics: str = "event"
    delimiter: str = ","

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it names, each once."""
        return tuple(dict.fromkeys(field.column for field in self.fields.values() if field.column))


def parse_mapping(content: bytes, path: str) -> TrafficMapping:
    """The mapping in a file's bytes; ``path`` names the file in messages. Raises ``ManifestError`` with all findings."""
    findings = tuple(_findings(content, path))
    if findings:
        first = findings[0]
        place = f"{path}:{first.span.line}:{first.span.column}" if first.span else str(path)
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        raise ManifestError(f"{place}: {first.message}{more}", findings=findings)
    mapping: TrafficMapping = TRAFFIC_MAPPING.read(read_yaml(content).documents[0], None)
    return mapping


def _findings(content: bytes, file: str) -> Iterator[Finding]:
    def finding(name: str, message: str, line: int, column: int) -> Finding:
        return Finding(id=name, severity=Severity.ERROR, message=message, span=Span(file=file, line=line, column=column))

    stream = read_yaml(content)
    for problem in stream.problems:
        yield finding(problem.id, problem.message, problem.line, problem.column)
    if stream.problems:
        return
    if len(stream.documents) != 1 or not isinstance(stream.documents[0], YamlMapping):
        yield finding("unknown-document", "a mapping file has one document of kind TrafficMapping", 1, 1)
        return
    root = stream.documents[0]
    refused = check(root, _SCHEMA)
    for refusal in refused:
        yield finding(refusal.id, refusal.message, refusal.line, refusal.column)
    if not refused:
        for message, line, column in _contradictions(root.items["spec"]):
            yield finding("wrong-value", message, line, column)


def _contradictions(spec: YamlNode) -> Iterator[tuple[str, int, int]]:
    """Checks beyond the schema."""
    assert isinstance(spec, YamlMapping)
    columns = spec.items["columns"]
    assert isinstance(columns, YamlMapping)
    for name, each in columns.items.items():
        assert isinstance(each, YamlMapping)
        if "pattern" in each.items and (reason := _no_pattern(str(each.data["pattern"]))):
            yield f"columns.{name}: {reason}", *each.keys["pattern"]
    if spec.data.get("semantics", "event") != "event" and "interval" not in columns.items:
        yield "rows of counters and rates need columns.interval", *spec.keys["semantics"]


def _no_pattern(text: str) -> str:
    try:
        return "" if re.compile(text).groups else r"the pattern has no group, as (\d+)"
    except re.error as error:
        return f"this is not a regular expression: {error}"


def _field(_node: YamlMapping, _out: object, **values: Any) -> Field:
    return Field(**values)


def _words(*words: str) -> dict[str, str]:
    return dict(zip(words, words, strict=True))


def _place(about: str) -> RecordShape:
    return RecordShape(_field, about, _PLACE, one_of=({"required": ["column"]}, {"required": ["constant"]}))


_PLACE: Final = {
    "column": TextShape("The name of the column in the files, to the letter."),
    "constant": FreeShape("The same for all rows.", {"type": ["string", "number"]}, parse=lambda node, _: node.data),
    "pattern": TextShape(r"A regular expression whose first group is the value, as in kafka-(\d+)."),
    "values": FreeShape(
        "What the words of the column mean. Other words count as missing.",
        {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}},
        nodes=(YamlMapping,),
        parse=lambda node, _: node.data,
    ),
    "unit": ChoiceShape(
        _words("B", "KB", "MB", "GB", "KiB", "MiB", "GiB", "ns", "us", "ms", "s"),
        "Of numbers: of a time since 1970 (UTC), of the length of an interval, of an amount. Bytes or nanoseconds when omitted, "
        "and seconds of an interval.",
    ),
}
_SPEC: Final = RecordShape(
    None,
    "Where each thing is found.",
    {
        "delimiter": TextShape(
            "Between the fields of a CSV line. A comma when omitted. The first line names the columns.",
            max_length=1,
            type="string",
        ),
        "semantics": ChoiceShape(
            _words("event", "delta", "gauge"),
            "event (default): one request. delta: what was counted within one second of the clock. gauge: a rate as the broker "
            "measured it.",
        ),
        "columns": RecordShape(
            None,
            "For each thing the column it is in, or one constant for all rows.",
            {
                "ts": _place(
                    "When a broker counted a request, or the end of the interval: a timestamp, text such as "
                    "2026-11-21 13:00:00.5, or with a unit a number. UTC without an offset."
                ),
                "interval": _place("How long a delta was counted. Of a gauge, the time since the sample before it."),
                "broker": _place("The id of the broker that counted it."),
                "user": _place("Whose it is, without User:. A row without a value is of a user who is not known."),
                "client_id": _place("The client-id. Without a value it is not known."),
                "ip": _place("The address of a connection."),
                "kind": _place("What was counted: produce, fetch, request, mutation or connection."),
                "amount": _place("How much: bytes, time of a thread, partitions, connections."),
                "throttled": _place("Whether a quota throttled it when it was recorded: true or false."),
            },
            required=("ts", "broker", "kind", "amount"),
        ),
    },
    required=("columns",),
    attributes={"columns": "fields"},
)


def _traffic_mapping(_root: YamlMapping, _out: object, **values: Any) -> TrafficMapping:
    values.pop("name", None)
    return TrafficMapping(**values)


TRAFFIC_MAPPING: Final = ManifestShape(
    "TrafficMapping",
    "How the columns of Parquet or CSV files become recorded traffic. Given with --mapping.",
    metadata=RecordShape(None, "Words for people.", {"name": TextShape("A name for people.")}),
    spec=_SPEC,
    make=_traffic_mapping,
)
