"""Traffic that is damaged, mixed up or of something else: a sentence, and nothing half-written."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reconciler.errors import TrafficError
from tests.support.command import Command, invoke, run
from tests.support.local_traffic import open_anywhere, open_here
from tests.traffic.conftest import RECORDINGS
from tests.traffic.log_lines import line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.traffic import OpenFiles
    from reconciler.traffic.traffic_source import Facts

pytestmark = pytest.mark.spark
LOG = RECORDINGS / "kafka-4.3.1" / "kafka-request.log.gz"


def opened(spark: SparkSession | None, *arguments: Path | str, **options: Any) -> Facts:
    from reconciler.traffic import find_traffic

    found = open_anywhere(find_traffic([str(one) for one in arguments]), spark, **options)
    try:
        return found.facts
    finally:
        found.close()


def counted(seconds: int, semantics: str) -> OpenFiles:
    """Of bytes ``n`` of one client, once in so many seconds."""
    from reconciler.features.mapping.mapped import read_mapping

    constants: dict[str, str | int] = {"interval": seconds, "broker": 1, "kind": "produce", "user": "u", "client_id": "c"}
    columns = {name: {"constant": value} for name, value in constants.items()}
    columns |= {"ts": {"column": "t", "unit": "s"}, "amount": {"column": "n"}}
    spec = {"semantics": semantics, "columns": columns}
    document = {"apiVersion": "kafka-quotas/v1", "kind": "TrafficMapping", "spec": spec}
    return read_mapping(json.dumps(document).encode(), "mapping.yaml")


def test_a_log_cut_short_while_it_was_compressed_is_named(tmp_path: Path, warm_command: Command) -> None:
    content = LOG.read_bytes()
    (tmp_path / "broker-1").mkdir()
    damaged = tmp_path / "broker-1" / "kafka-request.log.1.gz"
    damaged.write_bytes(content[: len(content) // 2])
    done = warm_command("compact", "--traffic", "broker-1", "--folder", "cells", "--master", "local[1]", cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert "kafka-request.log.1.gz is damaged or cut short" in done.err
    again = warm_command("backtest", str(tmp_path), "--traffic", "cells", cwd=tmp_path)
    assert again.code == 1
    assert not list(tmp_path.glob("cells/segments/*"))


def test_half_a_line_and_junk_are_counted_until_they_are_too_many(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "kafka-request.log"
    junk = random.Random(8).randbytes(2000).replace(b"\n", b"")
    good = [line(correlation_id=n).encode() for n in range(199)]
    log.write_bytes(b"\n".join([*good, junk, b"Completed request:" + junk, line().encode()[:400]]))

    facts = opened(spark, log, max_unreadable=0.05)

    assert (facts.requests, facts.unreadable) == (199, 2)
    assert len(facts.unreadable_samples) == 2
    assert opened(None, log).unreadable == 2, "one in a hundred is what is allowed unless said otherwise"
    with pytest.raises(
        TrafficError, match=r"2 of 201 rows cannot be read \(1 %\), and --max-unreadable allows 0 %, for instance: "
    ):
        opened(spark, log, max_unreadable=0.0)


def test_a_sample_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    log = tmp_path / "kafka-request.log"
    log.write_text(f"{line()}\nCompleted request:\x1b[2J\u202e\n", encoding="utf-8")
    with pytest.raises(TrafficError, match=r"allows 1 %") as caught:
        opened(None, log)
    assert "\x1b" not in str(caught.value)
    assert "\u202e" not in str(caught.value)


def test_logs_of_two_clusters_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    for broker, cluster in ((1, "4L6g3nShT-eMCtK--X86sw"), (2, "4L6g3nShT-eMCtK--X86sw"), (3, "other")):
        folder = tmp_path / f"broker-{broker}"
        folder.mkdir()
        metadata = line("METADATA", 12, request={}, response={"clusterId": cluster, "topics": []})
        named = line(client_id='"clusterId":"fake"', correlation_id=broker)
        plain = line(correlation_id=100 + broker)
        (folder / "kafka-request.log").write_text(f"{plain}\n{metadata}\n{named}\n", encoding="utf-8")
    assert opened(None, tmp_path / "broker-1", tmp_path / "broker-2").requests == 4
    with pytest.raises(TrafficError, match=r"of 2 clusters, 4L6g3nShT-eMCtK--X86sw \(broker 1 and 2\), other \(broker 3\)"):
        opened(spark, tmp_path)


def test_logs_of_two_clusters_do_not_come_into_one_folder_of_cells(spark: SparkSession, tmp_path: Path) -> None:
    from reconciler.features.compacting.segments import Compaction, SourceFile
    from reconciler.traffic import Reading, find_traffic
    from reconciler.traffic.seconds.folder import SegmentFolder
    from reconciler.traffic.sources.log_evidence import CLUSTER
    from reconciler.traffic.sources.request_log import LOG_KINDS

    def add(*names: str, into: str) -> SegmentFolder:
        folders = [tmp_path / name for name in names]
        files = {(folder / "kafka-request.log").resolve(): folder.name for folder in folders}
        sources = {path: SourceFile(path=path, id=name, size=path.stat().st_size) for path, name in files.items()}
        traffic = find_traffic([str(folder) for folder in folders])
        with contextlib.closing(traffic.rows_on(spark, Reading(kinds=LOG_KINDS, also=("file", CLUSTER)))) as rows:
            Compaction(files=sources, folder=SegmentFolder(tmp_path / into)).on_spark(rows)
        return SegmentFolder(tmp_path / into)

    for broker, cluster in ((1, "one"), (2, "one"), (3, "other")):
        folder = tmp_path / f"broker-{broker}"
        folder.mkdir()
        metadata = line("METADATA", 12, request={}, response={"clusterId": cluster, "topics": []}, correlation_id=100 + broker)
        (folder / "kafka-request.log").write_text(f"{line(correlation_id=broker)}\n{metadata}\n", encoding="utf-8")
    cells = add("broker-1", "broker-2", into="cells")
    told = [(one.summary.clusters, one.requests) for one in cells.segments()]
    # The line that names the cluster is charged for its time.
    assert told == [(("one",), 3), (("one",), 3)]
    with pytest.raises(TrafficError, match=r"of 2 clusters, one \(kafka-request\.log, compacted earlier\), other \("):
        add("broker-3", into="cells")
    with pytest.raises(TrafficError, match="of 2 clusters"):
        add("broker-1", "broker-3", into="more")
    assert [one.id for one in cells.segments()] == ["broker-1", "broker-2"]


def test_sums_of_minutes_are_refused(tmp_path: Path) -> None:
    from reconciler.traffic import find_traffic

    file = tmp_path / "minutes.csv"
    file.write_text("t,n\n1795266000,5\n1795266060,7\n", encoding="utf-8")
    with pytest.raises(
        TrafficError, match="2 of 2 rows are not counted, since the second is not known: a delta of more than one second"
    ):
        open_here(find_traffic([str(file)], counted(60, "delta")))


def test_sums_of_seconds_are_never_judged_as_requests(tmp_path: Path) -> None:
    from reconciler.traffic import find_traffic
    from reconciler.traffic.request_traffic import RequestTraffic

    file = tmp_path / "seconds.csv"
    file.write_text("t,n\n1795266001,5\n1795266002,5\n", encoding="utf-8")
    for semantics, whole in (("delta", False), ("event", True)):
        mapped = find_traffic([str(file)], counted(1, semantics))
        found = open_here(mapped)
        assert isinstance(found, RequestTraffic) is whole
        assert found.facts.requests == 2
        found.close()


def test_an_old_java_is_named_before_anything_is_read(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    asked = ("compact", "--traffic", str(LOG), "--folder", "cells", "--master", "local[2]")
    done = run(*asked, cwd=tmp_path, env={"JAVA_HOME": str(home)}, timeout=400)
    assert (done.code, done.out) == (1, "")
    assert "needs Java 17 or newer" in done.err
    assert "is Java 11" in done.err
    assert not list(tmp_path.glob("cells/segments/*"))


@pytest.mark.parametrize(
    ("java_says", "said"),
    [
        ("SparkException: failed\nCaused by: java.io.IOException: No space left on device", "a disk is full"),
        ("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)", "a Python process of a worker ended"),
        (
            (
                "Job aborted: Lost task 0.0 in stage 1.0 (10.0.0.1 executor driver): java.io.IOException: Broken pipe\n"
                "\tat java.base/sun.nio.ch.SocketDispatcher.write0(Native Method)\n"
                "\tat org.apache.spark.sql.execution.python.ArrowPythonRunner.write(ArrowPythonRunner.scala:1)"
            ),
            "a Python process of a worker ended",
        ),
        (": SparkException: Exception thrown in awaitResult:\n\tat a.b\nCaused by: c.D: the reason\n\tat e.f", "c.D: the reason"),
        (
            "file:/x/a b.parquet is not a Parquet file. Expected magic number at tail",
            "b.parquet is not a Parquet file, or was not finished",
        ),
        ("[CANNOT_MERGE_SCHEMAS] Failed merging schemas:", "one type in some files of --traffic and another in others"),
        (
            "Encountered error while reading file file:///a b.log.gz.  SQLSTATE\nEOFException: Unexpected end of input stream",
            "the compressed file file:///a b.log.gz is damaged or cut short",
        ),
        (
            (
                "[PYTHON_EXCEPTION] thrown from the Python worker: Traceback (most recent call last):\n"
                "  File 'a.py', line 1, in <module>\n    raise OverflowError(1)\nKeyError: 'b'\n\n\tat org.apache.spark"
            ),
            "KeyError: 'b'",
        ),
        ("Encountered error while reading file file:///a.log.\n[FAILED_READ_FILE] FileNotFoundException", "under the same path"),
    ],
    ids=["disk", "worker", "pipe", "cause", "parquet", "schema", "gzip", "python", "path"],
)
def test_what_fails_in_spark_is_told_in_words(java_says: str, said: str) -> None:
    from reconciler.traffic.spark_jobs import reason

    assert said in reason(java_says)


def test_a_share_is_a_number_or_a_percentage(tmp_path: Path) -> None:
    for text, known in (("2", False), ("-1%", False), ("much", False), ("nan", False), ("5%", True), ("0", True)):
        done = invoke("compact", "--traffic", "missing", "--folder", "cells", f"--max-unreadable={text}", cwd=tmp_path)
        assert (done.code, "is not a share" in done.err) == ((1, False) if known else (64, True)), text
