"""``kafka-quotas tool check-traffic``: whether the rows of a producer of recorded traffic are as they must be."""

from __future__ import annotations

import contextlib
import datetime
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.cli import exit_codes, output
from reconciler.cli.declaration import group
from reconciler.cli.option_groups import FAIL_ON, format_option
from reconciler.cli.results import Result
from reconciler.cli.traffic_options import MAX_UNREADABLE, UNTIL, SparkOptions, since_option, traffic_option
from reconciler.errors import UsageError
from reconciler.model import Severity
from reconciler.text import list_some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.features.traffic_check.checks import ContractReport


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTrafficArguments:
    """The command line of ``tool check-traffic``."""

    traffic: tuple[str, ...] = traffic_option(
        "check these rows: Parquet files or folders. Spark reads SCHEME://... and table:NAME (repeatable)", required=True
    )
    since: datetime.datetime | None = since_option("check rows after this time, with its offset [default: all]")
    until: datetime.datetime | None = UNTIL
    max_unreadable: float = MAX_UNREADABLE
    spark: SparkOptions = group(SparkOptions)
    fail_on: str = FAIL_ON
    format: str = format_option()


def run(args: CheckTrafficArguments) -> Result:
    """Check; exit 1 for a check that is as bad as ``--fail-on``."""
    from reconciler.features.traffic_check.checks import TRAFFIC_CHECK, contract_lines

    report = check_traffic(args, now=datetime.datetime.now(datetime.UTC))
    return Result(
        exit=exit_codes.NOT_DONE if report.fails(Severity(args.fail_on)) else exit_codes.DONE,
        view=lambda: tuple(contract_lines(report)),
        document=lambda: TRAFFIC_CHECK.write(report),
    )


def check_traffic(args: CheckTrafficArguments, *, now: datetime.datetime) -> ContractReport:
    """Go through the rows. Spark starts for addresses and tables only.

    Raises ``UsageError`` for traffic without columns of its own, ``TrafficError`` for what cannot be opened, and
    ``MissingDependencyError`` without the packages.
    """
    from reconciler.traffic import Between, SessionOptions, find_traffic, require_arrow, spark_with_progress

    require_arrow()
    from reconciler.features.traffic_check.checks import check_rows

    if args.since is not None and args.until is not None and args.until <= args.since:
        raise UsageError("The time between --since and --until is empty")
    between = None if args.since is None and args.until is None else Between.of(args.since, args.until)
    options = args.spark.session() or SessionOptions()
    with output.LiveProgress() as progress, contextlib.ExitStack() as stack:

        @functools.cache
        def session() -> SparkSession:
            return stack.enter_context(spark_with_progress(options, progress))

        traffic = find_traffic(args.traffic, between=between).listed(session)
        progress.step("reading the rows")
        schemas, rows = traffic.as_written(session, progress)
        return check_rows(list_some(traffic.files, 3), schemas, rows, now=now, max_unreadable=args.max_unreadable)
