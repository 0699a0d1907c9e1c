"""The mapping file: which columns of files have what the canonical traffic schema needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from reconciler.errors import ManifestError, UsageError
from reconciler.formats import ChoiceShape, FlagShape, FreeShape, ManifestShape, NumberShape, RecordShape, TextShape, check
from reconciler.model import Finding, Severity, Span
from reconciler.traffic import Kind, Traffic, check_zone
from reconciler.yaml import YamlMapping, YamlNode, read_yaml

if TYPE_CHECKING:
    import pyarrow as pa

_SCHEMA: Final = "traffic-mapping"
_NAMES: Final = ("user", "client_id", "ip")
_EITHER: Final = ({"required": ["column"]}, {"required": ["constant"]})


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Where one thing is: in a ``column``, or the same ``constant`` for all rows; ``how`` has the other settings."""

    column: str | None = None
    constant: str | int | float | None = None
    how: Mapping[str, Any] = field(default_factory=dict)


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

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of the canonical traffic schema, of a batch with these columns."""
        from reconciler.features.mapping.mapped import mapped_batch

        return mapped_batch(batch, self)

    def require_columns(self, where: str, columns: Sequence[str]) -> None:
        """Raise ``TrafficError`` when a column is missing. ``where`` has ``columns``."""
        from reconciler.features.mapping.mapped import require_mapped

        require_mapped([where], [columns], self)

    def traffic(self, arguments: Sequence[str]) -> Traffic:
        """The files that the arguments name. Raises ``TrafficError`` and ``UsageError``."""
        from reconciler.features.mapping.mapped import MappedTraffic

        return MappedTraffic.mapped(arguments, self)


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
        for message, line, column in _contradictions(root):
            yield finding("wrong-value", message, line, column)


def _contradictions(root: YamlMapping) -> Iterator[tuple[str, int, int]]:
    """Checks beyond the schema."""
    columns = _inside(root, "spec", "columns")
    ts, broker = _inside(columns, "ts"), columns.items["broker"]
    if "timezone" in ts.items:
        try:
            check_zone(str(ts.data["timezone"]), "timezone")
        except UsageError as error:
            yield str(error), *ts.keys["timezone"]
    if isinstance(broker, YamlMapping) and "pattern" in broker.items and (reason := _no_pattern(str(broker.data["pattern"]))):
        yield f"columns.broker: {reason}", *broker.keys["pattern"]
    spec = _inside(root, "spec")
    if spec.data.get("semantics", "event") != "event" and "interval" not in columns.items:
        yield "rows of counters and rates need columns.interval", *spec.keys["semantics"]


def _no_pattern(text: str) -> str:
    try:
        return "" if re.compile(text).groups else r"the pattern has no group, as (\d+)"
    except re.error as error:
        return f"this is not a regular expression: {error}"


def _inside(node: YamlNode, *path: str) -> YamlMapping:
    for part in path:
        assert isinstance(node, YamlMapping)
        node = node.items[part]
    assert isinstance(node, YamlMapping)
    return node


def _field(_node: YamlMapping, _out: object, **values: Any) -> Field:
    return Field(column=values.pop("column", None), constant=values.pop("constant", None), how=values)


def _words(*words: str) -> dict[str, str]:
    return dict(zip(words, words, strict=True))


_COLUMN: Final = TextShape("The name of the column in the files, to the letter.", name="column")
_NAME: Final = RecordShape(
    _field,
    "Whose it is. What has no value is not known.",
    {
        "column": _COLUMN,
        "constant": TextShape("The same for all rows.", min_length=0),
        "strip": TextShape("Text that is taken off where a name begins with it, such as the type of a principal."),
        "encoded": FlagShape("Whether names are percent-encoded, as in the tags of a broker's metrics."),
        "missing": ChoiceShape(_words("unknown", "empty"), "What no value means: not known (default), or an empty name."),
    },
    one_of=_EITHER,
    name="name",
)
_KIND: Final = ChoiceShape(_words(*Kind), "What was counted.", name="kind")
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
                "ts": RecordShape(
                    _field,
                    "When a broker counted a request, or the end of the interval.",
                    {
                        "column": _COLUMN,
                        "unit": ChoiceShape(
                            _words("text", "s", "ms", "us", "ns"),
                            "Of numbers since 1970, UTC. text (default): a timestamp, or text such as 2026-11-21 13:00:00.123.",
                        ),
                        "timezone": TextShape("Of text and timestamps without an offset. UTC when omitted."),
                    },
                    required=("column",),
                ),
                "interval": RecordShape(
                    _field,
                    "How long a delta was counted. Of a gauge, the time since the sample before it.",
                    {
                        "column": _COLUMN,
                        "constant": NumberShape("The same for all rows.", exclusive_minimum=0),
                        "unit": ChoiceShape(_words("s", "ms"), "Seconds when omitted."),
                    },
                    one_of=_EITHER,
                ),
                "broker": RecordShape(
                    _field,
                    "The id of the broker that counted it.",
                    {
                        "column": _COLUMN,
                        "constant": NumberShape("The same for all rows.", "integer", minimum=0),
                        "pattern": TextShape(
                            r"A regular expression whose first group is the id within the text, as in kafka-(\d+)."
                        ),
                    },
                    one_of=_EITHER,
                ),
                **dict.fromkeys(_NAMES, _NAME),
                "kind": RecordShape(
                    _field,
                    "What was counted.",
                    {
                        "column": _COLUMN,
                        "constant": _KIND,
                        "values": FreeShape(
                            "What the words of the column mean. Rows with other words are left out and counted.",
                            {"type": "object", "minProperties": 1, "additionalProperties": _KIND},
                            nodes=(YamlMapping,),
                            parse=lambda node, _: node.data,
                        ),
                    },
                    one_of=_EITHER,
                ),
                "amount": RecordShape(
                    _field,
                    "How much: bytes, time of a thread, partitions, connections.",
                    {
                        "column": _COLUMN,
                        "constant": NumberShape("The same for all rows.", "integer", minimum=0),
                        "unit": ChoiceShape(
                            _words("B", "KB", "MB", "GB", "KiB", "MiB", "GiB", "ns", "us", "ms", "s"),
                            "Bytes or nanoseconds when omitted.",
                        ),
                    },
                    one_of=_EITHER,
                ),
                "throttled": RecordShape(
                    _field,
                    "Whether a quota throttled it when it was recorded: true or false.",
                    {"column": _COLUMN},
                    required=("column",),
                ),
            },
            required=("ts", "broker", "kind", "amount"),
            attributes={"client_id": "client_id"},
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
