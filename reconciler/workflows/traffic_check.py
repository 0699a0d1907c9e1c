"""Check the rows of a producer against the canonical traffic schema."""

from __future__ import annotations

import contextlib
import datetime
import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.errors import UsageError
from reconciler.model import ContractReport
from reconciler.ports import Progress
from reconciler.workflows.traffic_inputs import SparkPlace, read_trusted_mapping

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficCheckRequest:
    """What to check, and where Spark runs for addresses and tables."""

    traffic: tuple[str, ...]
    mapping: Path | None = None
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None
    max_unreadable: float = 0.01
    spark: SparkPlace = field(default_factory=SparkPlace)


def check_traffic(request: TrafficCheckRequest, *, now: datetime.datetime, progress: Progress | None = None) -> ContractReport:
    """Go through the rows. Spark starts for addresses and tables only.

    Raises ``UsageError`` for traffic without columns of its own, ``TrafficError`` for what cannot be opened, and
    ``MissingDependencyError`` without the packages.
    """
    from reconciler.traffic import (
        Between,
        check_contract,
        find_traffic,
        require_arrow,
        spark_with_progress,
    )

    require_arrow()
    since, until = request.since, request.until
    if since is not None and until is not None and until <= since:
        raise UsageError("The time between --since and --until is empty")
    mapping = read_trusted_mapping(request.mapping, None)
    between = None if since is None and until is None else Between.of(since, until)
    options = request.spark.session()
    with contextlib.ExitStack() as stack:

        def session() -> SparkSession:
            return stack.enter_context(spark_with_progress(options, progress))

        traffic = find_traffic(request.traffic, mapping, between=between)
        if progress is not None:
            progress.step("reading the rows")
        return check_contract(
            traffic,
            functools.cache(session),
            now=now,
            max_unreadable=request.max_unreadable,
            bounded=until is not None,
        )
