"""``backtest_frame`` on the session of a program: the numbers of the command, and a session that stays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reconciler import client
from reconciler.errors import TrafficError, UsageError
from tests.support import all_kinds
from tests.support.command import Command
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.recorded_parquet import Flow, write_traffic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reconciler.client import BacktestReport

pytestmark = pytest.mark.spark

LIMITS = (
    ({"user": "alice"}, {"producer_byte_rate": "8KiB", "request_percentage": 12}),
    ({"user": "ops"}, {"controller_mutation_rate": 4}),
    ({"ip": "10.0.0.7"}, {"connection_creation_rate": 2}),
)
RULES = {"backtest": {"history": {"hours": 0}, "fail": [{"verdicts": ["throttled"]}]}}
CURRENT = {client.entity(user="alice"): {"producer_byte_rate": 20_000.0}}
FOREIGN = {
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.shuffle.partitions": "7",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "17",
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.caseSensitive": "true",
}
"""Of a platform that is as different from the settings of the command as settings can be."""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas" / "quotas.yaml").write_text(quotas(*LIMITS), "utf-8")
    (tmp_path / "quotas" / "cluster.yaml").write_text(cluster(**RULES), "utf-8")
    (tmp_path / "now.json").write_text(snapshot(CURRENT), "utf-8")
    all_kinds.write(tmp_path / "traffic.parquet", all_kinds.rows())
    return tmp_path


@pytest.fixture(params=[pytest.param("as it is", marks=pytest.mark.large), "of a platform"])
def session(spark: SparkSession, request: pytest.FixtureRequest) -> SparkSession:
    """Of a program that has started Spark."""
    own = spark.newSession()
    for name, value in FOREIGN.items() if request.param == "of a platform" else ():
        own.conf.set(name, value)
    return own


def judge(session: SparkSession, work: Path, traffic: object = None, **options: Any) -> BacktestReport:
    """Of the manifests and the snapshot in ``work``. ``traffic``: by default the file there."""
    traffic = session.read.parquet(str(work / "traffic.parquet")) if traffic is None else traffic
    quotas = client.manifests([work / "quotas"], snapshot=work / "now.json")
    return quotas.backtest_frame(session, traffic, **options)  # type: ignore[arg-type]  # wrong ones are refused


def without_files(document: Mapping[str, Any]) -> dict[str, Any]:
    provenance = {name: value for name, value in document["provenance"].items() if name != "files"}
    return {**document, "provenance": provenance}


def commands_report(command: Command, work: Path, *options: str) -> dict[str, Any]:
    done = command(
        "backtest", "quotas", "--current", "now.json", "--traffic", "traffic.parquet", *options, "--format", "json", cwd=work
    )
    assert done.code == 1, done.err
    document: dict[str, Any] = json.loads(done.out)
    return document


@pytest.mark.parametrize(
    ("session", "exact"),
    [
        ("as it is", False),
        pytest.param("as it is", True, marks=pytest.mark.large),
        ("of a platform", False),
        ("of a platform", True),
    ],
    indirect=["session"],
)
def test_the_numbers_are_those_of_the_command(session: SparkSession, work: Path, warm_command: Command, exact: bool) -> None:
    expected = commands_report(warm_command, work, *(["--exact"] if exact else []))

    judged = judge(session, work, exact=exact)

    assert judged.refused
    document = json.loads(re.sub(r'"file": "[^"]*/quotas/', '"file": "quotas/', client.to_json(judged)))
    assert without_files(document) == without_files(expected)
    assert [row.verdict.value for row in judged.verdicts] == [row["verdict"] for row in expected["verdicts"]]


def state_of(session: SparkSession) -> dict[str, Any]:
    """Everything of a session, its context and this process that a library could change."""
    context = session.sparkContext
    java: Any = context._jsc
    return {
        "settings": {row["key"]: row["value"] for row in session.sql("SET").collect()},
        "views": sorted((table.name, table.tableType) for table in session.catalog.listTables()),
        "databases": (session.catalog.currentCatalog(), session.catalog.currentDatabase()),
        "functions": len(session.catalog.listFunctions()),
        "cached": sorted(dict(java.getPersistentRDDs())),
        "streams": [stream.id for stream in session.streams.active],
        "parallelism": context.defaultParallelism,
        "context": (context.applicationId, dict(context.getConf().getAll())),
        "files": (sorted(context.listFiles), sorted(context.listArchives)),
        "properties": [context.getLocalProperty(name) for name in PROPERTIES],
        "tags": context.getJobTags(),
        "active": type(session).getActiveSession(),
        "folder": (Path.cwd(), sorted(Path.cwd().iterdir())),
    }


PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel", "spark.scheduler.pool")


@pytest.mark.large
def test_the_session_stays_as_it_was(session: SparkSession, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(work)
    session.range(3).createOrReplaceTempView("mine")
    kept = session.range(5).cache()
    kept.count()
    # PySpark itself makes a session the active one when a frame is created from values.
    session.createDataFrame([(1,)], "number int")
    context = session.sparkContext
    context.setJobGroup("nightly", "the job of the notebook")
    try:
        before = state_of(session)
        judged = judge(session, work)
        assert judged.verdicts
        assert state_of(session) == before
        with pytest.raises(TrafficError):
            judge(session, work, session.read.parquet(str(work / "traffic.parquet")).limit(0))
        assert state_of(session) == before
        assert session.table("mine").count() == 3
        assert before["properties"][:2] == ["nightly", "the job of the notebook"]
    finally:
        for name in PROPERTIES:
            context.setLocalProperty(name, None)  # type: ignore[arg-type]  # removes it
        kept.unpersist()
        session.catalog.dropTempView("mine")


@pytest.fixture
def recorded(session: SparkSession, work: Path) -> DataFrame:
    """One user's minute, of which the limit is exceeded in the first half."""
    flows = (Flow(user="alice", amount=20_000, end_s=30), Flow(user="alice", amount=10, begin_s=30))
    write_traffic(work / "traffic.parquet", flows)
    return session.read.parquet(str(work / "traffic.parquet"))


def test_a_table_by_its_name_gives_what_its_frame_gives(session: SparkSession, recorded: DataFrame, work: Path) -> None:
    recorded.createOrReplaceTempView("traffic_of_today")
    try:
        by_name = judge(session, work, "traffic_of_today")
    finally:
        session.catalog.dropTempView("traffic_of_today")
    assert client.to_json(by_name) == client.to_json(judge(session, work, recorded))


def refusals(session: SparkSession, recorded: DataFrame) -> Iterator[tuple[dict[str, Any], type[Exception], str]]:
    from pyspark.sql import functions as F  # noqa: N812 - what all of Spark's own documentation calls its functions

    yield {"traffic": recorded.toPandas()}, UsageError, "not DataFrame"
    yield {"traffic": 7}, UsageError, "not int"
    yield {"traffic": "no_such_table"}, TrafficError, "no_such_table"
    yield {"traffic": recorded.drop("broker")}, TrafficError, "needs the column 'broker'"
    yield {"traffic": recorded.drop(*recorded.columns[:8])}, TrafficError, "needs the column 'ts'"
    yield {"traffic": recorded.withColumn("amount", recorded.amount.cast("string"))}, TrafficError, "string, not bigint"
    yield {"traffic": recorded.limit(0)}, TrafficError, "no rows"
    yield {"traffic": session.readStream.format("rate").load()}, UsageError, "is a stream"
    deltas = recorded.withColumn("semantics", F.lit("delta")).withColumn("interval_ms", F.lit(1000))
    yield {"traffic": deltas, "exact": True}, UsageError, "leave exact out"
    broken = recorded.withColumn("amount", (recorded.amount / (recorded.amount - recorded.amount)).cast("bigint"))
    yield (
        {"traffic": broken},
        TrafficError,
        "DataFrame" if session.conf.get("spark.sql.ansi.enabled") == "false" else "this session",
    )


def test_what_cannot_work_is_a_sentence(session: SparkSession, recorded: DataFrame, work: Path) -> None:
    for options, kind, words in refusals(session, recorded):
        with pytest.raises(kind, match=re.escape(words)) as refused:
            judge(session, work, **{"traffic": recorded, **options})
        assert "\n\tat " not in str(refused.value)
