"""Compact: recorded traffic to per-second totals, file by file in a folder, or day by day in a dataset of Spark."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli.traffic_options import prometheus_request
from reconciler.documents import VALUES, Document, row
from reconciler.errors import UsageError
from reconciler.model import Message
from reconciler.ports import Progress
from reconciler.workflows import PrometheusRequest, fetch_from_server, is_prometheus, read_trusted_mapping

if TYPE_CHECKING:
    from reconciler.features.compacting.command import CompactArguments
    from reconciler.traffic import Dataset, Segment, SegmentFolder, SourceFile, Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactResult:
    """Files by name: those that were compacted, those whose totals were there already, and those without a whole line yet."""

    compacted: tuple[str, ...]
    """Files, addresses and tables whose per-second totals were written."""
    known: tuple[str, ...] = ()
    """Files whose per-second totals were there, from as long a file. And copies of another file of this run."""
    empty: tuple[str, ...] = ()
    """Files without a whole line."""
    requests: int
    """Of the files compacted now."""
    copies: int
    """Lines of the files compacted now that are not counted, since another line is the same request."""
    segments: int | None = None
    """In the folder, of this and earlier runs."""
    days: tuple[datetime.date, ...] | None = None
    """Of a dataset, which were written."""
    samples: int | None = None
    """Of a metrics server, which were read now."""
    removed: int | None = None
    """Segments, or hours of samples, that --keep removed."""
    notes: tuple[Message, ...] = ()


def _pages(options: CompactArguments, request: PrometheusRequest, progress: Progress) -> CompactResult:
    """Gauges are moments, which no totals of seconds can be made of: each sample is kept."""
    if options.mapping is not None:
        raise UsageError("--mapping is for Parquet and CSV, and --traffic names a metrics server: leave --mapping out")
    request = replace(request, store=Path(options.folder))
    pages = fetch_from_server(request, now=datetime.datetime.now(datetime.UTC), progress=progress)
    return CompactResult(
        compacted=tuple(map(str, pages.pages_read)),
        known=tuple(str(file) for file in pages.files if file not in pages.pages_read),
        requests=0,
        copies=0,
        segments=0,
        samples=pages.samples,
        notes=pages.notes,
        removed=None if options.keep is None else _drop_pages(Path(options.folder), options.keep),
    )


def _drop_pages(folder: Path, days: int) -> int:
    """Remove hours of samples that are so many days older than the newest, by the names of their files."""
    pages = {path: moment for path in folder.rglob("*.parquet") if (moment := _hour_of(path)) is not None}
    newest = max(pages.values(), default=datetime.datetime.max)
    old = [path for path, moment in pages.items() if newest - moment > datetime.timedelta(days=days)]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def _hour_of(path: Path) -> datetime.datetime | None:
    try:
        return datetime.datetime.strptime(path.stem, "%Y-%m-%dT%H")
    except ValueError:
        return None


def compact_traffic(options: CompactArguments, *, progress: Progress) -> CompactResult:
    """Add what is new to the folder: small files in this process, large ones, or with a master given, on Spark.

    Raises ``UsageError`` for traffic that is per-second totals already, ``MissingDependencyError`` without the packages or, for
    large files, Java, ``TrafficError`` for traffic that cannot be used, ``FileAccessError`` when the folder cannot be written.
    """
    from reconciler.traffic import require_arrow

    require_arrow()
    if options.keep is not None and options.keep < 1:
        raise UsageError(f"--keep takes a number of days from 1 on, not {options.keep}")
    from reconciler.traffic import SegmentFolder, find_traffic, parse_dataset

    dataset = parse_dataset(options.folder)
    if (prometheus := _prometheus_request(options)) is not None:
        if dataset is not None:
            raise UsageError(f"--folder {dataset}: samples of Prometheus need a folder of this machine")
        return _pages(options, prometheus, progress)
    if dataset is not None and options.keep is not None:
        raise UsageError(f"--folder {dataset}: --keep is for a folder of this machine")
    if dataset is None and (options.since or options.until or options.replace):
        raise UsageError("--since, --until and --replace are for --folder with an address or a table, which is written by day")
    traffic = find_traffic(options.traffic, read_trusted_mapping(options.mapping, None))
    traffic.require_rows()
    if dataset is not None:
        return _write_days(traffic, dataset, options, progress)
    if traffic.datasets:
        raise UsageError(
            f"--folder {options.folder}: totals of {traffic.datasets[0]} are written by day, to an address or a table. Write "
            "file:///PATH for a folder of this machine"
        )
    folder = SegmentFolder(Path(options.folder).resolve())
    sources, empty = _sources(traffic)
    wanted = _files_to_read(sources, folder.segments())
    made: tuple[Segment, ...] = ()
    if wanted:
        chosen = traffic.only(wanted)
        chosen.look(options.log_timezone)
        made = _add(chosen, wanted, folder, options, progress, f"compacting {len(wanted)} of {len(sources) + len(empty)} files")
    return CompactResult(
        compacted=tuple(str(path) for path in wanted),
        known=tuple(str(path) for path in sources if path not in wanted),
        empty=tuple(str(path) for path in empty),
        requests=sum(segment.requests for segment in made),
        copies=sum(segment.summary.copies for segment in made),
        removed=None if options.keep is None else folder.drop_older(options.keep),
        segments=len(folder.segments()),
    )


def _prometheus_request(options: CompactArguments) -> PrometheusRequest | None:
    of_server = any(map(is_prometheus, options.traffic))
    return prometheus_request(
        options.traffic,
        since=options.since if of_server else None,
        until=options.until if of_server else None,
        match=options.match,
        http_config=options.http_config,
    )


def _write_days(traffic: Traffic, dataset: Dataset, options: CompactArguments, progress: Progress) -> CompactResult:
    """Write the days of a dataset on Spark, whatever the size of the traffic."""
    if dataset.broker is not None:
        raise UsageError(f"--folder {options.folder}: write the address without a broker")
    from reconciler.features.compacting.days import write_days
    from reconciler.traffic import require_packages, spark_with_progress

    require_packages()
    for option, moment in (("--since", options.since), ("--until", options.until)):
        if moment is not None and moment.astimezone(datetime.UTC).time() != datetime.time():
            raise UsageError(f"{option} {moment.isoformat()}: days are written whole. Write a midnight of UTC")
    # Spark itself adds up, sorts and writes: what Java compiles twice is faster then.
    where = replace(traffic.session(options.spark.session()), light=False)
    with spark_with_progress(where, progress) as spark:
        progress.step(f"compacting into {dataset}")
        return write_days(spark, traffic, dataset, options)


def _add(
    traffic: Traffic,
    files: Mapping[Path, SourceFile],
    folder: SegmentFolder,
    options: CompactArguments,
    progress: Progress,
    step: str,
) -> tuple[Segment, ...]:
    from reconciler.features.compacting.segments import Compaction
    from reconciler.traffic import CLUSTER, Kind, Reading, Source, spark_with_progress

    compaction = Compaction(files=files, folder=folder, max_unreadable=options.max_unreadable, of_logs=bool(traffic.logs))
    also = ("file", CLUSTER) if traffic.logs else ("file",)
    reading = Reading(log_timezone=options.log_timezone, kinds=tuple(Kind), also=also, progress=progress)
    where = options.spark.session()
    if traffic.stays_here(where, compacting=True):
        progress.step(step)
        return compaction.in_process(traffic.batches(reading))
    with spark_with_progress(traffic.session(where), progress) as spark:
        progress.step(step)
        if traffic.source is Source.NORMAL_FORM:
            return compaction.of_normal_form(spark)
        with contextlib.closing(traffic.rows_on(spark, reading)) as rows:
            return compaction.on_spark(rows)


def _files_to_read(sources: Mapping[Path, SourceFile], segments: Sequence[Segment]) -> dict[Path, SourceFile]:
    """Return the files that are new or have grown, and those that share lines with them: only together these count once.

    Raises ``UsageError`` when one of these is not given.
    """
    known = {segment.id: segment for segment in segments}
    paths = {source.id: path for path, source in sources.items()}
    wanted = {source.id for source in sources.values() if source.id not in known or known[source.id].size != source.size}
    shared = {segment.id: {segment.id, *segment.copies_of} for segment in segments if segment.copies_of}
    while more := {source_id for ids in shared.values() if ids & wanted for source_id in ids} - wanted:
        wanted |= more
    for missing in sorted(wanted - paths.keys()):
        with_it = " and ".join(
            sorted(str(paths[source_id]) for ids in shared.values() if missing in ids for source_id in ids & paths.keys())
        )
        raise UsageError(
            f"{with_it} has lines in common with {known[missing].source}, compacted earlier: give both files with --traffic, so "
            "that these lines count once"
        )
    return {path: source for path, source in sources.items() if source.id in wanted}


def _sources(traffic: Traffic) -> tuple[dict[Path, SourceFile], tuple[Path, ...]]:
    """Each log once, and the files that have no whole line yet."""
    newest: dict[str, SourceFile] = {}
    empty: list[Path] = []
    for file in traffic.files:
        source = traffic.source_file(file)
        if source is None:
            empty.append(Path(file))
            continue
        # The same log twice, whole and as it was when it was copied: the longer one has it all.
        newest[source.id] = max(newest.get(source.id, source), source, key=lambda file: file.size)
    return {file.path: file for file in newest.values()}, tuple(empty)


COMPACT: Final = Document(
    cls=CompactResult,
    name="compact",
    title="kafka-quotas compact",
    codec=VALUES.extended({CompactResult: row("compacted known empty requests copies segments? samples? removed? days?")}),
)
