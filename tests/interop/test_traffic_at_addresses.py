"""Traffic in a real HDFS, and behind a real S3 endpoint, gives the answers of the same files on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import run
from tests.support.hdfs_server import HadoopStore
from tests.support.lake_days import days_of_parquet
from tests.support.manifests import quotas
from tests.support.recorded_parquet import Flow, write_traffic
from tests.support.s3_server import S3Server
from tests.traffic.conftest import RECORDINGS

pytestmark = pytest.mark.interop

MANIFEST = quotas(({"user": "alice"}, {"producer_byte_rate": "50KiB"}))


@pytest.fixture(params=["hdfs", "s3"])
def store(request: pytest.FixtureRequest) -> HadoopStore:
    found: HadoopStore = request.getfixturevalue(request.param)
    return found


def report_of(work: Path, traffic: str, *settings: str) -> dict[str, Any]:
    (work / "quotas.yaml").write_text(MANIFEST, "utf-8")
    done = run("backtest", "quotas.yaml", "--traffic", traffic, "--master", "local[2]", "--format", "json", *settings, cwd=work)
    assert done.code == 0, done.err
    document = json.loads(done.out)
    document["provenance"].pop("files")
    return document


def test_parquet_there_gives_the_report_of_the_local_file(store: HadoopStore, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    (lake / "dt=2026-11-20").mkdir(parents=True)
    write_traffic(lake / "dt=2026-11-20" / "part-0.parquet", [Flow(user="alice", every_s=0.5), Flow(user="bob", broker=2)])
    store.put(lake, "/traffic/")
    report = report_of(tmp_path, f"{store.address}/traffic/lake", *store.options)
    assert report == report_of(tmp_path, str(lake))
    assert report["summary"]["changed"]["throttled"] == 1


def test_request_logs_there_give_the_report_of_the_local_file(store: HadoopStore, tmp_path: Path) -> None:
    log = RECORDINGS / "kafka-4.3.1" / "kafka-request.log.gz"
    store.put(log, "/traffic/kafka-request.log.gz")
    report = report_of(tmp_path, f"7={store.address}/traffic/kafka-request.log.gz", *store.options)
    assert report == report_of(tmp_path, f"7={log}")


def test_access_that_is_denied_halfway_is_a_sentence_and_writes_nothing(hdfs: HadoopStore, tmp_path: Path) -> None:
    days_of_parquet(tmp_path / "traffic", 2)
    hdfs.put(tmp_path / "traffic", "/denied")
    second = "/denied/dt=2026-11-21/part-0.parquet"
    hdfs.shell("-chmod", "000", second)
    arguments = (
        "compact",
        "--traffic",
        f"{hdfs.address}/denied",
        "--folder",
        f"file://{tmp_path}/written",
        "--master",
        "local[2]",
    )

    # Listing the days is allowed, and reading the first one is.
    denied = run(*arguments, cwd=tmp_path, env={"HADOOP_USER_NAME": "reader"})

    assert (denied.code, denied.out) == (1, "")
    assert "Permission denied" in denied.err
    assert second in denied.err
    assert "Traceback" not in denied.err
    assert not list((tmp_path / "written").rglob("*.parquet"))
    hdfs.shell("-chmod", "644", second)
    allowed = run(*arguments, cwd=tmp_path, env={"HADOOP_USER_NAME": "reader"})
    assert allowed.code == 0, allowed.err
    assert list((tmp_path / "written").rglob("*.parquet"))


@pytest.mark.parametrize(
    ("path", "more", "words"),
    [
        ("nowhere", (), "does not exist"),
        ("traffic", ("--conf", "spark.hadoop.fs.s3a.secret.key=another-secret"), "403"),
        (
            "traffic",
            ("--conf", "spark.hadoop.fs.s3a.endpoint=http://127.0.0.1:9"),
            "the server at 127.0.0.1:9 refuses connections",
        ),
    ],
)
def test_what_s3_refuses_is_a_sentence_without_the_secret(
    s3: S3Server, tmp_path: Path, path: str, more: tuple[str, ...], words: str
) -> None:
    (tmp_path / "quotas.yaml").write_text(MANIFEST, "utf-8")
    traffic = f"{s3.address}/{path}"
    settings = ("--master", "local[2]", "--properties-file", str(s3.properties), *more)
    done = run("backtest", "quotas.yaml", "--traffic", traffic, *settings, cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert f"recorded traffic {traffic} cannot be read: " in done.err
    assert words in done.err
    assert not [secret for secret in (s3.secret, "another-secret", "Traceback") if secret in done.err]
