"""Compact: recorded traffic to a folder of cells, file by file, whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.errors import UsageError
from reconciler.ports import Progress

if TYPE_CHECKING:
    from reconciler.traffic import SourceFile, Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactOptions:
    """``traffic``: ``[BROKER=]PATH`` arguments. ``folder``: where the cells go; it may hold earlier ones."""

    traffic: tuple[str, ...]
    folder: Path
    master: str | None = None
    remote: str | None = None
    memory: str = "2g"
    log_timezone: str = "UTC"
    mapping: Path | None = None
    max_unreadable: float = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactResult:
    """Files by name: those that were compacted, those whose cells were there already, and those without a whole line yet."""

    compacted: tuple[str, ...]
    known: tuple[str, ...]
    empty: tuple[str, ...]
    requests: int
    """Of the files compacted now."""
    segments: int
    """In the folder, of this and earlier runs."""


def compact(options: CompactOptions, *, progress: Progress) -> CompactResult:
    """Add what is new to the folder.

    Raises ``UsageError`` for traffic that is cells already, ``MissingDependencyError`` without pyspark or Java, ``TrafficError``
    for traffic that cannot be used, ``FileAccessError`` when the folder cannot be written.
    """
    from reconciler.traffic import SessionOptions, require_packages, spark_with_progress

    require_packages()
    from reconciler.traffic import (
        CLUSTER,
        SegmentFolder,
        Source,
        compact_columns,
        find_traffic,
        look_first,
        read_mapping,
        read_rows,
    )
    from reconciler.traffic import compact as compact_rows

    traffic = find_traffic(options.traffic, read_mapping(options.mapping) if options.mapping else None)
    if traffic.cells is not None:
        raise UsageError(f"{traffic.cells} holds cells already, and no requests")
    folder = SegmentFolder(options.folder.resolve())
    sources, empty = _sources(traffic)
    there = {segment.id: segment for segment in folder.segments()}
    wanted = {p: s for p, s in sources.items() if s.id not in there or there[s.id].size != s.size}
    known = tuple(str(path) for path in sources if path not in wanted)
    requests = 0
    if wanted:
        chosen = traffic.only(wanted)
        look_first(chosen, log_timezone=options.log_timezone)
        where = SessionOptions(
            master=options.master, remote=options.remote, memory=options.memory, small=chosen.small, light=chosen.light
        )
        with spark_with_progress(where, progress) as spark:
            progress.step(f"compacting {len(wanted)} of {len(sources) + len(empty)} files")
            # This looks at the columns, too, whoever then reads the rows.
            rows = read_rows(
                chosen, spark, log_timezone=options.log_timezone, also=("file", CLUSTER) if chosen.logs else ("file",)
            )
            if chosen.source is Source.NORMAL_FORM:
                made = compact_columns(spark, wanted, folder, max_unreadable=options.max_unreadable)
            else:
                made = compact_rows(rows, wanted, folder, max_unreadable=options.max_unreadable)
            requests = sum(segment.requests for segment in made)
    return CompactResult(
        compacted=tuple(str(path) for path in wanted),
        known=known,
        empty=tuple(str(path) for path in empty),
        requests=requests,
        segments=len(folder.segments()),
    )


def _sources(traffic: Traffic) -> tuple[dict[Path, SourceFile], tuple[Path, ...]]:
    from reconciler.traffic import SourceFile, log_identity, parquet_identity

    files = [(Path(file), log.broker) for log in traffic.logs for file in log.files]
    found: dict[str, SourceFile] = {}
    empty: list[Path] = []
    for path, broker in [*files, *((Path(file), None) for file in traffic.parquet)]:
        identity = parquet_identity(path) if broker is None else log_identity(path, broker)
        if identity is None:
            empty.append(path)
            continue
        one = SourceFile(path=path, id=identity, size=path.stat().st_size)
        # The same log twice, whole and as it was when it was copied: the longer one has it all.
        found[identity] = max(found.get(identity, one), one, key=lambda file: file.size)
    return {one.path: one for one in found.values()}, tuple(empty)
