"""The manifest of per-second totals: what a run wrote is read again, of this format and of the one before."""

from __future__ import annotations

import json

import pytest

from reconciler.errors import TrafficError
from reconciler.traffic.seconds.day_ledger import DayPart, LakeDay, LakeLedger, StreamPosition
from reconciler.traffic.seconds.day_manifest import manifest_text, parse_manifest

PARTS = tuple(DayPart(folder=f"date=2026-11-20/run={number}", rows=3, requests=number) for number in (4, 5))
LEDGER = LakeLedger(
    sequence=7,
    days={"2026-11-20": LakeDay.of_parts("2026-11-20", PARTS, late=1, written="2026-11-21T00:00:00+00:00", program="p")},
    streams={"s": StreamPosition(id="s", batch=3)},
    clusters=("c",),
    superseded=(("date=2026-11-20/run=1", "2026-11-20T00:00:00+00:00"),),
)


def text(**changes: object) -> str:
    written = json.loads(manifest_text(LEDGER, written="2026-11-21T00:00:00+00:00", program="p"))
    return json.dumps(written | changes)


def test_a_manifest_is_read_as_it_was_written() -> None:
    assert parse_manifest("m", text()) == LEDGER


def test_a_day_of_format_1_is_one_part() -> None:
    day = {
        "date": "2026-11-20", "folder": "date=2026-11-20/run=1", "rows": 3, "requests": 4, "late": 1, "sources": 1,
        "written": "", "program": "p",
    }  # fmt: skip
    (read,) = parse_manifest("m", text(format_version="1.0", days=[day])).days.values()
    assert read.parts == (DayPart(folder="date=2026-11-20/run=1", rows=3, requests=4),)
    assert (read.rows, read.requests, read.late) == (3, 4, 1)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (text(format_version="3.0"), "has format 3.0, of a newer version of this tool: update it"),
        (text(days=[{"date": "2026-11-20"}]), "is not a manifest of per-second totals"),
        ("{", "is not a manifest of per-second totals"),
    ],
)
def test_another_document_is_refused(document: str, words: str) -> None:
    with pytest.raises(TrafficError, match=words):
        parse_manifest("m", document)
