"""``headroom`` as a user runs it: pages of exporters, recorded traffic, a terminal, errors."""

from __future__ import annotations

import datetime
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.builders import pair, user
from tests.support.command import Done, invoke
from tests.support.git_repository import GitRepository
from tests.support.incident_log import Sender, write_log
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.metrics_exporter import matrix, served
from tests.support.schemas import valid

PAGE = """# HELP kafka_server_Produce_byte_rate of clients
kafka_server_Produce_byte_rate{user="alice",client_id="app"} 1400000.0
kafka_server_Produce_throttle_time{user="alice",client_id="app"} 812.0
kafka_server_Produce_byte_rate{user="bob",client_id="\\"odd \\\\* name\\""} 900000.0
kafka_server_Produce_throttle_time{user="bob",client_id="\\"odd \\\\* name\\""} NaN
kafka_server_Produce_byte_rate{user="carol"} 10.0
kafka_server_Produce_queue_size 2.0
jvm_threads 5
"""
QUOTAS = {pair("alice", "app"): {"producer_byte_rate": 1048576.0}, pair("bob", "odd * name"): {"producer_byte_rate": 1000000.0}}


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
    title, head, first, second, note = done.out.splitlines()
    assert "2 quota groups with a limit, 1 above 100 %, 1 throttled" in title
    assert head.split() == ["%", "rate", "limit", "throttled", "on", "broker", "quota", "group", "limited", "by"]
    assert first.split() == ["134", "1.335", "MiB/s", "1", "MiB/s", "yes", "produce", "7", "user=alice", "client-id=app", "own"]
    assert 'user=bob client-id="odd * name"' in second
    assert note == "Note: 1 quota group without a limit."


def test_the_document_is_that_of_its_schema(tmp_path: Path) -> None:
    document = run_on_page(tmp_path, "--format", "json").json()

    valid(document, "headroom")
    assert [row["bucket"].get("client-id") for row in document["groups"]] == ["app", "odd * name", None]
    assert document["groups"][0]["throttled"]["mean_ms"] == 812


@pytest.mark.parametrize(
    ("options", "code", "shown"), [(("--over", "80%"), 2, 2), ((), 2, 3), (("--owner", "nobody"), 0, 0), (("--top", "1"), 2, 1)]
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

    assert "own (team-a)" in run_on_page(tmp_path, str(root)).out
    only = run_on_page(tmp_path, str(root), "--owner", "team-a", "--format", "json").json()
    assert [row["owner"] for row in only["groups"]] == ["team-a"]


def test_two_pages_of_a_broker_count_once(tmp_path: Path) -> None:
    with served(lambda *_: page(PAGE.replace("1400000.0", "1500000.0"))) as port:
        done = run_on_page(tmp_path, "--traffic", f"7=metrics+http://127.0.0.1:{port}/metrics", "--format", "json")
    assert [(row["rate"], row["broker"]) for row in done.json()["groups"][:1]] == [(1_500_000, "7")]


def test_one_page_of_two_that_does_not_answer_is_named(tmp_path: Path) -> None:
    done = run_on_page(tmp_path, "--traffic", "8=metrics+http://127.0.0.1:1/metrics")

    assert done.code == 0
    assert "Note: http://127.0.0.1:1/metrics does not answer" in done.out


@contextmanager
def metrics_server(labels: dict[str, str], rate: float, **more: object) -> Iterator[tuple[int, list[tuple[str, dict[str, str]]]]]:
    """A Prometheus with one series, scraped now. Gives its port, and the queries and headers that it gets."""
    asked: list[tuple[str, dict[str, str]]] = []

    def reply(_: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        fields = urllib.parse.parse_qs(body.decode())
        asked.append((fields["query"][0], headers))
        return 200, "application/json", matrix((labels, [(float(fields["time"][0]) - 1, str(rate))]), **more)

    with served(reply) as port:
        yield port, asked


LABELS = {"__name__": "kafka_server_produce_byte_rate", "user": "alice", "client_id": "app", "broker_id": "3"}


def test_the_cluster_manifest_names_the_server(tmp_path: Path) -> None:
    repository = GitRepository(tmp_path / "repository")
    (tmp_path / "current.json").write_text(snapshot(QUOTAS))
    with metrics_server(LABELS, 524288) as (port, asked):
        traffic = {"prometheus": f"http://127.0.0.1:{port}", "httpConfig": "prometheus.login", "match": ['cluster="prod"']}
        repository.write("cluster.yaml", cluster(traffic=traffic))
        repository.write("prometheus.login", "authorization: {credentials: s3cret}\n")
        repository.commit()
        command = ("headroom", ".", "--current", "../current.json", "--format", "json")
        done = invoke(*command, cwd=repository.folder)
        assert done.code == 0, done.err
        ((query, headers),) = asked
        assert (',cluster="prod"}[' in query, headers["authorization"]) == (True, "Bearer s3cret")
        (row,) = [row for row in done.json()["groups"] if row["limit"]]
        assert (row["bucket"], row["broker"], row["percent"]) == ({"user": "alice", "client-id": "app"}, "3", 50)
        invoke(*command, "--match", 'cluster="test"', cwd=repository.folder)
        assert ',cluster="test"}[' in asked[-1][0]
        assert ',cluster="prod"' not in asked[-1][0]

        repository.branch()
        repository.write("prometheus.login", "authorization: {credentials: other}\n")
        repository.commit()
        asked.clear()
        refused = invoke(*command, "--trusted-ref", "main", cwd=repository.folder)
    assert (refused.code, asked) == (3, [])
    assert "'prometheus.login' differs from main" in refused.err


def test_a_page_shows_why_a_client_is_throttled_now(tmp_path: Path) -> None:
    (tmp_path / "current.json").write_text(snapshot(QUOTAS))
    with served(lambda *_: page()) as port:
        traffic = ("--traffic", f"7=metrics+http://127.0.0.1:{port}/metrics", "--current", "current.json")
        since = f"{datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
        done = invoke("why", "--names", "user=alice,client-id=app", "--since", since, *traffic, "--format", "json", cwd=tmp_path)
    report = done.json()
    valid(report, "why")
    assert (report["answer"], report["recorded"]["samples"]) == ("throttled", 1), done.err
    assert [(group["key"], group["limit"]) for group in report["groups"] if group["cause"]] == [("producer_byte_rate", 1048576)]


def test_a_debt_of_tokens_is_a_throttle_by_the_controller(tmp_path: Path) -> None:
    text = """kafka_server_ControllerMutation_mutation_rate{user="alice"} 1.9
kafka_server_ControllerMutation_tokens{user="alice"} -10.0
kafka_server_ControllerMutation_mutation_rate{user="bob"} 1.9
kafka_server_ControllerMutation_tokens{user="bob"} 3.5
"""
    limit = {"controller_mutation_rate": 2.0}
    (tmp_path / "current.json").write_text(snapshot({user("alice"): limit, user("bob"): limit}))
    with served(lambda *_: page(text)) as port:
        traffic = ("--traffic", f"1=metrics+http://127.0.0.1:{port}/metrics")
        done = invoke("headroom", "--current", "current.json", *traffic, "--format", "json", cwd=tmp_path)
    rows = {row["bucket"]["user"]: row["throttled"] for row in done.json()["groups"]}
    assert (rows["alice"]["mean_ms"], rows["bob"]) == (5_000, None)


def test_the_last_minute_of_a_request_log_has_rates_and_throttles(tmp_path: Path) -> None:
    senders = [
        Sender(user=name, client_id="app", size=size, every_s=1, begin_s=0, end_s=300)
        for name, size in (("alice", 30_000), ("bob", 10_000))
    ]
    write_log(tmp_path / "kafka-request.log", senders, {"alice": 20_000})
    limit = {"producer_byte_rate": 20_000.0}
    (tmp_path / "current.json").write_text(snapshot({user("alice"): limit, user("bob"): limit, user("idle"): limit}))
    command = ("headroom", "--current", "current.json", "--traffic", "1=kafka-request.log")
    document = invoke(*command, "--format", "json", cwd=tmp_path).json()

    valid(document, "headroom")
    rows = {row["bucket"]["user"]: row for row in document["groups"] if row["key"] == "producer_byte_rate"}
    assert [round(rows[name]["percent"], -1) for name in ("alice", "bob")] == [170, 60]
    assert (rows["alice"]["throttled"]["mean_ms"] > 1_000, rows["bob"]["throttled"]) == (True, None)
    assert document["at"].startswith("2026-11-21T13:04:59")
    assert [limit["entity"] for limit in document["unused"]] == [{"user": "idle"}]
    text = invoke(*command, cwd=tmp_path).out
    assert "Note: The newest line is of 2026-11-21 13:04:59 UTC." in text
    assert "Unused now: 1 limit: user=idle producer_byte_rate. See kafka-quotas rightsize for" in text


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
        (("--over", "much"), "'much' is not a share"),
        (("--traffic", "logs"), "--traffic names pages of exporters and files"),
        (("--cluster", "a", "--all-clusters"), "--all-clusters and --cluster exclude each other"),
    ],
)
def test_options_that_contradict_are_refused(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = run_on_page(tmp_path, *options)

    assert (done.code, message in done.err) == (64, True), done.err
