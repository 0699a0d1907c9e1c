"""One Spark session for all tests that need one."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconciler.formats.canonical import entity_from_json
from reconciler.model.entity import Entity
from tests.support.command import Command, invoke

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDINGS = Path(__file__).parent / "recordings"


def recorded_snapshot() -> str:
    """The quotas of the recording of Kafka 4.3.1, as a snapshot document."""
    snapshot = {
        "format_version": "1.0",
        "cluster": {"name": None, "id": None, "kafka_version": "4.3"},
        "observed": {"at": "2026-11-21T13:00:00Z", "from": "broker"},
        "entities": json.loads((RECORDINGS / "kafka-4.3.1" / "quotas.json").read_text(encoding="utf-8")),
    }
    return json.dumps(snapshot)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from reconciler.traffic.session import spark_session
    from reconciler.traffic.spark_setup import SessionOptions

    with (
        warnings.catch_warnings(),
        spark_session(SessionOptions(master="local[2]", settings=(("spark.driver.memory", "1g"),), small=True)) as session,
    ):
        yield session


@pytest.fixture(scope="session")
def warm_command(spark: SparkSession) -> Command:
    """``run`` for the tests of a command's results: it runs in this process, on the session that runs here anyway.

    What is about the process (its start, its streams, a Spark of its own, how it ends) is tested with ``run``.
    """
    assert spark
    return invoke


@pytest.fixture(params=["kafka-4.4.0", "kafka-4.3.1", "kafka-3.9.2"])
def recording(request: pytest.FixtureRequest) -> tuple[Path, dict[Entity, dict[str, float]]]:
    """A real broker's request log, and the quotas that held while it was written."""
    folder = RECORDINGS / request.param
    rows = json.loads((folder / "quotas.json").read_text(encoding="utf-8"))
    return folder / "kafka-request.log.gz", {entity_from_json(row["entity"]): row["quotas"] for row in rows}
