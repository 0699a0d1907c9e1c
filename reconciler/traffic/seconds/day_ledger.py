"""What a lake of per-second totals covers: its days, the sources of each, and positions of streams. Pure.

``plan_files`` and ``plan_days`` decide what a run reads and which days it writes. A source counts once, and is known by what it
contains. A day takes further sources as they come. A day of a source that has grown is computed anew from all of
its sources, and only if all of them are given.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

FORMAT_VERSION: Final = "1.0"
"""Of the manifest. The number before the dot changes when readers may break."""
LOG: Final = "log"
"""A request log: it may grow, and is known by its first line."""
WHOLE: Final = "file"
"""A file that is written once, known by its length and its end."""
TABLE: Final = "table"
"""The rows of one day in a table. Its size is their number."""
STREAM: Final = "stream"
"""A topic, whose rows come batch by batch: its share of a day grows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeSource:
    """A file to read, or a table's day. ``name``: its path or address."""

    id: str
    name: str
    size: int
    kind: str = LOG


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceShare:
    """What one source has of one day. ``statuses`` counts its rows of this day by what they are."""

    source: LakeSource
    statuses: Mapping[str, int]
    days: tuple[str, ...]
    """All days of the source, so that one of which a day is missing is not taken for complete."""
    undated: Mapping[str, int] = field(default_factory=dict)
    """Rows without a time, in the share of the source's first day."""

    def to_json(self) -> dict[str, Any]:
        """As the manifest has it."""
        source = self.source
        return {
            "id": source.id, "name": source.name, "size": source.size, "kind": source.kind,
            "statuses": dict(self.statuses), "days": list(self.days), "undated": dict(self.undated),
        }  # fmt: skip

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> SourceShare:
        """The reverse of ``to_json``."""
        names = ("id", "name", "size", "kind")
        return cls(
            source=LakeSource(**{name: document[name] for name in names}),
            statuses=dict(document["statuses"]),
            days=tuple(document["days"]),
            undated=dict(document["undated"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeDay:
    """A day of the dataset. ``folder``: below its root, where the dataset has folders. ``late``: requests added afterwards."""

    date: str
    rows: int
    requests: int
    late: int
    written: str
    program: str
    folder: str = ""
    shares: tuple[SourceShare, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPosition:
    """The last batch of a stream that is in the dataset. ``id``: that of its checkpoint."""

    id: str
    batch: int
    source: str = ""
    checkpoint: str = ""
    latest_us: int = 0
    """The latest request so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeLedger:
    """One state of the dataset. ``sequence``: of the manifest, or the table's snapshot; 0 when there is nothing yet."""

    sequence: int = 0
    days: Mapping[str, LakeDay] = field(default_factory=dict)
    streams: Mapping[str, StreamPosition] = field(default_factory=dict)
    clusters: tuple[str, ...] = ()
    superseded: tuple[tuple[str, str], ...] = ()
    """Folders that later ones replaced, and since when."""

    @property
    def newest(self) -> str:
        """The newest day; empty when there is none."""
        return max(self.days, default="")

    def known_sources(self) -> dict[str, KnownSource]:
        """By id."""
        known: dict[str, KnownSource] = {}
        for day in self.days.values():
            for share in day.shares:
                source = known.setdefault(share.source.id, KnownSource(source=share.source, days=share.days))
                source.covered[day.date] = share
        return known


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSource:
    """A source that some day has."""

    source: LakeSource
    days: tuple[str, ...]
    covered: dict[str, SourceShare] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRange:
    """The days that a run may write: from ``first`` on, before ``end``, and none before ``oldest``."""

    first: str = ""
    end: str = ""
    oldest: str = ""

    def __contains__(self, day: str) -> bool:
        return day >= self.first and day >= self.oldest and (not self.end or day < self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePlan:
    """Which sources to read.

    ``fresh``: ids of those that are new or have grown. ``anew``: days to compute from all of their sources. ``blocked``: by
    source and day, those that are missing for that.
    """

    read: tuple[LakeSource, ...]
    fresh: frozenset[str]
    known: tuple[LakeSource, ...]
    anew: frozenset[str] = frozenset()
    blocked: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)


def plan_files(ledger: LakeLedger, given: Sequence[LakeSource], days: DayRange, *, anew: bool) -> FilePlan:
    """What to read of the sources that a run is given; with ``anew`` all of them."""
    if anew:
        return FilePlan(read=tuple(given), fresh=frozenset(source.id for source in given), known=())
    earlier, given_ids = ledger.known_sources(), {source.id for source in given}
    fresh, whole, blocked = set(), set(), {}
    for source in given:
        known = earlier.get(source.id) if source.kind != STREAM else None
        if known is None or any(day in days and day not in known.covered for day in known.days):
            fresh.add(source.id)
        for day in stale_days(known, source) if known is not None else ():
            fresh.add(source.id)
            if day not in days:
                continue
            if missing := missing_sources(ledger.days[day], given_ids):
                blocked[source.id, day] = missing
            else:
                whole.add(day)
    siblings = {share.source.id for day in whole for share in ledger.days[day].shares}
    read = tuple(source for source in given if source.id in fresh | siblings)
    known_now = tuple(source for source in given if source.id not in fresh)
    return FilePlan(read=read, fresh=frozenset(fresh), known=known_now, anew=frozenset(whole), blocked=blocked)


def stale_days(known: KnownSource, source: LakeSource) -> tuple[str, ...]:
    """The days that have the source as it was when it had another size."""
    return tuple(sorted(day for day, share in known.covered.items() if share.source.size != source.size))


def missing_sources(day: LakeDay, present: Collection[str]) -> tuple[str, ...]:
    """The names of sources of a day that are not among these ids."""
    return tuple(sorted(share.source.name for share in day.shares if share.source.id not in present))


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRows:
    """Rows of a source that are not in the dataset: of a day whose other sources were not given, or were replaced."""

    source: str
    date: str
    requests: int
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DayWrite:
    """A day to write. ``add``: to what the dataset has of it, else in its place. ``sources``: the ids whose rows count now."""

    date: str
    add: bool
    sources: frozenset[str]
    shares: tuple[SourceShare, ...]
    late: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DayPlan:
    """Which days to write, and what stays out."""

    writes: tuple[DayWrite, ...]
    late: tuple[LateRows, ...]


def plan_days(
    ledger: LakeLedger,
    files: FilePlan,
    read: Mapping[str, Sequence[SourceShare]],
    days: DayRange,
    *,
    gone: Collection[str] = (),
    anew: bool = False,
) -> DayPlan:
    """What to write of the shares that were ``read``, by day. ``gone``: names of files that are no longer where they were.

    With ``anew``, all days are those of the shares alone. A file of a day that comes when another one of that day has gone is not
    added: a job may have written that day again.
    """
    writes: list[DayWrite] = []
    late: list[LateRows] = []
    for date in sorted(day for day in read if day in days):
        day, whole = ledger.days.get(date), anew or date in files.anew
        counted: list[SourceShare] = []
        for share in read[date]:
            source = share.source
            before = next((s for s in day.shares if s.source.id == source.id), None) if day is not None else None
            if source.kind == STREAM:
                counted.append(share)
            elif missing := _missing(day, share, before, files, gone, whole=whole):
                more = requests_of(share) - (requests_of(before) if before is not None else 0)
                late.append(LateRows(source=source.name, date=date, requests=more, missing=missing))
            elif whole or before is None:
                counted.append(share)
            elif source.kind == TABLE and before.source.size != source.size:
                # It is the only source of this day.
                counted, whole = [share], True
        if not counted:
            continue
        kept = () if day is None or whole else day.shares
        added = sum(map(requests_of, counted)) if kept and date < ledger.newest else 0
        writes.append(
            DayWrite(
                date=date,
                add=bool(kept),
                sources=frozenset(share.source.id for share in counted),
                shares=tuple(_merged((*kept, *counted))),
                late=added + (day.late if day is not None and kept else 0),
            )
        )
    return DayPlan(writes=tuple(writes), late=tuple(late))


def _merged(shares: Iterable[SourceShare]) -> Iterable[SourceShare]:
    """One share of each source: those of a stream are added up."""
    whole: dict[str, SourceShare] = {}
    for share in shares:
        earlier = whole.get(share.source.id)
        whole[share.source.id] = (
            share
            if earlier is None
            else replace(share, statuses=_sum(earlier.statuses, share.statuses), undated=_sum(earlier.undated, share.undated))
        )
    return whole.values()


def _sum(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {name: first.get(name, 0) + second.get(name, 0) for name in sorted({*first, *second})}


def _missing(
    day: LakeDay | None,
    share: SourceShare,
    before: SourceShare | None,
    files: FilePlan,
    gone: Collection[str],
    *,
    whole: bool,
) -> tuple[str, ...]:
    """The sources that would be needed to count a share; none: it can be counted, or is already."""
    source = share.source
    if blocked := files.blocked.get((source.id, day.date if day is not None else "")):
        return blocked
    if day is None or whole:
        return ()
    names = [other.source.name for other in day.shares if other.source.id != source.id]
    if source.kind == TABLE and before is not None and before.source.size != source.size:
        return tuple(sorted(names))
    if source.kind == WHOLE and before is None:
        return tuple(sorted(name for name in names if name in gone))
    return ()


def table_day(table: str, date: str) -> str:
    """The id of a day of a table, as a source of its own."""
    return f"{table}-{date}"


def requests_of(share: SourceShare) -> int:
    """The charged requests of a share."""
    return share.statuses.get("charged", 0)


def oldest_day(today: datetime.date, keep_days: int | None) -> str:
    """The first day that is kept; empty: all are."""
    return "" if keep_days is None else (today - datetime.timedelta(days=keep_days)).isoformat()


def expired_days(ledger: LakeLedger, oldest: str) -> tuple[str, ...]:
    """The days before ``oldest``."""
    return tuple(sorted(day for day in ledger.days if day < oldest))


def changed_days(before: LakeLedger, after: LakeLedger, dates: Iterable[str]) -> tuple[str, ...]:
    """Those of ``dates`` that another writer has written or removed in between."""
    return tuple(date for date in sorted(dates) if before.days.get(date) != after.days.get(date))
