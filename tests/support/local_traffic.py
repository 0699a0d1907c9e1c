"""Recorded traffic, read and judged in this process.

Spark gives the same bytes of the same traffic (``tests/traffic/test_without_spark.py``), and a start and each of its jobs take
seconds. So the tests of what a backtest finds need none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.traffic.traffic_files import Traffic
    from reconciler.traffic.traffic_source import TrafficSource


def open_here(traffic: Traffic, *, log_timezone: str = "UTC", **options: Any) -> TrafficSource:
    """As ``open_traffic`` with these options."""
    from reconciler.traffic.opened_traffic import open_traffic

    return open_traffic(traffic, no_spark, log_timezone=log_timezone, in_process=True, **options)


def open_anywhere(traffic: Traffic, spark: SparkSession | None, *, log_timezone: str = "UTC", **options: Any) -> TrafficSource:
    """On ``spark``, if it is given."""
    from reconciler.traffic.opened_traffic import open_traffic

    if spark is None:
        return open_here(traffic, log_timezone=log_timezone, **options)
    return open_traffic(traffic, lambda: spark, log_timezone=log_timezone, **options)


def no_spark() -> SparkSession:
    """In place of a function that starts Spark."""
    raise AssertionError("this test needs no Spark")
