"""``kafka-quotas compact``: recorded traffic to small per-second totals that backtest judges quickly."""

from __future__ import annotations

import argparse
import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import exit_codes, options, output
from reconciler.cli.arguments import OutputArguments, typed
from reconciler.cli.traffic_options import (
    add_known_clients_option,
    add_prometheus_options,
    add_reading_options,
    add_spark_options,
    prometheus_request,
)

if TYPE_CHECKING:
    from reconciler.formats import Json
    from reconciler.model import Message
    from reconciler.render import Line
    from reconciler.traffic import SmallerDay
    from reconciler.workflows import CompactResult, PrometheusRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactArguments(OutputArguments):
    """The command line of ``compact``."""

    traffic: tuple[str, ...]
    since: datetime.datetime | None
    until: datetime.datetime | None
    match: tuple[str, ...]
    http_config: str | None
    folder: str
    replace: bool
    log_timezone: str
    mapping: str | None
    known_clients: str | None
    max_unreadable: float
    master: str | None
    remote: str | None
    memory: str
    conf: tuple[str, ...]
    properties_file: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``compact``."""
    group = options.section(parser, "Traffic")
    group.add_argument(
        "--traffic",
        action="append",
        required=True,
        metavar="SOURCE",
        help="read request logs ([BROKER=]PATH), or Parquet in the canonical traffic schema, as backtest does (repeatable). Of a "
        "Prometheus server (prometheus+http(s)://HOST[:PORT][/PATH]) the folder gets the samples themselves",
    )
    parser.add_argument(
        "--folder",
        required=True,
        metavar="DIR",
        help="write the totals, or samples of Prometheus, into this folder, beside those of earlier runs. To an address "
        "(file://, s3a://, hdfs://) or table:CATALOG.DB.TABLE, Spark writes the totals by day",
    )
    parser.add_argument(
        "--replace", action="store_true", help="write days also if the address or table has more of them than --traffic"
    )
    add_known_clients_option(parser)
    add_prometheus_options(parser, store=False)
    add_reading_options(parser)
    add_spark_options(parser)
    options.add_output_options(parser)


def parse(namespace: argparse.Namespace) -> CompactArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(CompactArguments, namespace)


def run(args: CompactArguments) -> int:
    """Compact what is new, or days, and report how much that was; 0."""
    from reconciler.workflows import CompactOptions, compact_traffic

    prometheus = _prometheus_request(args)
    chosen = CompactOptions(
        traffic=tuple(args.traffic),
        folder=args.folder,
        since=args.since if prometheus is None else None,
        until=args.until if prometheus is None else None,
        replace=args.replace,
        master=args.master,
        remote=args.remote,
        memory=args.memory,
        spark_conf=args.conf,
        spark_properties=Path(args.properties_file) if args.properties_file else None,
        log_timezone=args.log_timezone,
        mapping=Path(args.mapping) if args.mapping else None,
        max_unreadable=args.max_unreadable,
        known_clients=Path(args.known_clients) if args.known_clients else None,
        prometheus=prometheus,
    )
    result = compact_traffic(chosen, progress=output.StderrProgress(every_s=30.0))
    folder = args.folder
    output.print_result(args, document=lambda: _document(result), lines=lambda: _lines(result, folder))
    return exit_codes.DONE


def _prometheus_request(args: CompactArguments) -> PrometheusRequest | None:
    from reconciler.workflows import is_prometheus

    of_server = any(map(is_prometheus, args.traffic))
    return prometheus_request(
        args.traffic,
        since=args.since if of_server else None,
        until=args.until if of_server else None,
        match=args.match,
        http_config=args.http_config,
        store=args.folder,
        store_option=None,
    )


def _document(result: CompactResult) -> dict[str, Json]:
    from reconciler.formats import FORMAT_VERSION

    document: dict[str, Json] = {
        "format_version": FORMAT_VERSION,
        "compacted": list(result.compacted),
        "known": list(result.known),
        "empty": list(result.empty),
        "requests": result.requests,
        "copies": result.copies,
    }
    if result.segments is not None:
        document["segments"] = result.segments
    if result.samples is not None:
        document["samples"] = result.samples
    if result.days is not None:
        document["days"] = [day.isoformat() for day in result.days]
        document["left_out"] = [
            {"date": day.date.isoformat(), "broker": day.broker, "kind": day.kind, "before": day.before, "now": day.now}
            for day in result.left_out
        ]
    return document


def _lines(result: CompactResult, folder: str) -> tuple[Line, ...]:
    from reconciler.model import display_name
    from reconciler.render import line
    from reconciler.text import count_of

    where = display_name(folder)
    if result.samples is not None:
        read, known = len(result.compacted), len(result.known)
        summary = f"Read {result.samples:,} samples in {count_of(read, 'hour')} into {where}."
        verb = "is" if known == 1 else "are"
        earlier = [line(f"{count_of(known, 'hour')} had been read before and {verb} complete.")] if known else []
        return (line(summary), *earlier, *map(line, result.notes))
    done = count_of(len(result.compacted), "file") if result.days is None else count_of(len(result.days), "day")
    lines = [line(f"Compacted {done} with {result.requests:,} charged requests into {where}.")]
    if result.copies:
        lines.append(line(f"{result.copies:,} lines have the connection, number and time of another line and count once."))
    if result.known:
        lines.append(line(f"{len(result.known)} files had been compacted before and are as long as then."))
    if result.empty:
        lines.append(line(f"{len(result.empty)} files have no whole line yet."))
    lines.extend(line(_left_out(day)) for day in result.left_out)
    return tuple(lines)


def _left_out(day: SmallerDay) -> Message:
    from reconciler.model import compose, flag_part
    from reconciler.text import count_of

    return compose(
        "Left out {date}: there are {before} of kind {kind} for broker {broker} already, and this traffic has {now}. Give all "
        "traffic of the day, or replace it with {option}.",
        date=day.date.isoformat(),
        before=count_of(day.before, "request"),
        kind=day.kind,
        broker=day.broker,
        now=f"{day.now:,}",
        option=flag_part("--replace"),
    )
