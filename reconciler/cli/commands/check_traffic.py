"""``kafka-quotas tool check-traffic``: whether the rows of a producer of recorded traffic are as they must be."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

from reconciler.cli import exit_codes, output
from reconciler.cli.declaration import group
from reconciler.cli.option_groups import FAIL_ON, format_option
from reconciler.cli.results import Result
from reconciler.cli.traffic_groups import MAX_UNREADABLE, UNTIL, SparkOptions, mapping_option, since_option, traffic_option


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTrafficArguments:
    """The command line of ``tool check-traffic``."""

    traffic: tuple[str, ...] = traffic_option(
        "check these rows: Parquet files or folders, with --mapping also CSV. Spark reads SCHEME://... and table:NAME "
        "(repeatable)",
        required=True,
    )
    mapping: Path | None = mapping_option("check the rows that this TrafficMapping makes of other columns")
    since: datetime.datetime | None = since_option("check rows after this time, with its offset [default: all]")
    until: datetime.datetime | None = UNTIL
    max_unreadable: float = MAX_UNREADABLE
    spark: SparkOptions = group(SparkOptions)
    fail_on: str = FAIL_ON
    format: str = format_option()


def run(args: CheckTrafficArguments) -> Result:
    """Check; exit 1 for a check that is as bad as ``--fail-on``."""
    from reconciler.documents import TRAFFIC_CHECK
    from reconciler.model import Severity
    from reconciler.render import contract_lines
    from reconciler.workflows import TrafficCheckRequest, check_traffic

    request = TrafficCheckRequest(
        traffic=args.traffic,
        mapping=args.mapping,
        since=args.since,
        until=args.until,
        max_unreadable=args.max_unreadable,
        spark=args.spark.place,
    )
    report = check_traffic(request, now=datetime.datetime.now(datetime.UTC), progress=output.StderrProgress())
    return Result(
        exit=exit_codes.NOT_DONE if report.fails(Severity(args.fail_on)) else exit_codes.DONE,
        view=lambda: contract_lines(report),
        document=lambda: TRAFFIC_CHECK.write(report),
    )
