"""What a lake of per-second totals covers: its days with their parts and sources, and positions of streams. Pure.

``plan_files`` and ``plan_days`` decide what a run reads and which days it writes. A source counts once, and is known by what it
contains. A day takes further sources as they come. A day of a source that has grown is computed anew from all of
its sources, and only if all of them are given.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from reconciler.traffic.seconds.day_parts import choose_merged

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
class DayPart:
    """What one run wrote of a day. ``folder``: below the root of the dataset. ``shares``: of the sources whose rows it has."""

    folder: str
    rows: int
    requests: int
    shares: tuple[SourceShare, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeDay:
    """A day of the dataset. ``late``: requests added afterwards. ``parts``: where the dataset has folders.

    Two parts may have rows of the same second of a client, which add up.
    """

    date: str
    rows: int
    requests: int
    late: int
    written: str
    program: str
    shares: tuple[SourceShare, ...] = ()
    parts: tuple[DayPart, ...] = ()

    @classmethod
    def of_parts(cls, date: str, parts: Sequence[DayPart], *, late: int, written: str, program: str) -> LakeDay:
        """The day that these parts are."""
        return cls(
            date=date,
            rows=sum(part.rows for part in parts),
            requests=sum(part.requests for part in parts),
            late=late,
            written=written,
            program=program,
            shares=merge_shares(share for part in parts for share in part.shares),
            parts=tuple(parts),
        )


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

    @property
    def folders(self) -> frozenset[str]:
        """Those of all parts of all days."""
        return frozenset(part.folder for day in self.days.values() for part in day.parts)

    def with_shares(self, shares: Mapping[str, tuple[SourceShare, ...]]) -> LakeLedger:
        """The same with the sources of each folder."""
        days = {}
        for date, day in self.days.items():
            parts = tuple(replace(part, shares=shares[part.folder]) for part in day.parts)
            of_day = merge_shares(share for part in parts for share in part.shares)
            days[date] = replace(day, parts=parts, shares=of_day)
        return replace(self, days=days)

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
    """A day to write. ``add``: to what the dataset has of it, else in its place. ``sources``: the ids whose rows count now.

    ``kept``: parts of the day that stay as they are, beside the one to write. ``shares``: of the sources of what is written.
    """

    date: str
    add: bool
    sources: frozenset[str]
    shares: tuple[SourceShare, ...]
    late: int
    kept: tuple[DayPart, ...] = ()

    def merged(self, day: LakeDay | None) -> tuple[DayPart, ...]:
        """The parts of the day whose rows are written again."""
        return () if day is None or not self.add else tuple(part for part in day.parts if part not in self.kept)


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
    totals: Mapping[str, int] | None = None,
) -> DayPlan:
    """What to write of the shares that were ``read``, by day. ``gone``: names of files that are no longer where they were.

    ``totals``: how many each day gets at most; a day then keeps its parts where it can. Without, a day becomes one part. With
    ``anew``, all days are those of the shares alone. A file of a day that comes when another one of that day has gone is not
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
        base = None if whole or day is None or not day.shares else day
        kept = () if base is None or totals is None else _kept_parts(base, totals.get(date, 0))
        added = sum(map(requests_of, counted)) if base is not None and date < ledger.newest else 0
        writes.append(
            DayWrite(
                date=date,
                add=base is not None,
                sources=frozenset(share.source.id for share in counted),
                shares=merge_shares((*_shares_beside(base, kept), *counted)),
                late=added + (base.late if base is not None else 0),
                kept=kept,
            )
        )
    return DayPlan(writes=tuple(writes), late=tuple(late))


def _kept_parts(day: LakeDay, added: int) -> tuple[DayPart, ...]:
    merged = choose_merged([part.rows for part in day.parts], added)
    return tuple(part for place, part in enumerate(day.parts) if place not in merged)


def _shares_beside(day: LakeDay | None, kept: Collection[DayPart]) -> tuple[SourceShare, ...]:
    """What a day has of its sources, but for these parts."""
    if day is None or not kept:
        return () if day is None else day.shares
    return tuple(share for part in day.parts if part not in kept for share in part.shares)


def merge_shares(shares: Iterable[SourceShare]) -> tuple[SourceShare, ...]:
    """One share of each source: those of a stream are added up."""
    whole: dict[str, SourceShare] = {}
    for share in shares:
        earlier = whole.get(share.source.id)
        whole[share.source.id] = (
            share
            if earlier is None
            else replace(share, statuses=_sum(earlier.statuses, share.statuses), undated=_sum(earlier.undated, share.undated))
        )
    return tuple(whole.values())


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
