"""The Spark session of the tests of traffic."""

from __future__ import annotations

from tests.traffic.conftest import spark, warm_command

__all__ = ["spark", "warm_command"]
