"""Small traffic is judged in the command's own process: the same bytes as with Spark, no Java, and early refusals."""

from __future__ import annotations

import datetime
import gzip
import itertools
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.documents import BACKTEST
from reconciler.model.entity import DEFAULT, Entity
from reconciler.traffic.kinds import Kind
from reconciler.traffic.traffic_files import SMALL_BYTES
from tests.support import all_kinds
from tests.support.command import Done, environment, invoke, run
from tests.support.manifests import quotas
from tests.traffic.conftest import RECORDINGS
from tests.traffic.log_lines import line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.traffic import Traffic

LOG = RECORDINGS / "kafka-4.3.1" / "kafka-request.log.gz"
EVERYBODY, ALICE, ADDRESS = Entity.of({"user": DEFAULT}), Entity.of({"user": "alice"}), Entity.of({"ip": DEFAULT})
CURRENT = {EVERYBODY: {"producer_byte_rate": 2e5, "consumer_byte_rate": 4e5, "request_percentage": 50.0}}
PROPOSED = {
    EVERYBODY: {
        "producer_byte_rate": 2e4,
        "consumer_byte_rate": 3e4,
        "request_percentage": 20.0,
        "controller_mutation_rate": 10.0,
    },
    ALICE: {"producer_byte_rate": 1e4, "consumer_byte_rate": 2e5},
    ADDRESS: {"connection_creation_rate": 3.0},
}
MAPPING = """apiVersion: kafka-quotas/v1
kind: TrafficMapping
spec:
  columns:
    ts: {column: time}
    broker: {column: host, pattern: 'kafka-(\\d+)'}
    user: {column: principal, pattern: "(?:User:)?(.*)"}
    client_id: {column: client}
    kind: {column: what, values: {Produce: produce, Fetch: fetch}}
    amount: {column: kb, unit: KiB}
"""
START = datetime.datetime(2026, 11, 21, 13, tzinfo=datetime.UTC)


def csv_lines(count: int, seed: int) -> list[str]:
    """Requests of three clients, a hole of three hours, and some rows that cannot be used."""
    chance = random.Random(seed)
    lines = []
    for _ in range(count):
        at = START + datetime.timedelta(seconds=chance.choice([0, 0, 0, 4 * 3600]), microseconds=chance.randrange(90_000_000))
        who, what = chance.choice(["User:alice", "User:bob", "CN=x"]), chance.choice(["Produce", "Produce", "Fetch"])
        lines.append(
            f'{at:%Y-%m-%d %H:%M:%S.%f},kafka-{chance.randrange(3)},{who},"a,{chance.randrange(2)}",{what},{chance.random() * 60}'
        )
    return [*lines, "yesterday,kafka-1,User:alice,a,Produce,1", f"{START:%Y-%m-%d %H:%M:%S},kafka-1,User:bob,,Metadata,1"]


HEADER = "time,host,principal,client,what,kb"


def mapped_csv(folder: Path) -> Traffic:
    (folder / "map.yaml").write_text(MAPPING, encoding="utf-8")
    for number in range(5):
        text = "\n".join([HEADER, *csv_lines(300, number)])
        (folder / f"{number}.csv").write_text(text + "\n" * (number % 2), encoding="utf-8")
    (folder / "9.csv.gz").write_bytes(gzip.compress(f"kb,{HEADER.removesuffix(',kb')}\n".encode()))
    return found(folder, mapping=folder / "map.yaml")


def mapped_sums(folder: Path) -> Traffic:
    fields = MAPPING.split("  columns:", maxsplit=1)[0] + "  semantics: delta\n  columns:\n"
    fields += "    ts: {column: t, unit: ms}\n    interval: {constant: 1}\n    broker: {constant: 3}\n    user: {column: u}\n"
    (folder / "map.yaml").write_text(fields + "    kind: {constant: produce}\n    amount: {column: n}\n", encoding="utf-8")
    first = int(START.timestamp() * 1000)
    lines = [f"{first + 1000 * second},u{second % 2},{(second % 7) * 90000}" for second in range(200)]
    (folder / "a.csv").write_text("\n".join(["t,u,n", *lines]), encoding="utf-8")
    return found(folder, mapping=folder / "map.yaml")


def normal_form(folder: Path) -> Traffic:
    all_kinds.write(folder / "all.parquet", all_kinds.rows())
    return found(folder)


def normal_form_without_ties(folder: Path) -> Traffic:
    all_kinds.write(folder / "all.parquet", all_kinds.rows())
    table = pq.read_table(folder / "all.parquet").drop_columns(["tie"])
    # Many requests of one microsecond: only the rows themselves can order them.
    whole = table.set_column(
        0,
        "ts",
        pa.array([moment.replace(microsecond=0) for moment in table.column("ts").to_pylist()], table.schema.field("ts").type),
    )
    pq.write_table(whole, folder / "all.parquet", row_group_size=100)
    return found(folder)


def request_logs(folder: Path) -> Traffic:
    for name in ("kafka-4.3.1", "kafka-3.9.2"):
        (folder / f"broker-{name[6]}-request.log.gz").write_bytes((RECORDINGS / name / "kafka-request.log.gz").read_bytes())
    return found(folder)


def found(*paths: Path, mapping: Path | None = None) -> Traffic:
    from reconciler.traffic import find_traffic
    from reconciler.workflows.traffic_inputs import read_trusted_mapping

    return find_traffic([str(path) for path in paths], read_trusted_mapping(mapping, None))


def report(spark: SparkSession, traffic: Traffic, *, in_process: bool, exact: bool, current: bool) -> tuple[str, list[str]]:
    from reconciler.traffic import Backtest, BacktestRequest, Reading, open_traffic
    from reconciler.traffic.traffic_source import Source

    asked = exact and traffic.source is Source.LOGS
    recorded = open_traffic(
        traffic,
        lambda: spark,
        Reading(log_timezone="Europe/Berlin", kinds=tuple(Kind), by_seconds=not exact),
        in_process=in_process,
        requests=asked,
    )
    try:
        question = BacktestRequest(
            current=CURRENT if current else None, proposed=PROPOSED, declared=PROPOSED, exact=exact, plots=9
        )
        one = Backtest(recorded, question)
        return json.dumps(BACKTEST.write(one.report())), list(one.request_lines()) if asked else []
    finally:
        recorded.close()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("traffic", "exact", "current"),
    [
        (request_logs, False, True),
        (request_logs, True, False),
        *itertools.product([normal_form], [False, True], [False, True]),
        (normal_form_without_ties, True, True),
        (mapped_csv, True, True),
        (mapped_sums, False, False),
    ],
)
def test_both_ways_give_the_same_bytes(
    spark: SparkSession, tmp_path: Path, traffic: Callable[[Path], Traffic], *, exact: bool, current: bool
) -> None:
    recorded = traffic(tmp_path)
    here, requests = report(spark, recorded, in_process=True, exact=exact, current=current)
    there, wanted = report(spark, recorded, in_process=False, exact=exact, current=current)
    assert here == there
    assert requests == wanted
    said: dict[str, Any] = json.loads(here)
    assert said["verdicts"]
    assert any(one["verdict"] == "throttled" for one in said["verdicts"])
    if exact and traffic is request_logs:
        assert len(requests) > 1000


MANIFEST = quotas(({"user": "alice"}, {"producer_byte_rate": "10KiB", "request_percentage": 1}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A manifest, and an installation in which Java and pyspark cannot be used."""
    (tmp_path / "quotas.yaml").write_text(MANIFEST, encoding="utf-8")
    shadow = tmp_path / "shadow" / "pyspark"
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").write_text("raise AssertionError('pyspark is loaded')\n", encoding="utf-8")
    return tmp_path


def backtest(folder: Path, *arguments: str) -> Done:
    path = f"{folder / 'shadow'}:{Path(__file__).parents[2]}"
    return run(
        "backtest", "quotas.yaml", *arguments, cwd=folder, env={"PYTHONPATH": path, "JAVA_HOME": "/no/java", "PATH": "/no"}
    )


@pytest.mark.parametrize("form", [(), ("--requests", "requests.jsonl")])
def test_a_small_log_needs_neither_java_nor_pyspark(folder: Path, form: tuple[str, ...]) -> None:
    done = backtest(folder, "--traffic", str(LOG), *form)
    assert (done.code, done.err) == (0, "")
    assert "throttled  user alice: producer_byte_rate" in done.out
    if "--requests" in form:
        assert len((folder / "requests.jsonl").read_text().splitlines()) > 100


def test_small_parquet_and_csv_need_neither_java_nor_pyspark(folder: Path) -> None:
    all_kinds.write(folder / "all.parquet", all_kinds.rows())
    done = backtest(folder, "--traffic", "all.parquet", "--exact")
    assert (done.code, done.err) == (0, "")
    (folder / "csv").mkdir()
    mapped_csv(folder / "csv")
    done = backtest(folder, "--traffic", "csv", "--mapping", "csv/map.yaml", "--max-unreadable", "2%")
    assert (done.code, done.err) == (0, "")
    assert "6 mapped files of brokers 0, 1, 2" in done.out


def test_a_folder_of_two_formats_is_refused_rather_than_read_in_part(tmp_path: Path) -> None:
    (tmp_path / "quotas.yaml").write_text(MANIFEST, encoding="utf-8")
    (tmp_path / "history").mkdir()
    all_kinds.write(tmp_path / "history" / "all.parquet", all_kinds.rows())
    (tmp_path / "history" / "kafka-request.log.1").write_text(line() + "\n", encoding="utf-8")
    done = backtest(tmp_path, "--traffic", "history")
    assert (done.code, done.out) == (64, "")
    assert "history: the folder has Parquet files and request logs, such as kafka-request.log.1. Give one kind" in done.err


JAVA = "needs Java"


@pytest.mark.parametrize(
    ("file", "content", "mapping", "options", "said"),
    [
        ("a.log", b"hello\n", None, (), "no line has 'Completed request:'"),
        ("a.log", (line()[30:] + "\n").encode() * 60, None, (), "none of the 50 request lines looked at can be read"),
        (
            "a.log",
            (line() + "\n").encode(),
            None,
            ("--log-timezone", "Mars/Olympus"),
            "--log-timezone Mars/Olympus: no such time zone",
        ),
        ("a.parquet", b"PAR1 cut", None, (), "is not a Parquet file, or was not finished"),
        ("a.csv", b"time,host\n1,2\n", MAPPING, (), "the mapping names the column 'client', and the files have host, time"),
        (
            "a.csv",
            f"{HEADER}\n1795266000,kafka-1,u,c,Produce,1\n".encode(),
            MAPPING,
            (),
            "none of its first 1 rows can be read with the mapping: column 'ts' has no value",
        ),
        ("a.csv", f"{HEADER}\n{START},b1,u,c,Produce,1\n".encode(), MAPPING, (), "column 'broker' has no value"),
    ],
    ids=["not a log", "layout", "zone", "not Parquet", "column", "time", "broker"],
)
def test_traffic_that_cannot_be_used_is_refused_before_spark_starts(
    tmp_path: Path, file: str, content: bytes, mapping: str | None, options: tuple[str, ...], said: str
) -> None:
    (tmp_path / "quotas.yaml").write_text(MANIFEST, encoding="utf-8")
    (tmp_path / file).write_bytes(content)
    if mapping:
        (tmp_path / "map.yaml").write_text(mapping, encoding="utf-8")
        options = (*options, "--mapping", "map.yaml")
    arguments = ("backtest", "quotas.yaml", "--traffic", file, "--master", "local[2]", *options)
    done = invoke(*arguments, cwd=tmp_path, env={"JAVA_HOME": "/no/java", "PATH": "/no"})
    assert said in done.err
    assert JAVA not in done.err
    assert done.code in (1, 64)
    assert done.out == ""


def test_exact_is_refused_for_sums_of_seconds_and_never_advised(folder: Path) -> None:
    mapped_sums(folder)
    done = backtest(folder, "--traffic", "a.csv", "--mapping", "map.yaml", "--exact")
    assert (done.code, done.out) == (64, "")
    assert "--exact needs single requests, and this traffic has none" in done.err
    done = backtest(folder, "--traffic", "a.csv", "--mapping", "map.yaml", "--format", "json")
    assert done.code == 0, done.err
    assert "--exact" not in done.out


def test_a_stretch_of_time_of_local_parquet_is_what_a_file_of_that_time_has(tmp_path: Path) -> None:
    rows = all_kinds.rows()
    (tmp_path / "quotas.yaml").write_text(manifest_of_alice(), "utf-8")
    all_kinds.write(tmp_path / "whole.parquet", rows)
    all_kinds.write(tmp_path / "part.parquet", tuple(row for row in rows if 30_000 < row.at_ms <= 90_000))
    between = ("--since", "2026-11-01T00:00:30Z", "--until", "2026-11-01T00:01:30Z")

    cut, part = (
        invoke("backtest", "quotas.yaml", "--traffic", name, *options, "--format", "json", cwd=tmp_path)
        for name, options in (("whole.parquet", between), ("part.parquet", ()))
    )

    assert cut.code == 0, cut.err
    assert cut.out.replace("whole.parquet", "part.parquet") == part.out
    assert 0 < cut.json()["provenance"]["requests"] < len(rows)


def test_a_stretch_of_time_of_a_local_log_is_refused_with_the_way_to_it(tmp_path: Path) -> None:
    (tmp_path / "quotas.yaml").write_text(manifest_of_alice(), "utf-8")

    done = invoke("backtest", "quotas.yaml", "--traffic", str(LOG), "--since", "2026-11-01T00:00:30Z", cwd=tmp_path)

    assert done.code == 64
    assert "--since and --until need Parquet in the canonical traffic schema" in done.err


def manifest_of_alice() -> str:
    return quotas(({"user": "alice"}, {"producer_byte_rate": "1KiB"}))


NO_SPARK = """
import sys
class Hidden:  # pyarrow takes None in sys.modules for pandas itself
    def find_spec(self, name, *_):
        if name == "pandas":
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Hidden())
sys.modules["pyspark"] = None
from reconciler.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def without_pyspark(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", NO_SPARK, "backtest", "quotas.yaml", "--traffic", "1=kafka-request.log", *arguments]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)


def test_large_traffic_is_judged_without_pyspark_as_far_as_memory_goes(tmp_path: Path) -> None:
    (tmp_path / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "1KiB"})), encoding="utf-8")
    log = tmp_path / "kafka-request.log"
    lines = gzip.decompress(LOG.read_bytes())
    log.write_bytes(lines * (SMALL_BYTES // len(lines) + 1))
    small = without_pyspark(tmp_path)
    assert (small.returncode, "throttled 1 of 1 quota group" in small.stdout) == (0, True), small.stderr
    with log.open("r+b") as file:
        file.truncate(2_500_000_000)
    large = without_pyspark(tmp_path)
    assert (large.returncode, large.stdout) == (1, "")
    assert "recorded traffic of 2.5 GB needs pyspark" in large.stderr
    assert "Install the extra spark (kafka-quotas explain install). Without it, up to 2.1 GB are judged" in large.stderr
    asked = without_pyspark(tmp_path, "--master", "local[2]")
    assert "which is not installed. Install the extra spark (kafka-quotas explain install)" in asked.stderr
