"""``kafka-quotas compact``: recorded traffic to a small folder of per-second totals that backtest judges quickly."""

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
    from reconciler.render import Line
    from reconciler.workflows import CompactResult


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactArguments(OutputArguments):
    """The command line of ``compact``."""

    traffic: tuple[str, ...]
    since: datetime.datetime | None
    until: datetime.datetime | None
    match: tuple[str, ...]
    http_config: str | None
    folder: str
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
    options.add_folder_option(
        parser,
        required=True,
        text="write the totals, or samples of Prometheus, into this folder, beside those of earlier runs",
    )
    add_reading_options(parser)
    add_spark_options(parser)
    options.add_output_options(parser)


def parse(namespace: argparse.Namespace) -> CompactArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(CompactArguments, namespace)


def run(args: CompactArguments) -> int:
    """Compact what is new and state how much that was; 0."""
    from reconciler.workflows import CompactOptions, compact_traffic

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
    result = compact_traffic(chosen, progress=output.StderrProgress(args, every_s=30.0))
    output.print_result(args, document=lambda: _document(result), lines=lambda: _lines(result, args.folder))
    return exit_codes.DONE


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
        there = [line(f"{count_of(known, 'hour')} had been read before and {verb} complete.")] if known else []
        return (line(summary), *there, *map(line, result.notes))
    found = [line(f"Compacted {len(result.compacted)} files with {result.requests:,} charged requests into {where}.")]
    if result.copies:
        found.append(line(f"{result.copies:,} lines have the connection, number and time of another line and count once."))
    if result.known:
        found.append(line(f"{len(result.known)} files had been compacted before and are as long as then."))
    if result.empty:
        found.append(line(f"{len(result.empty)} files have no whole line yet."))
    return tuple(found)
