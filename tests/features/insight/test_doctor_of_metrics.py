"""``kafka-quotas doctor --traffic`` as a user runs it, against answers of a Prometheus server and pages of exporters."""

from __future__ import annotations

import json
import re
import shlex
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconciler.features.insight.metric_health import reading_checks
from reconciler.features.insight.rate_sources import RateRequest, read_rates
from reconciler.model import DEFAULT, Entity
from tests.support.bad_servers import refusing_port
from tests.support.command import Done, invoke
from tests.support.metrics_exporter import matrix, served
from tests.support.schemas import valid

TARGET = {"job": "kafka", "instance": "kafka-1:7071"}
KINDS = {"produce": "byte_rate", "fetch": "byte_rate", "request": "request_time", "controllermutation": "mutation_rate"}


@contextmanager
def answering(series: Sequence[Mapping[str, str]], every: int = 15, **more: object) -> Iterator[str]:
    """A server whose series have a sample at each multiple of ``every`` seconds."""

    def reply(_: str, __: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        query = dict(urllib.parse.parse_qsl(body.decode()))
        end = float(query["time"])
        length = int(query["query"].rpartition("[")[2].removesuffix("s]"))
        times = range(int(end - length) // every * every + every, int(end) + 1, every)
        return 200, "application/json", matrix(*((labels, [(at, "1") for at in times]) for labels in series), **more)

    with served(reply) as port:
        yield f"prometheus+http://127.0.0.1:{port}"


def pairs(*kinds: str, **labels: str) -> list[dict[str, str]]:
    names = [f"kafka_server_{kind}_{KINDS[kind]}" for kind in kinds or KINDS]
    return [{"__name__": name, "user": "alice", "client_id": "App", **TARGET, **labels} for name in names]


def checks(done: Done) -> dict[str, list[tuple[str, str, str]]]:
    """Status, message and remedy of the checks, by id."""
    document = json.loads(done.out)
    valid(document, "checkup")
    found: dict[str, list[tuple[str, str, str]]] = {}
    for check in document["checks"]:
        found.setdefault(check["id"], []).append((check["status"], check["message"], check["remedy"] or ""))
    return found


def doctor(folder: Path, *arguments: str) -> Done:
    return invoke("doctor", *arguments, "--format", "json", cwd=folder)


def test_a_good_server_passes_every_check(tmp_path: Path) -> None:
    with answering(pairs(), every=5) as source:
        done = invoke("doctor", "--traffic", source, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "Confluent's jmx-monitoring-stacks" in done.out
    assert "broker 1 (job=kafka, instance=kafka-1:7071) shows produce, fetch, request, mutation." in " ".join(done.out.split())
    assert done.out.splitlines()[-1] == "2 checks passed, 0 skipped."


def test_an_incomplete_answer_fails(tmp_path: Path) -> None:
    with answering(pairs(), warnings=["store-2: timeout"]) as source:
        done = doctor(tmp_path, "--traffic", source)
    ((status, message, _),) = checks(done)["source"]
    assert (done.code, status, "store-2: timeout" in message) == (1, "fail", True)


def test_clients_in_metric_names_are_unknown_and_the_rules_to_paste_are_printed(tmp_path: Path) -> None:
    series = [
        {"__name__": f"kafka_server_produce_user_{name}_byte_rate", **TARGET}
        for name in ("alice_client_id_app", "eve_client_id_x")
    ]
    with answering(series) as source:
        done = doctor(tmp_path, "--traffic", source)
        text = invoke("doctor", "--traffic", source, cwd=tmp_path, env={"COLUMNS": "80"})
    assert (done.code, "The clients of 2 series are unknown" in checks(done)["names"][0][1]) == (0, True)
    assert "  - pattern: kafka.server<type=(\\w+), user=(.+), client-id=(.+)><>([a-z-]+)\n" in text.out
    assert max(map(len, text.out.splitlines())) <= 80


def test_no_series_is_exit_code_1_with_the_command_that_makes_clients_visible(tmp_path: Path) -> None:
    with answering([]) as source:
        done = doctor(tmp_path, "--traffic", source)
    ((status, _, remedy),) = checks(done)["series"]
    program, command, *options = shlex.split(remedy.split("\n", 1)[1].replace("\\\n", " "))
    assert (done.code, status, program, command, options[0]) == (1, "fail", "kafka-quotas", "alter", "--defaults")
    # The command asks the cluster, and gets as far as that.
    options[options.index("HOST:9092")] = f"127.0.0.1:{refusing_port()}"
    done = invoke(command, *options, cwd=tmp_path)
    assert (done.code, "no Kafka broker can be reached" in done.err) == (1, True)


PAGE = """
kafka_server_Produce_byte_rate{user="alice",client_id="App"} 5
kafka_server_Produce_throttle_time{user="alice",client_id="App"} NaN
kafka_server_Produce_queue_size 0
kafka_server_fetch_user_eve_client_id_x_byte_rate 7
jvm_threads 5
"""


def test_pages_of_exporters_are_checked(tmp_path: Path) -> None:
    asked = []

    def reply(_: str, headers: dict[str, str], __: bytes) -> tuple[int, str, bytes]:
        asked.append(headers.get("authorization"))
        return 200, "text/plain; version=0.0.4", PAGE.encode()

    (tmp_path / "exporter.login").write_text("authorization: {credentials: s3cret}\n")
    with served(reply) as port:
        command = ("--traffic", f"7=metrics+http://127.0.0.1:{port}", "--http-config", "exporter.login")
        done = doctor(tmp_path, *command)
        part = doctor(tmp_path, *command, "--traffic", f"8=metrics+http://127.0.0.1:{refusing_port()}")
    found = checks(done)
    assert (done.code, set(asked)) == (0, {"Bearer s3cret"})
    assert found["exporters"][0][1].startswith("broker 7 (instance=127.0.0.1:")
    assert found["exporters"][0][1].endswith(" shows produce, throttle-time, queue-size.")
    assert "The clients of 1 series are unknown" in found["names"][0][1]
    assert "controller_mutation_rate" in found["keys"][0][1]
    assert (part.code, [status for status, _, _ in checks(part)["source"]]) == (1, ["fail"])
    assert "broker 7" in checks(part)["exporters"][0][1]


def added(series: list[dict[str, str]], known: Mapping[Entity, Mapping[str, float]]) -> set[str]:
    """The keys that the remedy of the check of keys sets."""
    with answering(series) as source:
        reading = read_rates(RateRequest(traffic=(source,)))
    (check,) = (check for check in reading_checks(reading, quotas=known) if check.id == "keys")
    return set(re.findall(r"--add (\w+)=", check.remedy or ""))


def test_a_missing_key_has_a_command_only_where_no_quota_has_the_key() -> None:
    some = pairs("produce", "request")
    assert added(some, {}) == {"consumer_byte_rate", "controller_mutation_rate"}
    assert added(some, {Entity.of({"user": DEFAULT}): {"consumer_byte_rate": 1.0}}) == {"controller_mutation_rate"}


def test_brokers_that_nothing_shows_and_two_exporters_of_one_are_named() -> None:
    with answering([*pairs(cluster="east"), *pairs(cluster="west")]) as source:
        reading = read_rates(RateRequest(traffic=(source,)))
    words = " ".join(check.message for check in reading_checks(reading, quotas={}, brokers=(1, 2, 3)))
    assert "No series comes from broker 2, 3 of the cluster." in words
    assert "Broker 1 has 2 exporters: " in words
    assert "cluster=east; " in words


def test_labels_of_strangers_are_escaped() -> None:
    hostile = "\x1b[2J\n"
    with answering([*pairs(instance=hostile), *pairs(instance=f"kafka-1:{hostile}", broker="1")]) as source:
        reading = read_rates(RateRequest(traffic=(source,)))
    text = "".join(check.message for check in reading_checks(reading, quotas={}))
    assert text.count("[2J") > 1
    assert not {"\x1b", "\n"} & set(text)


@pytest.mark.parametrize(
    ("arguments", "words"), [(("--traffic", "logs"), "For files, use backtest"), (("--match", "a='b'"), "give it, too")]
)
def test_a_source_that_cannot_be_is_a_usage_error(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = invoke("doctor", *arguments, cwd=tmp_path)
    assert (done.code, words in done.err) == (64, True), done.err
