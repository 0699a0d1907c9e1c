"""Compact into a lake: recorded traffic to the days of a dataset or a table, on Spark, once or as it comes."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.errors import UsageError
from reconciler.ports import Progress

if TYPE_CHECKING:
    from reconciler.traffic import KafkaTopic, LakeRequest, LateRows, SessionOptions, Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class DaysOptions:
    """``out``: a path, an address or ``table:NAME``. ``since`` and ``until``: midnights of the days to write."""

    traffic: tuple[str, ...]
    out: str
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None
    replace: bool = False
    """Compute the days anew, from this traffic alone."""
    keep_days: int | None = None
    follow: bool = False
    once: bool = False
    checkpoint: str | None = None
    every_s: float = 60.0
    consumer_config: Path | None = None
    master: str | None = None
    remote: str | None = None
    memory: str = "2g"
    spark_conf: tuple[str, ...] = ()
    spark_properties: Path | None = None
    log_timezone: str = "UTC"
    mapping: Path | None = None
    max_unreadable: float = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class DaysResult:
    """What a run did. ``sources``: in the dataset, of this and earlier runs. ``signal``: what ended a stream, else 0."""

    compacted: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    requests: int = 0
    copies: int = 0
    sources: int = 0
    days: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    added_late: int = 0
    late: tuple[LateRows, ...] = ()
    batches: int | None = None
    signal: int = 0


def compact_into_lake(options: DaysOptions, *, progress: Progress) -> DaysResult:
    """Bring a dataset up to date. Raises ``UsageError``, ``MissingDependencyError`` and ``TrafficError``."""
    _require_options(options)
    from reconciler.traffic import require_packages

    require_packages()
    from reconciler.traffic import (
        LakeRequest,
        SessionOptions,
        find_traffic,
        parse_dataset,
        parse_topic,
        read_mapping,
        read_spark_settings,
    )

    request = LakeRequest(
        out=options.out,
        now=_now(),
        since=options.since,
        until=options.until,
        keep_days=options.keep_days,
        replace=options.replace,
        log_timezone=options.log_timezone,
        max_unreadable=options.max_unreadable,
    )
    _ = request.days  # refused before Spark starts
    topic = parse_topic(options.traffic[0])
    if topic is not None and not options.follow:
        raise UsageError(f"--traffic {topic} is for --follow. With --once too, the command ends when it has read everything")
    mapping = read_mapping(options.mapping) if options.mapping else None
    where = SessionOptions(
        master=options.master,
        remote=options.remote,
        memory=options.memory,
        # Not where Spark's own readers work for long: what Java compiles twice is faster then.
        light=options.once or (topic is None and (options.follow or not any(map(parse_dataset, options.traffic)))),
        settings=read_spark_settings(options.spark_conf, options.spark_properties),
    )
    if options.follow:
        source = topic or find_traffic([_as_address(options.traffic[0])], mapping)
        return _follow(source, request, options, where, progress)
    return _run(find_traffic(options.traffic, mapping), request, where, progress)


def _run(traffic: Traffic, request: LakeRequest, where: SessionOptions, progress: Progress) -> DaysResult:
    from reconciler.traffic import compact_days, spark_with_progress

    with spark_with_progress(where, progress) as spark:
        progress.step(f"compacting into {request.out}")
        result = compact_days(spark, traffic, request)
    written = result.written
    return DaysResult(
        compacted=tuple(source.name for source in written.read),
        known=tuple(source.name for source in written.known),
        empty=result.empty,
        requests=written.requests,
        copies=written.copies,
        sources=len(written.ledger.known_sources()),
        days=written.dates,
        removed=written.removed,
        added_late=written.added_late,
        late=written.late,
    )


def _follow(
    source: Traffic | KafkaTopic, request: LakeRequest, options: DaysOptions, where: SessionOptions, progress: Progress
) -> DaysResult:
    from reconciler.traffic import FollowOptions, follow, read_consumer_settings, spark_with_progress

    consumer = read_consumer_settings(options.consumer_config) if options.consumer_config else ()
    assert options.checkpoint is not None
    chosen = FollowOptions(checkpoint=options.checkpoint, once=options.once, every_s=options.every_s, consumer=consumer)
    with spark_with_progress(where, progress) as spark:
        progress.step(f"following {' '.join(options.traffic)} into {request.out}")
        done = follow(spark, source, request, chosen, clock=_now, tell=progress.step)
    return DaysResult(requests=done.requests, batches=done.batches, added_late=done.late, signal=done.signal)


def _require_options(options: DaysOptions) -> None:
    if options.remote is not None:
        raise UsageError("--out needs the driver of Spark in this process: give a --master that is not sc://")
    if not options.follow:
        of_streams = {"--once": options.once, "--checkpoint": options.checkpoint, "--consumer-config": options.consumer_config}
        for name, value in of_streams.items():
            if value:
                raise UsageError(f"{name} is for --follow only")
        return
    if options.checkpoint is None:
        raise UsageError("--follow needs --checkpoint: a folder of its own, where it keeps its position")
    if options.replace or options.since or options.until:
        raise UsageError("--replace, --since and --until are for a run without --follow")
    if len(options.traffic) > 1:
        raise UsageError("--follow reads one folder, one address, or kafka://HOST:PORT/TOPIC. Give --traffic once")


def _as_address(argument: str) -> str:
    """A local folder as Spark watches it."""
    from reconciler.traffic import address_of, parse_dataset, split_argument

    if parse_dataset(argument) is not None:
        return argument
    broker, path = split_argument(argument)
    address = address_of(path)
    return address if broker is None else f"{broker}={address}"


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
