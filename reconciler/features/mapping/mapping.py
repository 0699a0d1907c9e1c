"""The mapping file: which columns of files, or which metrics of a server, have what the canonical traffic schema needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reconciler.errors import ManifestError, TrafficError, UsageError
from reconciler.formats import check
from reconciler.model import Finding, Severity, Span
from reconciler.traffic import END_US, FIRST_US, Kind, Measure, MetricRule, Traffic, check_zone
from reconciler.yaml import YamlMapping, YamlNode, read_yaml

if TYPE_CHECKING:
    import pyarrow as pa

_SCHEMA: Final = "traffic-mapping"
_NAMES: Final = ("user", "client_id", "ip")
_FORMATS: Final = {".parquet": "parquet", ".csv": "csv"}
_NEEDS_ONE: Final = ("broker", "kind", "amount", "interval", *_NAMES)


_TICKS_A_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Where one thing is: in a ``column``, or the same ``constant`` for all rows; ``how`` has the other settings."""

    column: str | None = None
    constant: str | int | float | None = None
    how: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficMapping:
    """``fields`` by the names of the schema. ``form``: ``parquet``, ``csv``, or ``None`` to go by the files' names.

    A mapping has either ``fields``, for files, or ``metrics``, for a metrics server.
    """

    fields: Mapping[str, Field]
    semantics: str = "event"
    form: str | None = None
    delimiter: str = ","
    metrics: tuple[MetricRule, ...] = ()

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

    def form_of(self, file: Path) -> str:
        """The format of a file by its name. Raises ``TrafficError`` for an unknown ending."""
        name = file.name.removesuffix(".gz").removesuffix(".zst")
        form = self.form or _FORMATS.get(Path(name).suffix)
        if form is None:
            raise TrafficError(
                f"recorded traffic {file}: its name ends neither in .parquet nor in .csv: set format in the mapping"
            )
        return form


def parse_mapping(content: bytes, path: str) -> TrafficMapping:
    """The mapping in a file's bytes; ``path`` names the file in messages. Raises ``ManifestError`` with all findings."""
    findings = tuple(_findings(content, path))
    if findings:
        first = findings[0]
        place = f"{path}:{first.span.line}:{first.span.column}" if first.span else str(path)
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        raise ManifestError(f"{place}: {first.message}{more}", findings=findings)
    root = read_yaml(content).documents[0]
    assert isinstance(root, YamlMapping)
    return _mapping(root.data["spec"])


def require_plausible_times(values: Sequence[str], ts: Field, file: str) -> None:
    """``values``: the first times of a file, as they are written.

    Raises ``TrafficError`` when the mapping's unit is wrong for all of them and another one fits, or when it has none.
    """
    unit = str(ts.how.get("unit", "text"))
    numbers = [_number(value) for value in values]
    if not numbers or any(number is None or _is_plausible(number, unit) for number in numbers):
        return
    first = numbers[0]
    fitting = [name for name in _TICKS_A_SECOND if first is not None and _is_plausible(first, name)]
    if not fitting:
        return
    read = f"the mapping reads it with unit: {unit}" if unit != "text" else "the mapping has no unit for it"
    raise TrafficError(
        f"recorded traffic {file}: column {str(ts.column)!r} has the time {values[0]!r}, and {read}, which is not a moment of "
        f"the years 2000 to 2099: write unit: {fitting[0]} at columns.ts"
    )


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,30}(\.\d{1,30})?", text.strip()) else None


def _is_plausible(number: float, unit: str) -> bool:
    ticks = _TICKS_A_SECOND.get(unit)
    return ticks is not None and FIRST_US <= number / ticks * 1e6 < END_US


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
    if "columns" not in _inside(root, "spec").items:
        return
    columns = _inside(root, "spec", "columns")
    for name in _NEEDS_ONE:
        node = columns.items.get(name)
        if isinstance(node, YamlMapping) and ("column" in node.items) == ("constant" in node.items):
            yield f"columns.{name}: give either column or constant", *columns.keys[name]
    ts, broker = _inside(columns, "ts"), columns.items["broker"]
    if "timezone" in ts.items:
        try:
            check_zone(str(ts.data["timezone"]), "timezone")
        except UsageError as error:
            yield str(error), *ts.keys["timezone"]
        if ts.data.get("unit", "text") != "text":
            yield "columns.ts: numbers since 1970 are UTC, and timezone is for text and timestamps", *ts.keys["timezone"]
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


def _mapping(spec: Any) -> TrafficMapping:
    fields = {
        name: Field(
            column=column.get("column"),
            constant=column.get("constant"),
            how={key: value for key, value in column.items() if key not in ("column", "constant")},
        )
        for name, column in spec.get("columns", {}).items()
    }
    return TrafficMapping(
        fields=fields,
        semantics=spec.get("semantics", "event"),
        form=spec.get("format"),
        delimiter=spec.get("delimiter", ","),
        metrics=tuple(map(_metric_rule, spec.get("metrics", ()))),
    )


def _metric_rule(spec: Any) -> MetricRule:
    return MetricRule(
        name=spec["name"],
        kind=Kind(spec["kind"]),
        measure=Measure(spec.get("measure", Measure.RATE)),
        user=spec.get("user"),
        client_id=spec.get("client_id"),
        ip=spec.get("ip"),
        broker=spec.get("broker"),
        is_plain=spec.get("names") == "plain",
    )
