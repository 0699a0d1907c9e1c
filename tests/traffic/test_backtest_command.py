"""``backtest`` as a user runs it: streams, files, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from reconciler.errors import TrafficError
from reconciler.formats.shapes import load_schema
from tests.support.command import Command, Done, invoke, run
from tests.support.local_traffic import open_here
from tests.traffic.conftest import RECORDINGS, recorded_snapshot
from tests.traffic.log_lines import line

LOG = str(RECORDINGS / "kafka-4.3.1" / "kafka-request.log.gz")
MANIFEST = """
apiVersion: kafka-quotas/v1
kind: ClientQuotas
metadata: {name: team}
spec:
  quotas:
    - match: {user: alice}
      quotas: {producer_byte_rate: 100KiB}
    - match: {user: zoe}
      quotas: {consumer_byte_rate: 5MiB}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "quotas"
    folder.mkdir()
    (folder / "quotas.yaml").write_text(MANIFEST, encoding="utf-8")
    (tmp_path / "snapshot.json").write_text(recorded_snapshot(), encoding="utf-8")
    return folder


def backtest(command: Command, repository: Path, *arguments: str, env: dict[str, str] | None = None) -> Done:
    return command("backtest", repository.name, "--master", "local[2]", *arguments, cwd=repository.parent, env=env)


@pytest.mark.spark
def test_the_report_compares_with_a_snapshot_and_names_a_safe_value(repository: Path, warm_command: Command) -> None:
    options = (
        "--current",
        "snapshot.json",
        "--format",
        "json",
        "--requests",
        "requests.jsonl",
        "--exact",
        "--fail-on",
        "warning",
    )
    done = backtest(warm_command, repository, "--traffic", f"3={LOG}", *options)
    assert (done.code, done.err) == (1, "")
    document = done.json()
    jsonschema.Draft202012Validator(load_schema("backtest")).validate(document)
    worst = document["verdicts"][0]
    assert (worst["bucket"], worst["broker"], worst["verdict"]) == ({"user": "alice"}, 3, "throttled")
    assert (worst["limit_before"], worst["limit_after"], worst["changed"]) == (307200, 102400, True)
    assert worst["throttled_after"] > worst["throttled_before"] > 0
    assert worst["limit_after"] < worst["peak"] <= worst["recommended"]
    assert {(m["user"], m["client_id"]) for m in worst["members"]} == {("alice", "app-1"), ("alice", "app-2"), ("alice", "")}
    assert [u["entity"] for u in document["unused"]] == [{"user": "zoe"}]
    found = {(f["id"], f["severity"]): f for f in document["findings"]}
    finding = found["would-throttle", "warning"]
    assert (finding["file"], finding["line"]) == ("quotas/quotas.yaml", 8)
    assert "user alice would have been throttled while producing, on broker 3" in finding["message"]
    assert ("over-current-limit", "info") in found, "bob's limit stays, and he is over it"
    assert document["provenance"]["semantics"] == "Kafka 3.8 and newer"
    lines = [json.loads(text) for text in (repository.parent / "requests.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(lines) == document["provenance"]["requests"]
    assert sum(row["throttle_ms"] > 0 for row in lines if row["user"] == "alice") == worst["throttled_after"]


def test_a_log_without_client_requests_is_no_all_clear(tmp_path: Path) -> None:
    from reconciler.traffic import find_traffic

    log = tmp_path / "kafka-request.log"
    for text, said in (
        ("[2026-11-21 13:00:00,123] INFO started\n", "no line has 'Completed request:'"),
        (line("METADATA", request={}, response={}) + "\n", "is a produce or fetch request of a client"),
    ):
        log.write_text(text, encoding="utf-8")
        with pytest.raises(TrafficError, match=said):
            open_here(find_traffic([str(log)]))


def test_bad_input_is_one_sentence_and_an_exit_code(repository: Path) -> None:
    for arguments, code, said in (
        (("--traffic", "missing.log"), 1, "missing.log: no such file or folder"),
        (("--traffic", LOG, "--kafka-version", "new"), 64, "write a release such as 3.9 or 4.3.1"),
        (("--traffic", LOG, "--current", "missing.json"), 1, "missing.json"),
        ((), 64, "--traffic"),
    ):
        done = backtest(invoke, repository, *arguments)
        assert (done.code, done.out) == (code, "")
        assert said in done.err


def test_a_machine_without_java_is_told_so(repository: Path, tmp_path: Path) -> None:
    done = backtest(run, repository, "--traffic", LOG, env={"PATH": str(tmp_path), "JAVA_HOME": ""})
    assert (done.code, done.out) == (1, "")
    assert "needs Java 17 or newer, and there is none on PATH" in done.err


def test_an_installation_without_the_extra_is_told_so(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "shadow" / "pyspark").mkdir(parents=True)
    text = "raise ImportError('not here', name='pyspark')\n"
    (tmp_path / "shadow" / "pyspark" / "__init__.py").write_text(text, encoding="utf-8")
    done = backtest(run, repository, "--traffic", LOG, env={"PYTHONPATH": f"{tmp_path / 'shadow'}:{Path(__file__).parents[2]}"})
    assert (done.code, done.out) == (1, "")
    assert "needs pyspark, which is not installed. Install the extra spark (kafka-quotas explain install)" in done.err
