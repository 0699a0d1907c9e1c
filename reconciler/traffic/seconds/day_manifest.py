"""The manifest of a dataset of per-second totals as JSON (``schemas/days.v2.schema.json``). Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from reconciler.errors import TrafficError
from reconciler.formats import document_text
from reconciler.model import escaped
from reconciler.traffic.seconds.day_columns import SCHEMA_VERSION
from reconciler.traffic.seconds.day_ledger import DayPart, LakeDay, LakeLedger, SourceShare, StreamPosition

FORMAT_VERSION: Final = "2.0"
"""The number before the dot changes when readers may break. In 1.0, a day has one folder."""
_READ: Final = ("1", "2")
_SOURCES_VERSION: Final = "1.0"


def manifest_text(ledger: LakeLedger, *, written: str, program: str) -> str:
    """The document of a state. ``written``: when the run began that writes it."""
    document: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "schema_version": SCHEMA_VERSION,
        "sequence": ledger.sequence,
        "written": written,
        "program": program,
        "clusters": list(ledger.clusters),
        "days": [_day(day) for day in ledger.days.values()],
        "streams": [asdict(position) for _, position in sorted(ledger.streams.items())],
        "superseded": [{"folder": folder, "since": since} for folder, since in ledger.superseded],
    }
    return document_text(document)


def parse_manifest(name: str, text: str) -> LakeLedger:
    """The state of a document, without its sources. Raises ``TrafficError`` for another version, and for other text."""
    try:
        document = json.loads(text)
        version = str(document["format_version"])
        if version.partition(".")[0] not in _READ:
            raise TrafficError(f"{escaped(name)} has format {escaped(version)}, of a newer version of this tool: update it")
        days = (_parsed_day(day) for day in document["days"])
        return LakeLedger(
            sequence=document["sequence"],
            days={day.date: day for day in days},
            streams={stream["id"]: StreamPosition(**stream) for stream in document["streams"]},
            clusters=tuple(document["clusters"]),
            superseded=tuple((part["folder"], part["since"]) for part in document["superseded"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise TrafficError(
            f"{escaped(name)} is not a manifest of per-second totals ({escaped(str(error))}). Restore it, or remove it: the "
            "manifest before it is then in effect"
        ) from error


def sources_text(shares: tuple[SourceShare, ...]) -> str:
    """The sources of a part."""
    return document_text({"format_version": _SOURCES_VERSION, "sources": [share.to_json() for share in shares]})


def parse_sources(text: str) -> tuple[SourceShare, ...]:
    """The reverse of ``sources_text``."""
    return tuple(map(SourceShare.from_json, json.loads(text)["sources"]))


def _day(day: LakeDay) -> dict[str, Any]:
    parts = [{"folder": part.folder, "rows": part.rows, "requests": part.requests} for part in day.parts]
    return {
        "date": day.date, "parts": parts, "rows": day.rows, "requests": day.requests, "late": day.late,
        "sources": len(day.shares), "written": day.written, "program": day.program,
    }  # fmt: skip


def _parsed_day(day: Mapping[str, Any]) -> LakeDay:
    # In format 1, a day has the fields of its only part.
    parts = [DayPart(**{name: part[name] for name in ("folder", "rows", "requests")}) for part in day.get("parts", [day])]
    return LakeDay.of_parts(day["date"], parts, **{name: day[name] for name in ("late", "written", "program")})
