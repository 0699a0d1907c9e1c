"""Histories in a real Prometheus: gaps, limits of queries, two exporters, renamed labels, and brokers of two clusters."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas
from tests.support.prometheus_server import fill_history, prometheus

pytestmark = pytest.mark.interop

HOUR = 3600
END = int(datetime.datetime.now(datetime.UTC).timestamp()) // HOUR * HOUR - 2 * HOUR
BEGIN = END - 4 * HOUR


def samples(name: str, labels: str, begin: int, end: int, values: tuple[float, ...] = (5e6,)) -> Iterator[str]:
    yield from (
        f"{name}{{{labels}}} {values[number % len(values)]} {at}" for number, at in enumerate(range(begin + 15, end + 1, 15))
    )


def rate(labels: str, begin: int = BEGIN, end: int = END) -> Iterator[str]:
    return samples("kafka_server_produce_byte_rate", f'user="alice",client_id="app",{labels}', begin, end)


def backtest(folder: Path, lines: Iterator[str], *more: str, most_samples: int | None = None, begin: int = BEGIN) -> Done:
    """The command over the four hours."""
    manifests = folder / "quotas"
    manifests.mkdir()
    (manifests / "cluster.yaml").write_text(cluster())
    (manifests / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "1MiB"})))
    fill_history(folder, sorted(lines))
    times = (datetime.datetime.fromtimestamp(at, datetime.UTC).isoformat() for at in (begin, END))
    with prometheus(folder, (), most_samples=most_samples) as server:
        address = f"prometheus+http://127.0.0.1:{server.port}"
        command = ("backtest", str(manifests), "--traffic", address, "--traffic-store", str(folder / "store"), "--format", "json")
        since, until = times
        return invoke(*command, "--since", since, "--until", until, *more, cwd=folder)


def test_a_broker_that_was_down_is_named_and_the_rest_is_judged(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        yield from rate('broker_id="1",instance="kafka-1:7071"')
        yield from rate('broker_id="2",instance="kafka-2:7071"', BEGIN, BEGIN + HOUR)
        yield from rate('broker_id="2",instance="kafka-2:7071"', END - HOUR, END)

    done = backtest(tmp_path, lines())
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert {(row["broker"], row["verdict"]) for row in document["verdicts"]} == {(1, "throttled"), (2, "throttled")}
    missing = {part["broker"]: part["minutes_missing"] for part in document["provenance"]["coverage"]}
    assert missing[1] == 0
    assert 118 <= missing[2] <= 120


def test_a_server_that_limits_samples_gives_all_of_them_in_shorter_times(tmp_path: Path) -> None:
    done = backtest(tmp_path, rate('broker_id="1",instance="kafka-1:7071"'), most_samples=50, begin=BEGIN + 600)
    assert done.code == 0, done.err
    span = json.loads(done.out)["provenance"]
    first, last = (datetime.datetime.fromisoformat(span[name]).timestamp() for name in ("from", "to"))
    assert (first, last) == (BEGIN + 615, END), "after --since, up to --until"


def test_two_exporters_of_one_broker_count_once_and_renamed_labels_are_one_series(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        yield from rate('broker_id="1",instance="10.0.0.1:7071",job="old"', BEGIN, BEGIN + HOUR + 600)
        yield from rate('broker_id="1",instance="10.0.0.1:7071",job="new"', BEGIN + HOUR + 600)
        yield from rate('broker_id="1",instance="10.0.0.1:7072",job="new"', END - HOUR)

    done = backtest(tmp_path, lines())
    assert done.code == 0, done.err
    notes = " ".join(map(str, json.loads(done.out)["notes"]))
    assert "Two exporters or replicas show the same clients of broker 1." in notes
