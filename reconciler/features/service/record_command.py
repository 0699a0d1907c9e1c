"""``kafka-quotas record``: a history of traffic from the metrics pages of brokers."""

from __future__ import annotations

import logging
import math
import sys
from argparse import ArgumentTypeError
from dataclasses import dataclass
from pathlib import Path

from reconciler.cli import output
from reconciler.cli.declaration import option
from reconciler.cli.results import Result
from reconciler.errors import UsageError

DAY_S = 86_400.0


def _size(text: str) -> int:
    from reconciler.formats import ValueRefusedError, parse_value
    from reconciler.model import QuotaKey

    try:
        return int(parse_value(QuotaKey.PRODUCER_BYTE_RATE, text).number)
    except ValueRefusedError as error:
        raise ArgumentTypeError(f"{text!r} is not a size such as 10GiB") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordArguments:
    """The command line of ``record``."""

    traffic: tuple[str, ...] = option(
        "--traffic",
        section="Traffic",
        required=True,
        metavar="[BROKER=]metrics+URL",
        help="read this metrics page, such as 3=metrics+http://kafka-3:7071/metrics (repeatable, one for each broker)",
    )
    folder: Path = option(
        "--folder", required=True, metavar="DIR", help="write Parquet files into this folder, for --traffic of backtest"
    )
    http_config: Path | None = option(
        "--http-config",
        section="Traffic",
        metavar="FILE",
        help="take the login for the pages from this file, which has the form of Prometheus's own http_config",
    )
    interval: float = option(
        "--interval", section="Service", metavar="SECONDS", default=5.0, help="read every page at this interval [default: 5]"
    )
    duration: float | None = option(
        "--duration", section="Service", metavar="SECONDS", help="stop after this time [default: run until a signal]"
    )
    file_seconds: float = option(
        "--file-seconds",
        section="Service",
        metavar="SECONDS",
        default=300.0,
        help="begin a new file after this time [default: 300]",
    )
    keep: float = option(
        "--keep", section="Service", metavar="DAYS", default=7.0, help="remove files older than this [default: 7]"
    )
    max_size: int = option(
        "--max-size",
        section="Service",
        metavar="SIZE",
        type=_size,
        default="10GiB",
        help="remove the oldest files when all of them are larger than this [default: 10GiB]",
    )


def run(args: RecordArguments) -> Result:
    """Record until a signal or ``--duration``: 0, 130 after SIGINT, 4 when rows were lost to a full disk."""
    from reconciler.features.service.log import Log
    from reconciler.features.service.record import run_recorder

    _check(args)
    least = logging.WARNING if output.is_quiet() else logging.NOTSET
    log = Log(sys.stderr, as_json=output.log_format() == "json", least=least)
    return Result(exit=run_recorder(args, log))


def _check(args: RecordArguments) -> None:
    limits = {"interval": (1.0, 3600.0), "duration": (1.0, 366 * DAY_S), "file_seconds": (1.0, 3600.0)}
    for name, (least, most) in limits.items():
        value = getattr(args, name)
        if value is not None and not (math.isfinite(value) and least <= value <= most):
            raise UsageError(f"--{name.replace('_', '-')} takes seconds from {least:g} to {most:,.0f}, not {value:g}")
    if not (math.isfinite(args.keep) and args.keep > 0):
        raise UsageError(f"--keep takes days above 0, not {args.keep:g}")
