"""``kafka-quotas compact``: recorded traffic to small per-second totals that backtest judges quickly."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import option_groups, output
from reconciler.cli.declaration import group, option
from reconciler.cli.results import Result
from reconciler.cli.traffic_options import (
    HTTP_CONFIG,
    LOG_TIMEZONE,
    MAPPING,
    MATCH,
    MAX_UNREADABLE,
    SINCE,
    TRAFFIC,
    UNTIL,
    SparkOptions,
)

if TYPE_CHECKING:
    from reconciler.features.compacting.compact import CompactResult
    from reconciler.render import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactArguments:
    """The command line of ``compact``."""

    traffic: tuple[str, ...] = option(
        "--traffic",
        **TRAFFIC,
        help="read this recorded traffic: request logs ([BROKER=]PATH), or Parquet in the canonical traffic schema, as backtest "
        "does (repeatable). Of a Prometheus server (prometheus+http(s)://HOST[:PORT][/PATH]) the folder gets the samples "
        "themselves",
        required=True,
    )
    folder: str = option(
        "--folder",
        required=True,
        metavar="DIR",
        help="write per-second totals into this folder, or samples of Prometheus, beside those of earlier runs. Spark writes "
        "totals by day to an address (file://, s3a://, hdfs://) or table:CATALOG.DB.TABLE",
    )
    keep: int | None = option(
        "--keep",
        type=int,
        metavar="DAYS",
        help="remove totals and samples of the folder that are more days older than the newest [default: none]",
    )
    replace: bool = option("--replace", help="write days also if the address or table has more of them than --traffic")
    since: datetime.datetime | None = option(
        "--since",
        **SINCE,
        help="read samples of Prometheus, or write the days of an address or a table, from this time on [default: 24 h before "
        "--until for Prometheus, else all]",
    )
    until: datetime.datetime | None = UNTIL
    match: tuple[str, ...] = MATCH
    http_config: Path | None = HTTP_CONFIG
    log_timezone: str = LOG_TIMEZONE
    mapping: Path | None = MAPPING
    max_unreadable: float = MAX_UNREADABLE
    spark: SparkOptions = group(SparkOptions)
    format: str = option_groups.format_option()


def run(args: CompactArguments) -> Result:
    """Compact what is new, or days, and report how much that was."""
    from reconciler.features.compacting.compact import COMPACT, compact_traffic

    with output.LiveProgress() as progress:
        result = compact_traffic(args, progress=progress)
    return Result(view=lambda: _lines(result, args.folder), document=lambda: COMPACT.write(result))


def _lines(result: CompactResult, folder: str) -> tuple[Line, ...]:
    from reconciler.model import display_name
    from reconciler.render import line
    from reconciler.text import count_of

    where = display_name(folder)
    removed = [line(f"Removed {count_of(result.removed, 'part')} of older days.")] if result.removed else []
    if result.samples is not None:
        read, known = len(result.compacted), len(result.known)
        summary = f"Read {result.samples:,} samples in {count_of(read, 'hour')} into {where}."
        verb = "is" if known == 1 else "are"
        earlier = [line(f"{count_of(known, 'hour')} had been read before and {verb} complete.")] if known else []
        return (line(summary), *earlier, *removed, *map(line, result.notes))
    done = count_of(len(result.compacted), "file") if result.days is None else count_of(len(result.days), "day")
    lines = [line(f"Compacted {done} with {result.requests:,} counted requests into {where}.")]
    if result.copies:
        lines.append(line(f"{result.copies:,} lines have the connection, number and time of another line and count once."))
    if result.known:
        known = len(result.known)
        verb = "is" if known == 1 else "are"
        lines.append(line(f"{count_of(known, 'file')} had been compacted before and {verb} as long as then."))
    if result.empty:
        verb = "has" if len(result.empty) == 1 else "have"
        lines.append(line(f"{count_of(len(result.empty), 'file')} {verb} no whole line yet."))
    return (*lines, *removed)
