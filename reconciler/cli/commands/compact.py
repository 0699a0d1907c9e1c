"""``kafka-quotas compact``: recorded traffic to a small folder of per-second totals that backtest judges quickly."""

from __future__ import annotations

import argparse
import datetime
import signal
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
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.formats import Json
    from reconciler.model import Message
    from reconciler.render import Line
    from reconciler.traffic import LateRows
    from reconciler.workflows import CompactResult, DaysResult


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactArguments(OutputArguments):
    """The command line of ``compact``."""

    traffic: tuple[str, ...]
    since: datetime.datetime | None
    until: datetime.datetime | None
    match: tuple[str, ...]
    http_config: str | None
    folder: str | None
    out: str | None
    replace: bool
    keep: int | None
    follow: bool
    once: bool
    checkpoint: str | None
    every: float
    consumer_config: str | None
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
    options.section(parser, "Traffic").add_argument(
        "--traffic",
        action="append",
        required=True,
        metavar="SOURCE",
        help="read request logs ([BROKER=]PATH), or Parquet in the canonical traffic schema, as backtest does (repeatable). Of a "
        "Prometheus server (prometheus+http(s)://HOST[:PORT][/PATH]) the folder gets the samples themselves",
    )
    add_known_clients_option(parser)
    add_prometheus_options(parser, store=False)
    options.add_days_options(parser)
    add_reading_options(parser)
    add_spark_options(parser)
    options.add_output_options(parser)


def parse(namespace: argparse.Namespace) -> CompactArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(CompactArguments, namespace)


def run(args: CompactArguments) -> int:
    """Compact what is new and state how much that was; 0."""
    from reconciler.workflows import CompactOptions, compact_traffic

    if args.out is not None:
        return _run_days(args, args.out)
    _refuse_options_of_days(args)
    assert args.folder is not None
    chosen = CompactOptions(
        traffic=tuple(args.traffic),
        folder=Path(args.folder),
        master=args.master,
        remote=args.remote,
        memory=args.memory,
        spark_conf=args.conf,
        spark_properties=Path(args.properties_file) if args.properties_file else None,
        log_timezone=args.log_timezone,
        mapping=Path(args.mapping) if args.mapping else None,
        max_unreadable=args.max_unreadable,
        known_clients=Path(args.known_clients) if args.known_clients else None,
        prometheus=prometheus_request(
            args.traffic,
            since=args.since,
            until=args.until,
            match=args.match,
            http_config=args.http_config,
            store=args.folder,
            store_option=None,
        ),
    )
    result = compact_traffic(chosen, progress=output.StderrProgress(every_s=30.0))
    folder = args.folder
    output.print_result(args, document=lambda: _document(result), lines=lambda: _lines(result, folder))
    return exit_codes.DONE


def _refuse_options_of_days(args: CompactArguments) -> None:
    given = {
        "--replace": args.replace, "--keep": args.keep, "--follow": args.follow, "--once": args.once,
        "--checkpoint": args.checkpoint, "--consumer-config": args.consumer_config,
    }  # fmt: skip
    for option, value in given.items():
        if value:
            raise UsageError(f"{option} is for --out only")


def _run_days(args: CompactArguments, out: str) -> int:
    """Write days of a dataset once, or until a signal; 0, and 130 after SIGINT."""
    from reconciler.workflows import DaysOptions, compact_into_lake

    chosen = DaysOptions(
        traffic=tuple(args.traffic),
        out=out,
        since=args.since,
        until=args.until,
        replace=args.replace,
        keep_days=args.keep,
        follow=args.follow,
        once=args.once,
        checkpoint=args.checkpoint,
        every_s=args.every,
        consumer_config=Path(args.consumer_config) if args.consumer_config else None,
        master=args.master,
        remote=args.remote,
        memory=args.memory,
        spark_conf=args.conf,
        spark_properties=Path(args.properties_file) if args.properties_file else None,
        log_timezone=args.log_timezone,
        mapping=Path(args.mapping) if args.mapping else None,
        max_unreadable=args.max_unreadable,
    )
    if args.match or args.http_config or args.known_clients:
        raise UsageError("--match, --http-config and --known-clients are for --traffic prometheus+http(s)://HOST only")
    result = compact_into_lake(chosen, progress=output.StderrProgress(every_s=30.0))
    output.print_result(args, document=lambda: _days_document(result), lines=lambda: _days_lines(result, out))
    return exit_codes.INTERRUPTED if result.signal == signal.SIGINT else exit_codes.DONE


def _days_document(result: DaysResult) -> dict[str, Json]:
    return {
        "format_version": "1.1",
        "compacted": list(result.compacted),
        "known": list(result.known),
        "empty": list(result.empty),
        "requests": result.requests,
        "copies": result.copies,
        "segments": result.sources,
        "days": list(result.days),
        "removed_days": list(result.removed),
        "added_late": result.added_late,
        "late": [
            {"source": rows.source, "date": rows.date, "requests": rows.requests, "missing": list(rows.missing)}
            for rows in result.late
        ],
        **({"batches": result.batches} if result.batches is not None else {}),
    }


def _late_text(rows: LateRows) -> Message:
    from reconciler.model import compose, flag_part, name_part
    from reconciler.text import list_some

    return compose(
        "Left out {requests} late requests of {date} in {source}. To count them, give {missing} too, or compute the day from the "
        "given traffic alone with {option}.",
        requests=rows.requests,
        date=rows.date,
        source=name_part(rows.source),
        missing=name_part(list_some(rows.missing, 1)),
        option=flag_part("--replace"),
    )


def _days_lines(result: DaysResult, out: str) -> tuple[Line, ...]:
    from reconciler.model import display_name
    from reconciler.render import line
    from reconciler.text import count_of

    where = display_name(out)
    if result.batches is not None:
        read = count_of(result.batches, "batch", "batches")
    else:
        read = count_of(len(result.compacted), "source")
    days = f" in {count_of(len(result.days), 'day')}" if result.days else ""
    lines = [line(f"Compacted {read} with {result.requests:,} charged requests{days} into {where}.")]
    if result.known:
        lines.append(line(f"{count_of(len(result.known), 'source')} had been compacted before."))
    if result.empty:
        lines.append(line(f"{count_of(len(result.empty), 'file')} had no whole line yet."))
    if result.copies:
        lines.append(line(f"{count_of(result.copies, 'row')} repeated another line, and counted once."))
    if result.added_late:
        lines.append(line(f"{count_of(result.added_late, 'request')} came late, and were added to earlier days."))
    if result.removed:
        lines.append(line(f"Removed {count_of(len(result.removed), 'day')}, the last {result.removed[-1]}."))
    lines.extend(line(_late_text(rows)) for rows in result.late)
    return tuple(lines)


def _document(result: CompactResult) -> dict[str, Json]:
    from reconciler.formats import FORMAT_VERSION

    return {
        "format_version": FORMAT_VERSION,
        "compacted": list(result.compacted),
        "known": list(result.known),
        "empty": list(result.empty),
        "requests": result.requests,
        "copies": result.copies,
        "segments": result.segments,
        **({"samples": result.samples} if result.samples is not None else {}),
    }


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
    lines = [line(f"Compacted {len(result.compacted)} files with {result.requests:,} charged requests into {where}.")]
    if result.copies:
        lines.append(line(f"{result.copies:,} lines have the connection, number and time of another line and count once."))
    if result.known:
        lines.append(line(f"{len(result.known)} files had been compacted before and are as long as then."))
    if result.empty:
        lines.append(line(f"{len(result.empty)} files have no whole line yet."))
    return tuple(lines)
