"""Recorded traffic, read and judged in this process.

Spark gives the same bytes of the same traffic (``tests/traffic/test_without_spark.py``), and a start and each of its jobs take
seconds. So the tests of what a backtest finds need none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.traffic import Traffic
    from reconciler.traffic.request_traffic import TrafficSource


def open_here(traffic: Traffic, **options: Any) -> TrafficSource:
    """As ``open_traffic`` with these options, and those of ``Reading``. ``form``: how it will be judged."""
    return open_anywhere(traffic, None, **options)


def open_anywhere(traffic: Traffic, spark: SparkSession | None, **options: Any) -> TrafficSource:
    """On ``spark``, if it is given."""
    from reconciler.model import Form
    from reconciler.traffic import Reading, open_traffic

    reading = {name: options.pop(name) for name in ("log_timezone", "kinds") if name in options}
    how = Reading(by_seconds=options.pop("form", None) is Form.SECONDS, **reading)
    session = no_spark if spark is None else lambda: spark
    return open_traffic(traffic, session, how, in_process=spark is None, **options)


def no_spark() -> SparkSession:
    """In place of a function that starts Spark."""
    raise AssertionError("this test needs no Spark")
