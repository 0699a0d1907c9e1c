"""``kafka-quotas record``: a history of traffic from the metrics pages of brokers."""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path

from reconciler.cli import exit_codes, options
from reconciler.cli.arguments import typed
from reconciler.errors import UsageError

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordArguments:
    """The command line of ``record``."""

    log_format: str
    quiet: bool
    traffic: tuple[str, ...]
    folder: str
    http_config: str | None
    known_clients: str | None
    mapping: str | None
    interval: float
    timeout: float
    duration: float | None
    file_seconds: float
    keep: float
    max_size: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``record``."""
    traffic = options.section(parser, "Traffic")
    traffic.add_argument(
        "--traffic",
        action="append",
        required=True,
        metavar="[BROKER=]metrics+URL",
        help="read this metrics page, such as 3=metrics+http://kafka-3:7071/metrics (repeatable, one for each broker)",
    )
    options.add_folder_option(parser, required=True, text="write Parquet files into this folder, for --traffic of backtest")
    traffic.add_argument(
        "--http-config",
        metavar="FILE",
        help="take the login for the pages from this file, which has the form of Prometheus's own http_config",
    )
    traffic.add_argument(
        "--known-clients",
        metavar="FILE",
        help="look up these clients where an exporter leaves their names in metric names, JSON lines of user and client-id",
    )
    traffic.add_argument("--mapping", metavar="FILE", help="read metrics of other names too, as in this TrafficMapping")
    service = options.section(parser, "Service")
    service.add_argument(
        "--interval", metavar="SECONDS", type=float, default=5.0, help="read every page at this interval [default: %(default)g]"
    )
    service.add_argument(
        "--timeout", metavar="SECONDS", type=float, default=10.0, help="wait up to this long for a page [default: %(default)g]"
    )
    service.add_argument("--duration", metavar="SECONDS", type=float, help="stop after this time [default: run until a signal]")
    service.add_argument(
        "--file-seconds",
        metavar="SECONDS",
        type=float,
        default=300.0,
        help="begin a new file after this time [default: %(default)g]",
    )
    service.add_argument(
        "--keep", metavar="DAYS", type=float, default=7.0, help="remove files older than this [default: %(default)g]"
    )
    service.add_argument(
        "--max-size",
        metavar="SIZE",
        type=_size,
        default="10GiB",
        help="remove the oldest files when all of them are larger than this [default: %(default)s]",
    )
    options.section(parser, "Output").add_argument("-q", "--quiet", action="store_true", help="log problems only")
    options.add_diagnosis_options(parser)


def parse(namespace: argparse.Namespace) -> RecordArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(RecordArguments, namespace)


def run(args: RecordArguments) -> int:
    """Record until a signal or ``--duration``: 0, 130 after SIGINT, 4 when rows were lost to a full disk."""
    import signal

    from reconciler.features.service import LogFormat, RecordSettings, run_recorder
    from reconciler.workflows import SystemClock, exporter_targets

    _check(args)
    settings = RecordSettings(
        targets=exporter_targets(args.traffic),
        folder=Path(args.folder),
        interval_s=args.interval,
        timeout_s=args.timeout,
        file_s=args.file_seconds,
        keep_s=args.keep * _DAY_S,
        most_bytes=args.max_size,
        duration_s=args.duration or 0.0,
        http_config=Path(args.http_config) if args.http_config else None,
        known_clients=Path(args.known_clients) if args.known_clients else None,
        mapping=Path(args.mapping) if args.mapping else None,
        log_format=LogFormat(args.log_format),
        quiet=args.quiet,
    )
    end = run_recorder(settings, sys.stderr, clock=SystemClock())
    if end.signal == signal.SIGINT:
        return exit_codes.INTERRUPTED
    return exit_codes.PARTIAL if end.lost else exit_codes.DONE


def _size(text: str) -> int:
    from reconciler.formats import ValueRefusedError, parse_value
    from reconciler.model import QuotaKey

    try:
        return int(parse_value(QuotaKey.PRODUCER_BYTE_RATE, text).number)
    except ValueRefusedError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 10GiB") from error


def _check(args: RecordArguments) -> None:
    limits = {
        "interval": (1.0, 3600.0),
        "timeout": (0.1, 3600.0),
        "duration": (1.0, 366 * _DAY_S),
        "file_seconds": (1.0, 3600.0),
    }
    for name, (least, most) in limits.items():
        value = getattr(args, name)
        if value is not None and not (math.isfinite(value) and least <= value <= most):
            raise UsageError(f"--{name.replace('_', '-')} takes seconds from {least:g} to {most:,.0f}, not {value:g}")
    if not (math.isfinite(args.keep) and args.keep > 0):
        raise UsageError(f"--keep takes days above 0, not {args.keep:g}")
