"""Traffic in real tables of Iceberg and Delta Lake, on the PySpark that they support, gives the answers of plain files.

Rows were deleted and written again there, so the files of the folder have more rows than the table.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import environment, run
from tests.support.lake_tables import PYSPARK, LakeTables, delta_tables, iceberg_tables, pyspark_variables
from tests.support.manifests import quotas
from tests.support.recorded_parquet import Flow, write_traffic

pytestmark = pytest.mark.interop

MANIFEST = quotas(({"user": "alice"}, {"producer_byte_rate": "50KiB"}))
MAKE = """
import json, sys
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
table, traffic, partition, settings = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC")
for key, value in settings:
    builder = builder.config(key, value)
spark = builder.getOrCreate()
rows = spark.read.parquet(traffic)
rows.createOrReplaceTempView("rows")
using = "iceberg" if partition else "delta"
spark.sql(f"create table {table} using {using} {partition} as select * from rows")
late = "user = 'bob' and ts > timestamp'2026-11-20 08:00:30'"
spark.sql(f"delete from {table} where {late}")
spark.sql(f"insert into {table} select * from rows where {late}")
print(spark.table(table).count(), rows.count())
"""
READ = """
import json, sys
from pyspark.sql import SparkSession
from reconciler.traffic.sources.on_spark import rows_between
from reconciler.traffic.sources.parquet_parts import Between
table, after_us, until_us, settings = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
for key, value in settings:
    builder = builder.config(key, value)
frame = rows_between(builder.getOrCreate().read.table(table), Between(after_us=after_us, until_us=until_us))
frame.explain("formatted")
"""
AFTER_US, UNTIL_US = 1_795_161_600_000_000, 1_795_161_630_000_000
"""2026-11-20 08:00:00 and 08:00:30 UTC."""


@pytest.fixture(params=[iceberg_tables, delta_tables], ids=["iceberg", "delta"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> LakeTables:
    make: Callable[[Path], LakeTables] = request.param
    return make(tmp_path / "warehouse")


def python(program: str, argument: object, cwd: Path) -> str:
    command = [sys.executable, "-c", program, json.dumps(argument)]
    done = subprocess.run(
        command, cwd=cwd, env=environment(pyspark_variables()), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def report_of(work: Path, traffic: str, *settings: str) -> dict[str, Any]:
    (work / "quotas.yaml").write_text(MANIFEST, "utf-8")
    command = ("backtest", "quotas.yaml", "--traffic", traffic, "--master", "local[2]", "--format", "json", *settings)
    done = run(*command, cwd=work, env=pyspark_variables())
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert document["provenance"].pop("files") is not None
    return document


def test_a_table_whose_rows_were_written_again_gives_the_report_of_the_file(tables: LakeTables, tmp_path: Path) -> None:
    file = tmp_path / "part-0.parquet"
    write_traffic(file, [Flow(user="alice", every_s=0.5), Flow(user="bob", broker=2)])
    partition = "partitioned by (hours(ts))" if tables.table.startswith("lake.") else ""
    there, written = python(MAKE, [tables.table, str(file), partition, tables.settings], tmp_path).split()[-2:]
    assert int(there) == int(written) > 0
    tables.write_properties(tmp_path / "spark.properties")
    report = report_of(tmp_path, f"table:{tables.table}", "--properties-file", str(tmp_path / "spark.properties"))
    assert report == report_of(tmp_path, str(file))
    assert report["summary"]["changed"]["throttled"] == 1
    plan = python(READ, [tables.table, AFTER_US, UNTIL_US, tables.settings], tmp_path)
    filters = next(line for line in plan.splitlines() if line.startswith(("IcebergScan", "DataFilters", "PushedFilters")))
    assert filters.count("ts") >= 2, plan
    folder = next((tmp_path / "warehouse").rglob("traffic"))
    refused = run(
        "backtest", "quotas.yaml", "--traffic", f"file://{folder}", "--master", "local[2]", cwd=tmp_path, env=pyspark_variables()
    )
    assert refused.code == 1
    assert "name it as table:" in refused.err


def test_the_version_of_spark_is_that_of_the_tables(tmp_path: Path) -> None:
    assert python("import pyspark; print(pyspark.__version__)", None, tmp_path).strip() == PYSPARK
