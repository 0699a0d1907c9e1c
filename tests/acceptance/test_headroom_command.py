"""``headroom`` as a user runs it: pages of exporters, recorded traffic, a terminal, errors."""

from __future__ import annotations

import datetime
import json
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator

from reconciler.formats.schema_files import load_schema
from tests.builders import pair, user
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.metrics_exporter import served
from tests.support.terminal import Terminal

PAGE = """# HELP kafka_server_Produce_byte_rate of clients
kafka_server_Produce_byte_rate{user="alice",client_id="app"} 1400000.0
kafka_server_Produce_throttle_time{user="alice",client_id="app"} 812.0
kafka_server_Produce_byte_rate{user="bob",client_id="\\"odd \\\\* name\\""} 900000.0
kafka_server_Produce_throttle_time{user="bob",client_id="\\"odd \\\\* name\\""} NaN
kafka_server_Produce_byte_rate{user="carol"} 10.0
kafka_server_Produce_queue_size 2.0
jvm_threads 5
"""
QUOTAS = {
    pair("alice", "app"): {"producer_byte_rate": 1048576.0},
    pair("bob", "odd * name"): {"producer_byte_rate": 1000000.0},
}


def page(text: str = PAGE) -> tuple[int, str, bytes]:
    return 200, "text/plain; version=0.0.4", text.encode()


def run_on_page(folder: Path, *options: str, text: str = PAGE) -> Done:
    (folder / "current.json").write_text(snapshot(QUOTAS))
    with served(lambda *_: page(text)) as port:
        traffic = f"7=metrics+http://127.0.0.1:{port}/metrics"
        return invoke("headroom", "--current", "current.json", "--traffic", traffic, *options, cwd=folder)


def test_the_table_has_a_row_for_each_group_with_a_limit(tmp_path: Path) -> None:
    done = run_on_page(tmp_path)

    assert (done.code, done.err) == (0, "")
    title, head, first, second, muted, note = done.out.splitlines()
    assert "2 quota groups with a limit, 1 above 100%, 1 throttled" in title
    assert head.split() == ["%", "rate", "limit", "throttled", "on", "broker", "quota", "group", "limited", "by"]
    assert first.split() == ["134", "1.335", "MiB/s", "1", "MiB/s", "yes", "produce", "7", "user=alice", "client-id=app", "own"]
    assert 'user=bob client-id="odd * name"' in second
    assert muted == "Muted connections: broker 7 2 (produce)"
    assert note == "Note: 1 quota group without a limit."


def test_a_terminal_of_80_columns_has_one_line_for_each_short_name(tmp_path: Path) -> None:
    (tmp_path / "current.json").write_text(snapshot({user("alice"): {"producer_byte_rate": 1048576.0}}))
    text = 'kafka_server_Produce_byte_rate{user="alice"} 1400000\nkafka_server_Produce_throttle_time{user="alice"} 8\n'
    with served(lambda *_: page(text)) as port:
        done = invoke(
            "headroom", "--current", "current.json", "--traffic", f"1=metrics+http://127.0.0.1:{port}",
            cwd=tmp_path, env={"COLUMNS": "80"},
        )  # fmt: skip
    assert max(map(len, done.out.splitlines())) <= 80
    assert any(line.startswith("134  1.335 MiB/s") and line.endswith("own") for line in done.out.splitlines())


def test_the_document_is_that_of_its_schema(tmp_path: Path) -> None:
    document = run_on_page(tmp_path, "--format", "json").json()

    Draft202012Validator(load_schema("headroom")).validate(document)
    assert [row["bucket"].get("client-id") for row in document["groups"]] == ["app", "odd * name", None]
    assert document["groups"][0]["throttled"]["mean_ms"] == 812
    assert document["muted"] == [{"broker": "7", "key": "producer_byte_rate", "connections": 2}]


@pytest.mark.parametrize(
    ("options", "code", "shown"), [(("--over", "80%"), 2, 2), ((), 2, 3), (("--over", "150%"), 0, 0), (("--top", "1"), 2, 1)]
)
def test_the_exit_code_is_about_all_groups_that_were_asked_for(
    options: tuple[str, ...], code: int, shown: int, tmp_path: Path
) -> None:
    done = run_on_page(tmp_path, "--format", "json", "--detailed-exitcode", *options)

    assert (done.code, len(done.json()["groups"])) == (code, shown)


def test_owners_come_from_the_manifests(tmp_path: Path) -> None:
    root = tmp_path / "quotas"
    root.mkdir()
    (root / "cluster.yaml").write_text(cluster())
    entry = ({"user": "alice", "client-id": "app"}, {"producer_byte_rate": "1MiB"})
    (root / "quotas.yaml").write_text(quotas(entry, owner="team-a"))

    done = run_on_page(tmp_path, str(root), "--by", "owner")
    rows = [line.split()[:5] for line in done.out.splitlines()[2:4]]
    assert rows == [["team-a", "134", "1", "1", "1"], ["(none)", "90", "1", "0", "0"]]
    only = run_on_page(tmp_path, str(root), "--owner", "team-a", "--format", "json").json()
    assert [row["owner"] for row in only["groups"]] == ["team-a"]


def test_one_page_of_two_that_does_not_answer_is_named(tmp_path: Path) -> None:
    done = run_on_page(tmp_path, "--traffic", "8=metrics+http://127.0.0.1:1/metrics")

    assert done.code == 0
    assert "Note: http://127.0.0.1:1/metrics does not answer" in done.out


def test_recorded_gauges_end_at_their_last_moment(tmp_path: Path) -> None:
    begin = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
    rows = [
        {
            "ts": begin + datetime.timedelta(seconds=15 * number), "interval_ms": 0, "broker": 3, "user": "alice",
            "client_id": "app", "kind": "produce", "amount": 1000 * number, "semantics": "gauge", "throttled": number > 400,
        }
        for number in range(403)
    ]  # fmt: skip
    schema = pa.schema(
        [
            ("ts", pa.timestamp("us", tz="UTC")), ("interval_ms", pa.int32()), ("broker", pa.int32()), ("user", pa.string()),
            ("client_id", pa.string()), ("kind", pa.string()), ("amount", pa.int64()), ("semantics", pa.string()),
            ("throttled", pa.bool_()),
        ]
    )  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "history.parquet")
    (tmp_path / "current.json").write_text(snapshot({pair("alice", "app"): {"producer_byte_rate": 804000.0}}))

    done = invoke("headroom", "--current", "current.json", "--traffic", "history.parquet", "--format", "json", cwd=tmp_path)

    document = done.json()
    (group,) = document["groups"]
    assert (document["at"], group["rate"], group["percent"]) == ("2026-01-02T13:40:30Z", 402_000, 50)
    assert group["trend"] == {"change": 4000, "seconds": 60}
    assert group["throttled"] == {"since": "2026-01-02T13:40:15Z", "or_earlier": True, "mean_ms": None}


def test_a_name_cannot_move_the_cursor(tmp_path: Path) -> None:
    text = 'kafka_server_Produce_byte_rate{user="%1B%5B2Jx"} 5\n'
    (tmp_path / "current.json").write_text(snapshot({user("\x1b[2Jx"): {"producer_byte_rate": 10.0}}))
    with served(lambda *_: page(text)) as port:
        done = invoke("headroom", "--current", "current.json", "--traffic", f"metrics+http://127.0.0.1:{port}", cwd=tmp_path)

    assert "\x1b" not in done.out
    assert 'user="\\u001b[2Jx"' in done.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--interval", "2"), "--interval is for --watch only"),
        (("--watch", "--format", "json"), "--watch shows text"),
        (("--over", "much"), "'much' is not a share"),
        (("--traffic", "logs"), "--traffic names pages of exporters and files"),
    ],
)
def test_options_that_contradict_are_refused(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = run_on_page(tmp_path, *options)

    assert (done.code, message in done.err) == (64, True), done.err


def test_a_screen_refreshes_and_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "current.json").write_text(snapshot(QUOTAS))
    rates = iter(range(100_000, 100_000_000, 100_000))

    def reply(*_: object) -> tuple[int, str, bytes]:
        return page(PAGE.replace("1400000.0", str(next(rates))))

    with served(reply) as port:
        traffic = f"1=metrics+http://127.0.0.1:{port}"
        terminal = Terminal(
            tmp_path, "headroom", "--current", "current.json", "--traffic", traffic, "--watch", "--interval", "0.2"
        )
        terminal.wait_for("976.6 KiB/s")
        terminal.wait_for("1.907 MiB/s")
        terminal.process.send_signal(signal.SIGWINCH)
        terminal.wait_for("2.861 MiB/s")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 130
    assert terminal.seen.startswith("\x1b[?1049h\x1b[?25l\x1b[H")
    assert terminal.seen.count("\x1b[?1049h") == 1
    assert "\x1b[?25h\x1b[?1049l" in terminal.seen
    assert json.dumps(terminal.seen).count("\\u001b[2J") == 0
