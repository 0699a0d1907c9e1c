"""compact and backtest as a user runs them: what is new is added, and the verdict from cells is that from the log."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from reconciler.documents import BACKTEST
from reconciler.formats.shapes import load_schema
from reconciler.model.entity import Entity
from tests.support.command import Command, invoke
from tests.support.manifests import quotas
from tests.traffic.log_lines import line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
RECORDINGS = Path(__file__).parent / "recordings"
LINES = gzip.decompress((RECORDINGS / "kafka-4.3.1" / "kafka-request.log.gz").read_bytes()).splitlines(keepends=True)
MANIFEST = quotas(({"user": "alice"}, {"producer_byte_rate": "100KiB"}), owner="team")


def test_history_grows_file_by_file_and_is_judged_as_the_log_is(
    spark: SparkSession, tmp_path: Path, warm_command: Command
) -> None:
    logs, cells = tmp_path / "logs", tmp_path / "cells"
    logs.mkdir()
    (tmp_path / "quotas.yaml").write_text(MANIFEST, encoding="utf-8")
    first, second = logs / "kafka-request.log.1", logs / "kafka-request.log"
    first.write_bytes(b"".join(LINES[: len(LINES) // 2]))
    second.write_bytes(b"".join(LINES[len(LINES) // 2 : -100]))
    (logs / "kafka-request.log.empty").write_bytes(b"[2026-11-21 13")

    def compact() -> Any:
        done = warm_command(
            "compact", "--traffic", "7=logs", "--folder", "cells", "--master", "local[2]", "--format", "json", cwd=tmp_path
        )
        assert (done.code, done.err) == (0, "")
        jsonschema.Draft202012Validator(load_schema("compact")).validate(done.json())
        return done.json()

    def names(document: Any, field: str) -> list[str]:
        return [Path(file).name for file in document[field]]

    begun = compact()
    assert names(begun, "compacted") == ["kafka-request.log", "kafka-request.log.1"]
    assert (names(begun, "empty"), begun["segments"]) == (["kafka-request.log.empty"], 2)

    # The log goes on, and is rotated and compressed: it is the same log.
    with second.open("ab") as stream:
        stream.write(b"".join(LINES[-100:]))
    (logs / "kafka-request.log.2.gz").write_bytes(gzip.compress(first.read_bytes()))
    first.unlink()
    (cells / "data" / ".a-run-that-was-killed").mkdir()
    grown = compact()
    assert "kafka-request.log" in names(grown, "compacted")
    assert grown["segments"] == 2
    assert len(list((cells / "data").iterdir())) == 2
    assert compact()["compacted"] == []

    done = warm_command("backtest", "quotas.yaml", "--traffic", "cells", "--format", "json", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    jsonschema.Draft202012Validator(load_schema("backtest")).validate(done.json())
    from_cells = done.json()
    assert from_cells["provenance"]["form"] == "seconds"
    from_log, exact = (judged(spark, logs, exact=exact) for exact in (False, True))
    assert from_cells["provenance"]["requests"] == exact["provenance"]["requests"]
    changed = [[v for v in d["verdicts"] if v["changed"]] for d in (from_log, from_cells, exact)]
    assert changed[0] == changed[1]
    assert [v["bucket"] for v in changed[0]] == [v["bucket"] for v in changed[2]] == [{"user": "alice"}]
    by_seconds, exactly = changed[0][0], changed[2][0]
    assert by_seconds["seconds_certain"] <= exactly["seconds_over"] <= by_seconds["seconds_possible"]
    assert exactly["peak"] <= by_seconds["peak"]
    assert by_seconds["verdict"] == exactly["verdict"] == "throttled"


def judged(spark: SparkSession, logs: Path, *, exact: bool) -> dict[str, Any]:
    from reconciler.traffic import Backtest, BacktestRequest, Reading, find_traffic, open_traffic
    from reconciler.traffic.sources.request_log import LOG_KINDS

    quotas = {Entity.of({"user": "alice"}): {"producer_byte_rate": 102400.0}}
    recorded = open_traffic(find_traffic([f"7={logs}"]), lambda: spark, Reading(kinds=LOG_KINDS))
    try:
        report = Backtest(recorded, BacktestRequest(current=None, proposed=quotas, declared=quotas, exact=exact)).report()
    finally:
        recorded.close()
    return BACKTEST.write(report)


def test_cells_cannot_be_asked_for_requests_or_compacted_again(tmp_path: Path) -> None:
    (tmp_path / "cells" / "segments").mkdir(parents=True)
    (tmp_path / "quotas.yaml").write_text(MANIFEST, encoding="utf-8")
    again = invoke("compact", "--traffic", "cells", "--folder", "more", cwd=tmp_path)
    assert (again.code, again.out) == (64, "")
    assert "has per-second totals already" in again.err
    done = invoke("backtest", "quotas.yaml", "--traffic", "cells", "--requests", "r.jsonl", cwd=tmp_path)
    assert (done.code, done.out) == (64, "")
    assert "--requests needs request logs" in done.err
    bare = invoke("backtest", "quotas.yaml", "--traffic", "cells", cwd=tmp_path)
    assert bare.code == 1
    assert "has no per-second totals yet" in bare.err
    assert json.dumps(sorted(path.name for path in tmp_path.iterdir())) == '["cells", "quotas.yaml"]'


def test_totals_that_are_days_older_than_the_newest_go(tmp_path: Path) -> None:
    for day in (18, 20, 21):
        logs = tmp_path / f"day-{day}.log"
        logs.write_text(line(at=f"2026-11-{day} 13:00:00,123", correlation_id=day) + "\n", encoding="utf-8")
        compact = invoke("compact", "--traffic", f"1={logs}", "--folder", "kept", "--keep", "2", "--format", "json", cwd=tmp_path)
        assert compact.code == 0, compact.err
    assert (compact.json()["removed"], compact.json()["segments"]) == (1, 2)
    names = {json.loads(path.read_text("utf-8"))["source"] for path in (tmp_path / "kept" / "segments").iterdir()}
    assert {Path(name).name for name in names} == {"day-20.log", "day-21.log"}
    assert len(list((tmp_path / "kept" / "data").iterdir())) == 2
    assert invoke("compact", "--traffic", str(logs), "--folder", "kept", "--keep", "0", cwd=tmp_path).code == 64
