"""``kafka-quotas record`` beside real HTTP servers: what it writes, and what no fault takes from it."""

from __future__ import annotations

import datetime
import json
import os
import re
import resource
import shlex
import signal
import threading
from pathlib import Path

import pytest

from reconciler.features.prometheus import PageColumns, PageSeries, RecordedFolder
from tests.support.bad_servers import refusing_port
from tests.support.command import run
from tests.support.manifests import snapshot
from tests.support.metrics_exporter import served
from tests.support.pages import page
from tests.support.recorder_process import ChangingPage, recorded_rows, recorder
from tests.support.service_world import write_manifests

PAGE = """\
kafka_server_Produce_byte_rate{client_id="app",user="alice"} 5000000.7
kafka_server_Produce_throttle_time{client_id="app",user="alice"} 12.5
kafka_server_Fetch_byte_rate{client_id="reader",user="bob"} 100.0
kafka_server_Fetch_throttle_time{client_id="reader",user="bob"} NaN
kafka_server_Request_request_time{client_id="app",user="alice"} 1.5
kafka_server_Produce_queue_size 1.0
"""
PAGE_TO_START = page("record-traffic")
ONCE = ("--interval", "1", "--duration", "1")


def argument(port: int, broker: int = 1) -> tuple[str, str]:
    return "--traffic", f"{broker}=metrics+http://127.0.0.1:{port}/metrics"


def test_rows_of_two_brokers_and_a_backtest_of_them(tmp_path: Path) -> None:
    with (
        served(ChangingPage(PAGE)) as first,
        served(ChangingPage(PAGE.replace("alice", "carol"))) as second,
        recorder(tmp_path, *argument(first), *argument(second, 2)) as running,
    ):
        running.until(lambda: len([row for row in running.rows if row["interval_ms"]]) >= 6)
        assert running.end(signal.SIGTERM) == 0
        rows = running.rows
        files = running.events("file")
    assert {row["semantics"] for row in rows} == {"gauge"}
    clients = {(row["broker"], row["kind"], row["user"], row["client_id"]): (row["amount"], row["throttled"]) for row in rows}
    assert clients == {
        (1, "produce", "alice", "app"): (5_000_000, True),
        (1, "fetch", "bob", "reader"): (100, False),
        (1, "request", "alice", "app"): (15_000_000, None),
        (2, "produce", "carol", "app"): (5_000_000, True),
        (2, "fetch", "bob", "reader"): (100, False),
        (2, "request", "carol", "app"): (15_000_000, None),
    }
    later = [row["interval_ms"] for row in rows if row["interval_ms"] is not None]
    assert len(rows) - len(later) == 6
    assert min(later) > 0
    of_alice = [row for row in rows if (row["kind"], row["user"]) == ("produce", "alice")]
    seconds = (of_alice[-1]["ts"] - of_alice[0]["ts"]).total_seconds()
    assert abs(sum(row["interval_ms"] or 0 for row in of_alice) / 1000 - seconds) < 1
    assert sum(event["rows"] for event in files) == len(rows)

    manifests = write_manifests(tmp_path / "quotas")
    done = run("backtest", str(manifests), "--traffic", str(tmp_path / "history"), "--format", "json", cwd=tmp_path)
    assert done.code == 0, done.err
    verdicts = {(row["bucket"].get("user"), row["broker"]): row["verdict"] for row in done.json()["verdicts"]}
    assert verdicts["alice", 1] == "throttled"


def test_an_exporter_that_is_away_leaves_a_gap_with_its_broker_and_reason(tmp_path: Path) -> None:
    page = ChangingPage(PAGE)
    with (
        served(page) as port,
        served(ChangingPage(PAGE)) as other,
        recorder(tmp_path, *argument(port, 7), *argument(other, 8)) as running,
    ):
        running.until(lambda: running.rows)
        page.status = 503
        running.until(lambda: running.events("gap"))
        before = page.requests
        running.until(lambda: page.requests > before + 1)
        page.status = 200
        running.until(lambda: any(event["ended"] for event in running.events("gap")))
        page.status = 401
        running.until(lambda: len(running.events("gap")) == 3)
        assert running.end(signal.SIGINT) == 130
    first, second = map(json.loads, (tmp_path / "history" / "gaps.jsonl").read_text().splitlines())
    assert (first["broker"], first["reason"].partition(" ")[2]) == (7, "answers with HTTP status 503.")
    assert first["from"] < first["until"] <= second["from"]
    assert "Check --http-config" in second["reason"]
    long = [row["interval_ms"] for row in recorded_rows(tmp_path / "history") if row["broker"] == 7 and row["interval_ms"]]
    assert max(long) > 1900


def test_a_slow_exporter_gets_one_request_at_a_time(tmp_path: Path) -> None:
    page, go_on = ChangingPage(PAGE), threading.Event()
    with (
        served(page) as port,
        served(ChangingPage(PAGE)) as other,
        recorder(tmp_path, *argument(port), *argument(other, 2)) as running,
    ):
        running.until(lambda: running.rows)
        page.wait = lambda: go_on.wait(3.5)
        running.until(lambda: max((row["interval_ms"] or 0) for row in running.rows if row["broker"] == 1) > 3000)
        go_on.set()
        assert running.end(signal.SIGTERM) == 0
    assert page.most_at_once == 1


def test_killed_with_minus_nine_it_leaves_whole_files_and_starts_again(tmp_path: Path) -> None:
    with served(ChangingPage(PAGE)) as port, recorder(tmp_path, *argument(port)) as running:
        running.until(lambda: len(list(running.folder.glob("*.parquet"))) >= 2)
        running.process.kill()
        assert running.process.wait(300) == -signal.SIGKILL
        count = len(recorded_rows(tmp_path / "history"))
        left = tmp_path / "history" / ".2026-01-01T000000Z.parquet.partial"
        left.write_bytes(b"PAR1 half")
        with recorder(tmp_path, *argument(port)) as second:
            second.until(lambda: len(second.rows) > count)
            assert not left.exists()
            assert second.end(signal.SIGTERM) == 0


def test_a_pause_between_two_runs_is_a_gap_and_unknown_clients_are_named_once(tmp_path: Path) -> None:
    first = {"__name__": "kafka_server_Produce_byte_rate", "user": "alice", "client_id": "app", "broker": "7"}
    at_s = datetime.datetime(2026, 11, 22, 14, 3, tzinfo=datetime.UTC).timestamp()
    (tmp_path / "history").mkdir()
    RecordedFolder(tmp_path / "history").write([PageColumns().rows([(PageSeries(first), 5.0)], at_s=at_s, monotonic_s=0.0)])
    page = ChangingPage(PAGE + "kafka_server_produce_user_x_client_id_y_byte_rate 7.0\n")
    with served(page) as port, recorder(tmp_path, *argument(port, 7)) as running:
        running.until(lambda: running.events("unattributed"))
        before = page.requests
        page.text += "kafka_server_produce_user_x_client_id_z_byte_rate 7.0\n"
        running.until(lambda: page.requests > before + 1)
        assert running.end(signal.SIGTERM) == 0
    (unknown,) = running.events("unattributed")
    assert (unknown["broker"], unknown["reason"], unknown["series"]) == (7, "name-only", 1)
    assert "such as kafka_server_produce_user_x_client_id_y_byte_rate{" in unknown["message"]
    assert "kafka-quotas doctor" in unknown["message"]
    assert running.events("stopped")[0]["unattributed"] == 2
    (gap,) = map(json.loads, (tmp_path / "history" / "gaps.jsonl").read_text().splitlines())
    assert (gap["broker"], gap["from"], gap["reason"]) == (7, "2026-11-22T14:03:00Z", "record was not running")


def test_a_full_disk_costs_rows_and_is_written_again_when_it_has_room(tmp_path: Path) -> None:
    with served(ChangingPage(PAGE)) as port, recorder(tmp_path, *argument(port), room=900) as running:
        running.until(lambda: running.events("disk"))
        assert running.rows == []
        assert not list(running.folder.glob(".*.partial"))
        no_limit = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, no_limit)
        running.until(lambda: running.rows)
        running.until(lambda: "again" in running.events("disk")[-1]["message"])
        assert running.end(signal.SIGTERM) == 0
    assert running.events("stopped")[0]["dropped"] == 0


def test_rows_that_no_disk_takes_at_the_end_are_an_exit_code(tmp_path: Path) -> None:
    with served(ChangingPage(PAGE)) as port, recorder(tmp_path, *argument(port), room=900) as running:
        running.until(lambda: running.events("disk"))
        assert running.end(signal.SIGTERM) == 4
        assert running.events("stopped")[0]["dropped"] >= 3


def test_a_second_recorder_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    with served(ChangingPage(PAGE)) as port, recorder(tmp_path, *argument(port)) as running:
        done = run("record", *argument(port), "--folder", str(running.folder), *ONCE, cwd=tmp_path)
        assert (done.code, "Another recorder writes to" in done.err) == (3, True)


def test_old_files_go_first(tmp_path: Path) -> None:
    history = tmp_path / "history"
    history.mkdir()
    for name in ("2025-01-01T000000Z.parquet", "2099-01-01T000000Z.parquet", "other.parquet"):
        (history / name).write_bytes(b"x" * 4000)
    os.utime(history / "2025-01-01T000000Z.parquet", (1e9, 1e9))
    with served(ChangingPage(PAGE)) as port:
        done = run("record", *argument(port), "--folder", str(history), *ONCE, "--max-size", "5KB", "--keep", "1", cwd=tmp_path)
    assert done.code == 0, done.err
    left = {path.name for path in history.glob("*.parquet")}
    assert "2025-01-01T000000Z.parquet" not in left
    assert {"other.parquet", "2099-01-01T000000Z.parquet"} <= left


def test_no_page_in_the_whole_time_is_a_failure(tmp_path: Path) -> None:
    done = run("record", *argument(refusing_port()), "--folder", "history", *ONCE, cwd=tmp_path)
    assert (done.code, "No page was read in 1 s. broker 1: " in done.err) == (1, True), done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--traffic", "metrics+http://exporter/metrics"), "does not name the broker. Write 1=metrics+http://exporter/metrics"),
        (("--traffic", "http://kafka-1/metrics"), "A metrics page is metrics+http(s)://HOST[:PORT]/metrics, not"),
        (("--traffic", "1=metrics+http://a", "--traffic", "1=metrics+http://b"), "names broker 1 twice: http://a/metrics and"),
        (("--traffic", "1=metrics+http://a", "--traffic", "2=metrics+http://a/metrics"), "for broker 1 and for broker 2"),
        (("--traffic", "metrics+http://kafka-1", "--interval", "0.5"), "--interval takes seconds from 1 to 3,600, not 0.5"),
        (("--traffic", "metrics+http://kafka-1", "--max-size", "many"), "'many' is not a size such as 10GiB"),
        (("--traffic", "metrics+http://kafka-1", "--keep", "0"), "--keep takes days above 0, not 0"),
    ],
)
def test_options_that_cannot_work(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = run("record", *options, "--folder", "history", cwd=tmp_path)
    assert (done.code, message in done.err) == (64, True), done.err


def page_commands() -> list[list[str]]:
    """All commands that the page shows, without comments and line ends."""
    blocks = "".join(re.findall(r"```sh\n(.*?)```", PAGE_TO_START, re.DOTALL)).replace("\\\n", " ")
    return [shlex.split(line) for line in blocks.splitlines() if line]


def test_the_commands_of_the_page_record_a_history_and_judge_it(tmp_path: Path) -> None:
    write_manifests(tmp_path / "quotas")
    (tmp_path / "now.json").write_text(snapshot({}))
    # Those of loggers are run by tests/integration/test_get_a_history_page.py.
    programs = {" ".join(words[:2]) for words in page_commands()}
    assert programs == {
        "kafka-quotas alter", "kafka-quotas record", "kafka-quotas export", "kafka-quotas backtest",
        "kafka-configs --bootstrap-server", "sleep 3600",
    }  # fmt: skip
    mine = [words for words in page_commands() if words[1] == "record" or "history" in words]
    assert [words[1] for words in mine] == ["record", "backtest"]
    with served(ChangingPage(PAGE)) as first, served(ChangingPage(PAGE)) as second:
        for words in mine:
            text = "\0".join(words[1:]).replace("b1:7071", f"127.0.0.1:{first}").replace("b2:7071", f"127.0.0.1:{second}")
            arguments = text.replace("43200", "4").split("\0")
            ends = ("--duration", "4") if words[1] == "record" and "--duration" not in words else ()
            done = run(*arguments, *ends, cwd=tmp_path)
            assert done.code == 0, done.err
            if words[1] == "backtest":
                assert "throttled" in done.out
    assert {row["broker"] for row in recorded_rows(tmp_path / "history")} == {1, 2}


def test_quiet_logs_problems_only(tmp_path: Path) -> None:
    page = ChangingPage(PAGE)
    with served(page) as port:
        quiet = run("record", *argument(port), "--folder", "history", *ONCE, "-q", cwd=tmp_path)
    away = run("record", *argument(refusing_port()), "--folder", "away", *ONCE, "-q", cwd=tmp_path)

    assert (quiet.code, quiet.err) == (0, "")
    assert recorded_rows(tmp_path / "history")
    assert away.code == 1
    assert "refused" in away.err.lower()
